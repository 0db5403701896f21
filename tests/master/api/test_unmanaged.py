"""What is trained elsewhere, over the wire: whose it is, what may be said of it, and what becomes of silence."""

from __future__ import annotations

import pytest

from tenax.config.master import MasterSettings
from tenax.master.loops.loop import PassContext
from tenax.master.loops.timeouts import UNMANAGED_WAIT_S, Timeouts
from tenax.master.store.database import leases
from tenax.master.store.database.connection import now
from tenax.master.store.database.wakeups import Woken
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.unmanaged import CONFIG, NEW, experiment, state, trial

PASSWORD = "Secret-Words-9"


async def look(api: Api, silent_s: float, listened_s: float) -> None:
    """One look of the loop `timeouts` at a trial that was heard of ``silent_s`` ago."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update unmanaged_trials set heard_at = now() - make_interval(secs => $1)", silent_s)
        lease = await leases.acquire(conn, "timeouts", "test", 3600.0)
        moment = (await now(conn)).timestamp()
    assert lease is not None
    loop = Timeouts(MasterSettings().pools)
    await loop.make_pass(PassContext(api.master.db, lease), Woken(frozenset(), full=False))
    assert loop._watch is not None
    loop._watch = type(loop._watch)(moment - listened_s, moment)
    await loop.make_pass(PassContext(api.master.db, lease), Woken(frozenset(), full=False))


async def test_its_life(api: Api) -> None:
    """It is QUEUED until its script starts, then RUNNING, and ends as its script says; a new start brings it back."""
    number = await trial(api, start=False)
    assert await state(api, number) == ("STATE_QUEUED", "STATE_RUNNING")
    await api.user.post(f"/api/v1/trials/{number}/start", {})
    assert await state(api, number) == ("STATE_RUNNING", "STATE_RUNNING")
    # It waits in no queue.
    assert (await api.user.get("/api/v1/experiments/1")).json()["jobSummary"] is None
    for _ in range(2):
        assert (await api.user.patch(f"/api/v1/trials/{number}", {"state": "STATE_COMPLETED"})).status_code == 200
        assert await state(api, number) == ("STATE_COMPLETED", "STATE_COMPLETED")
    refused = await api.user.patch(f"/api/v1/trials/{number}", {"state": "STATE_RUNNING"})
    assert (refused.status_code, "start it again" in refused.text) == (400, True)
    again = await api.user.post(f"/api/v1/trials/{number}/start", {"resume": True})
    assert again.json()["trialRunId"] == 2
    assert await state(api, number) == ("STATE_RUNNING", "STATE_RUNNING")


async def test_what_it_reports(api: Api) -> None:
    """Its owner reports metrics, progress and checkpoints; the next start goes on from the latest checkpoint."""
    number = await trial(api)
    place = f"/api/v1/trials/{number}"
    task_id = (await api.user.get(place)).json()["trial"]["taskId"]
    metrics = {"trialId": number, "trialRunId": 1, "stepsCompleted": 4, "metrics": {"avgMetrics": {"loss": 1.0}}}
    uuid = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0099"
    replies = [
        await api.user.post("/api/v1/runs/start", {"runId": number, "checkpointStorage": {"type": "directory"}}),
        await api.user.post(f"{place}/metrics", {"group": "training", "metrics": metrics}),
        await api.user.post(f"{place}/validation_metrics", metrics),
        await api.user.post(f"{place}/progress", {"progress": 0.5, "is_raw": True}),
        await api.user.post(f"{place}/runner/metadata", {"state": "training"}),
        await api.user.post(
            "/api/v1/checkpoints",
            {"uuid": uuid, "taskId": task_id, "metadata": {"steps_completed": 4}, "state": "STATE_COMPLETED"},
        ),
        await api.user.post("/task-logs", [{"task_id": task_id, "timestamp": "2026-01-01T00:00:00Z", "log": "hi\n"}]),
        await api.user.post(
            "/api/v1/trial-source-info",
            {
                "trialSourceInfo": {
                    "trialId": number,
                    "checkpointUuid": uuid,
                    "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
                }
            },
        ),
    ]
    assert [reply.status_code for reply in replies] == [200] * len(replies), [reply.text for reply in replies]
    shown = (await api.user.get(place)).json()["trial"]
    assert (shown["progress"], shown["runnerState"], shown["totalBatchesProcessed"]) == (0.5, "training", 4)
    started = await api.user.post(f"{place}/start", {"resume": True})
    assert started.json() == {"trialRunId": 2, "latestCheckpoint": uuid, "stepsCompleted": 4}
    old = await api.user.post(f"{place}/metrics", {"group": "training", "metrics": {**metrics, "stepsCompleted": 5}})
    assert old.status_code == 400
    assert "hi" in (await api.user.get(f"{place}/logs")).text


async def test_what_ranks_it(api: Api) -> None:
    """Its metric may be set until there is a value of it; values that come then rank by the new one."""
    number = await trial(api)
    place = f"/api/v1/trials/{number}"

    async def report(step: int, **metrics: float) -> None:
        body = {"trialId": number, "trialRunId": 1, "stepsCompleted": step, "metrics": {"avgMetrics": metrics}}
        reply = await api.user.post(f"{place}/validation_metrics", body)
        assert reply.status_code == 200, reply.text

    def metric(name: str, smaller: bool = False) -> dict[str, object]:
        return {"searcher": {"metric": name, "smallerIsBetter": smaller}}

    path = f"/api/v1/experiments/{(await api.user.get(place)).json()['trial']['experimentId']}"
    # The master has looked at it, and has found no value of its metric.
    await report(1, accuracy=0.9)
    changed = await api.user.patch(path, metric("accuracy"))
    assert changed.status_code == 200, changed.text
    searcher = changed.json()["experiment"]["config"]["searcher"]
    assert (searcher["name"], searcher["metric"], searcher["smaller_is_better"]) == ("single", "accuracy", False)
    await report(2, accuracy=0.5)
    await report(3, accuracy=0.4)
    shown = (await api.user.get(place)).json()["trial"]
    assert shown["bestValidation"]["totalBatches"] == 2
    refused = await api.user.patch(path, metric("loss", smaller=True))
    assert (refused.status_code, "has values of 'accuracy'" in refused.text) == (400, True), refused.text
    assert (await api.user.patch(path, metric("accuracy"))).status_code == 200
    for nonsense in ("", "  ", "x" * 300):
        assert (await api.user.patch(path, metric(nonsense))).status_code == 400
    managed = (await api.user.post("/api/v1/experiments", {"config": f"{CONFIG}entrypoint: x\n"})).json()
    refused = await api.user.patch(f"/api/v1/experiments/{managed['experiment']['id']}", metric("loss"))
    assert (refused.status_code, "decides by its metric" in refused.text) == (400, True), refused.text


async def test_names(api: Api) -> None:
    """The same name is the same thing; a name of somebody else's is refused."""
    path = "/api/v1/experiments/by-external-id/mine/with%20slashes"
    imagined = (await api.user.ask("PUT", path, {**NEW, "validateOnly": True})).json()["experiment"]
    assert (imagined["id"], imagined["name"]) == (0, "far")
    assert (await api.user.get("/api/v1/experiments")).json()["pagination"]["total"] == 0
    first = await api.user.ask("PUT", path, NEW)
    assert first.status_code == 200, first.text
    number = first.json()["experiment"]["id"]
    assert (await api.user.ask("PUT", path, NEW)).json()["experiment"]["id"] == number
    wish = {"createTrialRequest": {"experimentId": number, "unmanaged": True}, "externalTrialId": "t"}
    ids = {(await api.user.ask("PUT", "/api/v1/trials", wish)).json()["trial"]["id"] for _ in range(2)}
    assert len(ids) == 1
    other = await api.admin.post("/api/v1/users", {"user": {"username": "ann", "active": True}, "password": PASSWORD})
    assert other.status_code == 200, other.text
    ann = await api.login("ann", PASSWORD)
    assert (await ann.ask("PUT", path, NEW)).status_code == 403
    assert (await ann.ask("PUT", "/api/v1/trials", wish)).status_code == 403
    assert (await ann.post(f"/api/v1/trials/{ids.pop()}/start", {})).status_code == 403


async def test_one_that_falls_silent_is_lost_and_comes_back(api: Api) -> None:
    """After five silent minutes it is an ERROR that says so; the next heartbeat makes it RUNNING again."""
    number = await trial(api)
    await look(api, UNMANAGED_WAIT_S - 60, 3600)
    assert (await state(api, number))[0] == "STATE_RUNNING"
    await look(api, UNMANAGED_WAIT_S + 60, UNMANAGED_WAIT_S - 60)
    assert (await state(api, number))[0] == "STATE_RUNNING"
    await look(api, UNMANAGED_WAIT_S + 60, 3600)
    assert await state(api, number) == ("STATE_ERROR", "STATE_ERROR")
    shown = (await api.user.get(f"/api/v1/trials/{number}")).json()["trial"]
    assert "no sign of life" in shown["reason"]
    assert (await api.user.patch(f"/api/v1/trials/{number}", {})).status_code == 200
    assert await state(api, number) == ("STATE_RUNNING", "STATE_RUNNING")


@pytest.mark.parametrize("verb", ["/api/v1/trials/{trial}/kill", "/api/v1/experiments/{above}/cancel"])
async def test_one_that_is_canceled_here(api: Api, verb: str) -> None:
    """Its record ends; its script is told when it speaks again, and a new start brings it back. It cannot be paused."""
    number = await trial(api)
    above = (await api.user.get(f"/api/v1/trials/{number}")).json()["trial"]["experimentId"]
    assert (await api.user.post(f"/api/v1/experiments/{above}/pause")).status_code == 400
    for _ in range(2):
        assert (await api.user.post(verb.format(trial=number, above=above))).status_code == 200
        assert await state(api, number) == ("STATE_CANCELED", "STATE_CANCELED")
    reply = await api.user.patch(f"/api/v1/trials/{number}", {})
    assert (reply.status_code, "has ended (canceled)" in reply.text) == (400, True)
    await api.user.post(f"/api/v1/trials/{number}/start", {})
    assert await state(api, number) == ("STATE_RUNNING", "STATE_RUNNING")


async def test_one_that_never_started(api: Api) -> None:
    """It can be canceled and deleted, with or without a trial."""
    empty = await experiment(api)
    await trial(api, start=False)
    for number in (empty, empty + 1):
        assert (await api.user.post(f"/api/v1/experiments/{number}/cancel")).status_code == 200
        assert (await api.user.delete(f"/api/v1/experiments/{number}")).status_code == 200


async def test_one_that_is_being_deleted(api: Api) -> None:
    """Nothing that is said of it brings it back."""
    number = await trial(api)
    above = (await api.user.get(f"/api/v1/trials/{number}")).json()["trial"]["experimentId"]
    assert (await api.user.delete(f"/api/v1/experiments/{above}")).status_code == 400
    await api.user.patch(f"/api/v1/trials/{number}", {"state": "STATE_COMPLETED"})
    assert (await api.user.delete(f"/api/v1/experiments/{above}")).status_code == 200
    for path in (f"/api/v1/trials/{number}/start", "/api/v1/trials"):
        reply = await api.user.post(path, {"experimentId": above, "unmanaged": True})
        assert (reply.status_code, "being deleted" in reply.text) == (400, True)


#: Method, path, body, status of the answer.
SENSELESS: list[tuple[str, str, object, int]] = [
    ("PUT", "/api/v1/experiments/by-external-id/x", {"config": CONFIG}, 400),
    ("PUT", "/api/v1/experiments/by-external-id/%20", NEW, 400),
    ("PUT", f"/api/v1/experiments/by-external-id/{'x' * 501}", NEW, 400),
    ("PUT", "/api/v1/experiments/by-external-id/x", {"config": "]", "unmanaged": True}, 400),
    ("POST", "/api/v1/trials", {"experimentId": 99, "unmanaged": True}, 404),
    ("POST", "/api/v1/trials", {"experimentId": 99}, 501),
    ("POST", "/api/v1/trials", {"experimentId": "x", "unmanaged": True}, 400),
    ("PUT", "/api/v1/trials", {"createTrialRequest": None, "externalTrialId": ""}, 501),
    ("POST", "/api/v1/trials/99/start", {}, 404),
    ("PATCH", "/api/v1/trials/99", {}, 404),
    ("PATCH", "/api/v1/trials/{own}", {"state": "STATE_NONSENSE"}, 400),
    ("PATCH", "/api/v1/trials/{own}", {"state": "STATE_PAUSED"}, 400),
    ("POST", "/api/v1/trials/99/kill", {}, 404),
    ("POST", "/task-logs", {"logs": []}, 400),
    ("POST", "/task-logs", [1], 400),
    ("POST", "/task-logs", [{"task_id": "no", "timestamp": "2026-01-01T00:00:00Z", "log": "x"}], 404),
    ("POST", "/api/v1/trial-source-info", {"trialSourceInfo": {"trialId": 1}}, 400),
    ("POST", "/api/v1/trials/profiler/metrics", {"batches": [{"labels": {"name": "x"}}]}, 400),
    ("POST", "/api/v1/trials/profiler/metrics", {"batches": 1}, 400),
    ("GET", "/api/v1/trials/by-external-id/x/y", None, 404),
    ("GET", "/api/v1/allocations/none", None, 404),
]


async def test_what_makes_no_sense(api: Api) -> None:
    """It is refused in words, and is never an error of ours."""
    own = str(await trial(api))
    replies = [await api.user.ask(how, path.replace("{own}", own), body) for how, path, body, _ in SENSELESS]
    assert [(reply.status_code, *case[:2]) for reply, case in zip(replies, SENSELESS, strict=True)] == [
        (case[3], *case[:2]) for case in SENSELESS
    ]


async def test_managed_trials_speak_by_their_task_alone(api: Api) -> None:
    """Their owner neither starts nor ends them, nor reports for them."""
    run = await running(api)
    place = f"/api/v1/trials/{run.trial}"
    for path, body in (
        (f"{place}/start", {}),
        (f"{place}/progress", {"progress": 0.1}),
        ("/api/v1/runs/start", {"runId": run.trial}),
    ):
        assert (await api.admin.post(path, body)).status_code in (400, 403), path
    assert (await api.admin.patch(place, {"state": "STATE_COMPLETED"})).status_code == 400


async def test_the_machines_samples(api: Api) -> None:
    """Samples in the older form are reports of the machine's groups."""
    number = await trial(api)
    batch = {
        "values": [0.5, 0.75],
        "timestamps": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"],
        "labels": {"trialId": number, "name": "gpu_util", "agentId": "a1", "gpuUuid": "GPU-1"},
    }
    reply = await api.user.post("/api/v1/trials/profiler/metrics", {"batches": [batch]})
    assert reply.status_code == 200, reply.text
    reply = await api.user.get("/api/v1/trials/metrics/trial_metrics", trialIds=number, group="gpu")
    assert "0.75" in reply.text


async def test_an_attempt_tells_of_its_service(api: Api) -> None:
    """It waits, then is ready; it says where it is reached; and all of it is seen by who asks for the attempt."""
    run = await running(api)
    place = run.path
    assert (await run.task.post(f"{place}/waiting", {})).status_code == 200
    allocation = (await api.user.get(place)).json()["allocation"]
    assert (allocation["state"], allocation["isReady"]) == ("STATE_WAITING", False)
    assert (await run.task.post(f"{place}/ready", {})).status_code == 200
    assert (await run.task.post(f"{place}/proxy_address", {"proxyAddress": "10.0.0.7"})).status_code == 200
    assert (await run.task.post(f"{place}/proxy_address", {"proxyAddress": ""})).status_code == 400
    allocation = (await api.user.get(place)).json()["allocation"]
    assert (allocation["state"], allocation["isReady"], allocation["allocationId"]) == (
        "STATE_RUNNING",
        True,
        run.attempt.allocation_id,
    )
    one_peer = {"requestUuid": "u", "numPeers": 1, "data": {"rank": 0}, "nodeName": "n"}
    assert (await run.task.post(f"{place}/notify_container_running", one_peer)).json() == {"data": [{"rank": 0}]}
