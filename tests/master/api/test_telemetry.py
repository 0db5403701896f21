"""Metrics and output over HTTP, in the shapes that Determined's client reads."""

from __future__ import annotations

import zlib

import pytest

from tenax.master.access.task_tokens import token_hash
from tenax.master.store.database.connection import Database
from tests.kits.api import Api, Client
from tests.kits.cases import answers
from tests.kits.master.metrics import lines
from tests.kits.telemetry import Book, metrics_line


@pytest.fixture
async def desk(api: Api) -> Book:
    """Trials of the master that answers."""
    return Book(api.master.db, api.master.intake)


def report(trial: int, step: int, values: dict[str, object], **more: object) -> dict[str, object]:
    inner = {"trialId": trial, "trialRunId": 1, "stepsCompleted": step, "reportTime": None}
    return {"group": "training", "metrics": {**inner, "metrics": {"avgMetrics": values, "batchMetrics": None}, **more}}


async def test_a_report_is_stored_and_streamed_back(api: Api, desk: Book) -> None:
    """In camel or snake case, again without harm, by trial and step, under the names that the client wants."""
    trial = await desk.trial()
    task = await api.task((await desk.run(trial, 1)).allocation_id)
    path = f"/api/v1/trials/{trial}/metrics"
    for _ in range(2):
        reply = await task.post(path, report(trial, 20, {"loss": 0.5, "bad": "NaN"}))
        assert (reply.status_code, reply.text) == (200, "{}")
    snake = {
        "group": "validation",
        "metrics": {
            "trial_id": trial,
            "trial_run_id": "1",
            "steps_completed": "10",
            "report_time": "2026-01-02T03:04:05.5Z",
            "metrics": {"avg_metrics": {"loss": 1}, "batch_metrics": [{"x": 1}]},
        },
    }
    assert (await task.post(path, snake)).status_code == 200
    (message,) = lines(await api.user.get("/api/v1/trials/metrics/trial_metrics", trialIds=[trial], group="training"))
    (shown,) = message["result"]["metrics"]  # type: ignore[misc]
    assert shown.pop("endTime").endswith("Z")  # type: ignore[attr-defined]
    assert shown == {
        "id": 0,
        "trialId": trial,
        "trialRunId": 1,
        "group": "training",
        "totalBatches": 20,
        "archived": False,
        "metrics": {"avg_metrics": {"loss": 0.5, "bad": "NaN"}},
    }
    (two,) = lines(await api.user.get("/api/v1/trials/metrics/validation_metrics", trialIds=[trial]))
    (validation,) = two["result"]["metrics"]  # type: ignore[misc]
    assert validation["metrics"] == {"validation_metrics": {"loss": 1}, "batch_metrics": [{"x": 1}]}  # type: ignore[index]
    assert validation["endTime"] == "2026-01-02T03:04:05.500000Z"  # type: ignore[index]


@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        ({"trialRunId": 2}, 400, "run 2"),
        ({"stepsCompleted": -5}, 400, "steps_completed"),
        ({"stepsCompleted": "many"}, 400, "whole number"),
        ({"metrics": {"avgMetrics": {"epoch": True}}}, 400, "epoch"),
        ({"metrics": {"avgMetrics": [1]}}, 400, "avgMetrics"),
        ({"metrics": None}, 400, "metrics.metrics"),
        ({"reportTime": "yesterday"}, 400, "yesterday"),
    ],
)
async def test_a_report_that_cannot_be_is_refused_in_words(
    api: Api, desk: Book, change: dict[str, object], status: int, named: str
) -> None:
    """With the status that the client takes for an answer, and nothing stored."""
    trial = await desk.trial()
    task = await api.task((await desk.run(trial, 1)).allocation_id)
    reply = await task.post(f"/api/v1/trials/{trial}/metrics", report(trial, 1, {"loss": 1}, **change))
    assert reply.status_code == status
    assert named in reply.json()["error"]["error"]
    assert await desk.reports(trial) == []


NO_REPORTS = [
    *(b"", b"[]", b"{", b'{"group": "training"}', b'{"metrics": {}}'),
    b'{"group": "a.b", "metrics": {"metrics": {}}}',
    b'{"group": "", "metrics": {"metrics": {"avgMetrics": {"a": "\\u0000"}}}}',
]


@pytest.mark.parametrize("body", NO_REPORTS)
async def test_a_body_that_is_no_report_is_refused(api: Api, desk: Book, body: bytes) -> None:
    """400, never 500."""
    trial = await desk.trial()
    task = await api.task((await desk.run(trial, 1)).allocation_id)
    assert (await task.ask("POST", f"/api/v1/trials/{trial}/metrics", body)).status_code == 400


async def test_only_the_trial_itself_and_its_owner_report(api: Api, desk: Book) -> None:
    """The token of another trial, somebody else, nobody."""
    trial, other = await desk.trial(), await desk.trial()
    stranger = await api.task((await desk.run(other, 1)).allocation_id)
    path, body = f"/api/v1/trials/{trial}/metrics", report(trial, 1, {"loss": 1})
    assert (await stranger.post(path, body)).status_code == 403
    assert (await api.user.post(path, body)).status_code == 403
    assert (await api.nobody.post(path, body)).status_code == 401
    assert await desk.reports(trial) == []


async def test_streams_say_what_is_wrong_before_they_begin(api: Api) -> None:
    """No trial named, and one that does not exist."""
    path = "/api/v1/trials/metrics/training_metrics"
    assert (await api.user.get(path)).status_code == 400
    reply = await api.user.get(path, trialIds=[-1])
    assert (reply.status_code, reply.json()["error"]["reason"]) == (404, "NotFound")


async def test_a_series_for_a_chart(api: Api, desk: Book) -> None:
    """All points or fewer, with steps; an unknown group is not found, an unknown metric has no points."""
    trial = await desk.trial()
    for step in range(30):
        await desk.report(trial, "training", step, {"loss": 1.0 / (step + 1)})
    path = f"/api/v1/trials/{trial}/series"
    whole = (await api.user.get(path, metric="loss", max_points=0)).json()
    assert whole["steps"] == list(range(30))
    thin = (await api.user.get(path, metric="loss", maxPoints=10)).json()
    assert (thin["total"], thin["values"][0], thin["values"][-1]) == (30, 1.0, 1.0 / 30)
    assert len(thin["steps"]) <= 10
    part = (await api.user.get(path, metric="loss", from_step=7, toStep=9)).json()
    assert (part["total"], part["steps"]) == (3, [7, 8, 9])
    after = (await api.user.get(path, metric="loss", fromStep=29)).json()
    assert after["steps"] == [29]
    assert (await api.user.get(path, metric="loss", fromStep=9, toStep=7)).json()["steps"] == []
    assert (await api.user.get(path, metric="other")).json()["steps"] == []
    assert (await api.user.get(path, metric="loss", group="none")).status_code == 404
    summary = (await api.user.get(f"/api/v1/trials/{trial}/metric-summaries")).json()
    assert summary["training"]["loss"]["count"] == 30


async def test_a_spool_is_shipped_with_the_token_of_its_allocation(api: Api, desk: Book) -> None:
    """The reply tells the last line taken in; another allocation's token is refused."""
    trial, other = await desk.trial(), await desk.trial()
    name = (await desk.run(trial, 1)).allocation_id
    task, stranger = await api.task(name), await api.task((await desk.run(other, 1)).allocation_id)
    path = f"/api/v1/allocations/{name}/spool?container_id={name}&stream=s-1-1"
    body = metrics_line(1, "training", 1, {"loss": 1}) + metrics_line(2, "a.b", 1, {"loss": 1})
    reply = await task.ask("POST", path, body)
    assert reply.status_code == 200, reply.text
    assert reply.json()["acked"] == 2
    assert [refusal["n"] for refusal in reply.json()["refused"]] == [2]
    assert (await stranger.ask("POST", path, body)).status_code == 403
    assert (await task.ask("POST", f"/api/v1/allocations/{name}/spool", body)).status_code == 400


async def test_output_of_an_agent_is_streamed_in_the_clients_form(api: Api, desk: Book, database: Database) -> None:
    """Each message has the fields that are known; ``message`` is the line as it is printed."""
    trial = await desk.trial()
    name = (await desk.run(trial, 1)).allocation_id
    agent = await _agent(api, database)
    raw = b"[rank=2] INFO: hello\nplain\n"
    path = f"/agents/logs?container_id={name}&stream=stdout&offset=0"
    assert (await agent.ask("POST", path, zlib.compress(raw))).json() == {"next": len(raw)}
    assert (await agent.get("/agents/logs/offsets", container_id=name)).json() == {"stdout": len(raw), "stderr": 0}
    first, second = [line["result"] for line in lines(await api.user.get(f"/api/v1/trials/{trial}/logs"))]
    stamp = first.pop("timestamp")
    assert first == {
        "id": "0",
        "trialId": trial,
        "message": f"[{stamp}] {name[:8]} [rank=2] || INFO: hello\n",
        "log": "hello\n",
        "level": "LOG_LEVEL_INFO",
        "source": "task",
        "rankId": 2,
        "allocationId": name,
        "containerId": name,
        "agentId": "a1",
        "stdtype": "stdout",
    }
    assert second["level"] == "LOG_LEVEL_UNSPECIFIED"
    assert "rankId" not in second
    path = f"/api/v1/tasks/{name.rpartition('.')[0]}/logs"
    (last,) = lines(await api.user.get(path, orderBy="ORDER_BY_DESC", limit=1))
    assert (last["result"]["log"], last["result"]["taskId"]) == ("plain\n", name.rpartition(".")[0])
    assert lines(await api.user.get(path, searchText="^HEL", enableRegex=False, levels=["LOG_LEVEL_INFO"])) == []
    (entry,) = lines(await api.user.get(path, searchText="^hel", enableRegex=True))
    assert entry["result"]["rankId"] == 2
    (fields,) = lines(await api.user.get(f"{path}/fields"))
    assert fields["result"]["rankIds"] == [2]
    assert (await api.user.get(path, searchText="(", enableRegex=True)).status_code == 400
    assert (await api.user.get("/api/v1/tasks/nothing/logs")).status_code == 404


async def _agent(api: Api, database: Database) -> Client:
    async with database.transaction() as conn:
        await conn.execute("update agents set credential_hash = $1 where agent_id = 'a1'", token_hash("tnxg_x"))
    return api.client({"Authorization": "Bearer tnxg_x"})


async def test_lines_of_determineds_shipper(api: Api, desk: Book) -> None:
    """A batch of one task, in its own spelling; none, mixed tasks and another's are refused."""
    trial = await desk.trial()
    name = (await desk.run(trial, 1)).allocation_id
    task, task_id = await api.task(name), name.rpartition(".")[0]
    line = {
        "timestamp": "2026-01-02T03:04:05.000001+00:00",
        "stdtype": "stderr",
        "allocation_id": name,
        "task_id": task_id,
        "container_id": name,
        "agent_id": "a1",
        "source": "task",
        "level": "LOG_LEVEL_WARNING",
        "rank_id": 1,
        "log": "mind the gap\n",
    }
    # A NUL stays, as in what a program writes by itself.
    body = {"logs": [line, {**line, "level": "ERROR", "log": "two\nlines\u0000\n", "rank_id": None}]}
    reply = await task.post("/api/v1/task/logs", body)
    assert (reply.status_code, reply.text) == (200, "{}")
    entries = [each["result"] for each in lines(await api.user.get(f"/api/v1/tasks/{task_id}/logs"))]
    assert [(each["log"], each["level"], each.get("rankId")) for each in entries] == [
        ("mind the gap\n", "LOG_LEVEL_WARNING", 1),
        ("two\n", "LOG_LEVEL_ERROR", None),
        ("lines\u0000\n", "LOG_LEVEL_ERROR", None),
    ]
    assert str(entries[0]["message"]).startswith("[2026-01-02T03:04:05.000001Z] ")
    other = {**line, "task_id": "another"}
    nul = {**line, "source": "ta\u0000sk"}
    for bad in ({"logs": []}, {}, {"logs": [line, other]}, {"logs": [1]}, {"logs": [nul]}):
        assert (await task.post("/api/v1/task/logs", bad)).status_code == 400
    assert (await task.post("/api/v1/task/logs", {"logs": [other]})).status_code == 403


async def test_no_room_for_output_is_507_for_agents_and_no_harm_to_tasks(
    api: Api, desk: Book, database: Database
) -> None:
    """The agent keeps what it has; a shipper that would end its task is answered, and its lines are dropped."""
    trial = await desk.trial()
    name = (await desk.run(trial, 1)).allocation_id
    budget = api.master.intake.logs._budget
    # A copy: the settings may be everyone's defaults.
    budget._settings = budget._settings.model_copy(update={"log_bytes": 0})
    agent, task = await _agent(api, database), await api.task(name)
    path = f"/agents/logs?container_id={name}&stream=stdout&offset=0"
    reply = await agent.ask("POST", path, zlib.compress(b"x\n"))
    assert reply.status_code == 507
    assert "budgets.log_bytes" in reply.json()["message"]
    line = {"timestamp": "2026-01-02T03:04:05+00:00", "task_id": name.rpartition(".")[0], "log": "x\n"}
    assert (await task.post("/api/v1/task/logs", {"logs": [line]})).status_code == 200
    assert (await agent.ask("POST", path, zlib.compress(b"x\n"))).status_code == 507
    (entry,) = lines(await api.user.get(f"/api/v1/trials/{trial}/logs"))
    assert "output waits where it was made: logs take" in str(entry["result"]["message"])


async def test_a_log_that_is_followed_has_no_limit(api: Api, desk: Book) -> None:
    """What excludes one another is refused before the stream begins."""
    trial = await desk.trial()
    for query in ({"follow": True, "limit": 3}, {"follow": True, "orderBy": "ORDER_BY_DESC"}, {"limit": -1}):
        assert (await api.user.get(f"/api/v1/trials/{trial}/logs", **query)).status_code == 400


@answers("task_services/log_follow", "TrialLogsFields")
async def test_fields_are_followed_to_the_end_of_the_task(api: Api, desk: Book) -> None:
    """Without ``follow`` they come once; with it again when they have changed, until the task ends."""
    trial = await desk.trial()
    task = await desk.run(trial, 1)
    logged = {"logs": [{"taskId": task.task_id, "log": "x", "level": "ERROR", "rankId": 3, "stdtype": "stderr"}]}
    speaker = await api.task(task.allocation_id)
    assert (await speaker.post("/api/v1/task/logs", logged)).status_code == 200
    path = f"/api/v1/tasks/{task.task_id}/logs/fields"
    (fields,) = lines(await api.user.get(path))
    assert (fields["result"]["rankIds"], fields["result"]["stdtypes"]) == ([3], ["stderr"])
    async with api.master.db.transaction() as conn:
        await conn.execute("update tasks set ended_at = now() - interval '1 minute' where task_id = $1", task.task_id)
    assert lines(await api.user.get(path, follow=True)) == [fields]
    (line,) = lines(await api.user.get(f"/api/v1/trials/{trial}/logs"))
    assert line["result"]["level"] == "LOG_LEVEL_ERROR"


async def test_what_is_left_is_delivered_after_the_end(api: Api, desk: Book) -> None:
    """A task whose attempt has ended delivers metrics and output, and nothing else."""
    trial = await desk.trial()
    task = await desk.run(trial, 1)
    speaker = await api.task(task.allocation_id)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update allocations set state = 'TERMINATED', ended_at = now() where allocation_id = $1", task.allocation_id
        )
    assert (await speaker.post(f"/api/v1/trials/{trial}/metrics", report(trial, 1, {"loss": 1.0}))).status_code == 200
    logged = {"logs": [{"taskId": task.task_id, "log": "last words"}]}
    assert (await speaker.post("/api/v1/task/logs", logged)).status_code == 200
    assert (await speaker.get(f"/api/v1/trials/{trial}")).status_code == 401
