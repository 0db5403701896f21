"""Trials and checkpoints over the wire."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tenax.config import stored_experiment
from tenax.master.store import searches
from tenax.search import searcher
from tenax.search.journal import Started
from tests.kits.api import Api
from tests.kits.rows import add_trial
from tests.master.api.test_allocations import Running, running
from tests.master.api.test_experiments import CONFIG, create, refusal

UUID = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001"


async def report(one: Running, uuid: str = UUID, steps: int = 10, **more: object) -> None:
    """A checkpoint of the running attempt, as its task reports it."""
    body = {
        "uuid": uuid,
        "taskId": "ignored",
        "allocationId": "ignored",
        "state": "STATE_COMPLETED",
        "metadata": {"steps_completed": steps, "framework": "torch"},
        "resources": {"weights/": "0", "weights/w.bin": "4"},
        "training": {},
        **more,
    }
    reply = await one.task.post("/api/v1/checkpoints", body)
    assert reply.status_code == 200, reply.text


def stored_files(api: Api, uuid: str = UUID) -> Path:
    """Files of a checkpoint where the settings of the test put them."""
    place = api.master.settings.checkpoint_storage
    assert place is not None
    folder = Path(str(place["host_path"])) / uuid
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "w.bin").write_bytes(b"data")
    (folder / "metadata.json").write_text("{}")
    return folder


async def validated(api: Api, trial: int, step: int, metric: float) -> None:
    """The rows that a validation leaves behind."""
    async with api.master.db.transaction() as conn:
        experiment = await conn.fetchval("select experiment_id from trials where id = $1", trial)
        await conn.execute(
            "insert into search_inbox (experiment_id, trial_id, kind, at_key, fact)"
            " values ($1, $2, 'validation', $3, $4)",
            experiment,
            trial,
            step,
            {"v": 1, "type": "validated", "step": step, "metric": metric},
        )


async def test_a_trial_shows_what_is_known_of_it(api: Api) -> None:
    """Every field that clients insist on is there; its checkpoint and best validation, too."""
    one = await running(api)
    await report(one)
    await validated(api, one.trial, 10, 0.9)
    trial = (await api.user.get(f"/api/v1/trials/{one.trial}")).json()["trial"]
    assert trial["state"] == "STATE_RUNNING"
    assert (trial["hparams"], trial["restarts"], trial["runId"]) == ({"lr": 0.1}, 0, 1)
    assert trial["checkpointCount"] == 1
    assert trial["totalCheckpointSize"] == "4"
    assert trial["bestCheckpoint"]["uuid"] == UUID
    assert trial["bestCheckpoint"]["totalBatches"] == 10
    assert trial["taskIds"] == [trial["taskId"]]
    assert trial["latestValidation"] is None
    assert (await api.user.get("/api/v1/trials/77")).status_code == 404


async def test_a_trial_is_killed_by_its_owner(api: Api) -> None:
    """It is shown as stopping; someone else's is not theirs to kill."""
    one = await running(api)
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret"})
    eve = await api.login("eve", "s3cret")
    assert (await eve.post(f"/api/v1/trials/{one.trial}/kill")).status_code == 403
    assert (await api.user.post(f"/api/v1/trials/{one.trial}/kill")).status_code == 200
    assert (await api.user.get(f"/api/v1/trials/{one.trial}")).json()["trial"]["state"] == "STATE_STOPPING_KILLED"
    assert (await api.user.post("/api/v1/trials/77/kill")).status_code == 404


async def test_trials_of_an_experiment_are_listed(api: Api) -> None:
    """Filtered by what they do, in any order."""
    one = await running(api)
    async with api.master.db.transaction() as conn:
        await add_trial(conn, 1, 2)
    path = "/api/v1/experiments/1/trials"
    for order in (
        *("ID", "START_TIME", "END_TIME", "STATE", "BEST_VALIDATION_METRIC", "LATEST_VALIDATION_METRIC"),
        *("BATCHES_PROCESSED", "DURATION", "RESTARTS", "CHECKPOINT_SIZE", "LOG_RETENTION_DAYS"),
    ):
        reply = await api.user.get(path, sortBy=f"SORT_BY_{order}", orderBy="ORDER_BY_ASC")
        assert {trial["id"] for trial in reply.json()["trials"]} == {1, 2}, order
    queued = (await api.user.get(path, states=["STATE_QUEUED"])).json()
    assert [trial["id"] for trial in queued["trials"]] == [2]
    assert (await api.user.get(path, states=["STATE_RUNNING"])).json()["trials"][0]["id"] == one.trial
    assert (await api.user.get(path, limit=1, offset=-1)).json()["trials"][0]["id"] == 2
    assert (await api.user.get("/api/v1/experiments/77/trials")).status_code == 404


async def test_a_checkpoint_is_reported_by_its_attempt(api: Api) -> None:
    """Whose it is follows from the token; said twice it stands once; metrics at its step are shown beside it."""
    one = await running(api)
    for _ in range(2):
        await report(one)
    await validated(api, one.trial, 10, 0.75)
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["allocationId"] == one.attempt.allocation_id
    assert shown["resources"] == {"weights/": "0", "weights/w.bin": "4"}
    assert shown["state"] == "STATE_COMPLETED"
    training = shown["training"]
    assert (training["trialId"], training["experimentId"]) == (one.trial, 1)
    assert training["searcherMetric"] == 0.75
    assert training["validationMetrics"]["avgMetrics"] == {"accuracy": 0.75}
    assert training["experimentConfig"]["entrypoint"] == "python3 train.py"
    for path in ("/api/v1/experiments/1/checkpoints", f"/api/v1/trials/{one.trial}/checkpoints"):
        listed = (await api.user.get(path)).json()
        assert [each["uuid"] for each in listed["checkpoints"]] == [UUID]
        assert listed["pagination"]["total"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "../../etc"},
        {"uuid": ""},
        {"metadata": {"steps_completed": "ten"}},
        {"metadata": {"steps_completed": -1}},
        {"metadata": {"steps_completed": True}},
        {"state": "STATE_DELETED"},
        {"resources": {"a": "x"}},
    ],
)
async def test_a_report_that_cannot_be_is_refused(api: Api, change: dict[str, object]) -> None:
    """And leaves nothing behind."""
    one = await running(api)
    body = {"uuid": UUID, "metadata": {"steps_completed": 1}, "state": "STATE_COMPLETED", "resources": {}, **change}
    reply = await one.task.post("/api/v1/checkpoints", body)
    assert reply.status_code == 400, reply.text
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from checkpoints") == 0


async def test_checkpoints_are_listed_by_metric_with_the_missing_last(api: Api) -> None:
    """In both directions; states filter."""
    one = await running(api)
    for number, metric in enumerate((0.5, 0.9, None), start=1):
        uuid = UUID[:-1] + str(number)
        await report(one, uuid, number)
        if metric is not None:
            await validated(api, one.trial, number, metric)
    path = "/api/v1/experiments/1/checkpoints"

    async def steps(**query: str) -> list[int]:
        reply = await api.user.get(path, **query)
        return [each["metadata"]["steps_completed"] for each in reply.json()["checkpoints"]]

    assert await steps(sortByAttr="SORT_BY_SEARCHER_METRIC", orderBy="ORDER_BY_DESC") == [2, 1, 3]
    assert await steps(sortByAttr="SORT_BY_SEARCHER_METRIC", orderBy="ORDER_BY_ASC") == [1, 2, 3]
    assert await steps(sort_by_attr="SORT_BY_BATCH_NUMBER", order_by="ORDER_BY_DESC") == [3, 2, 1]
    assert await steps(states="STATE_DELETED") == []
    for order in ("UUID", "TRIAL_ID", "END_TIME", "STATE"):
        assert len(await steps(sortByAttr=f"SORT_BY_{order}")) == 3


async def test_what_is_left_of_a_checkpoint_can_be_told(api: Api) -> None:
    """Fewer files make it partly deleted, none deleted; files cannot be added, and strangers cannot tell."""
    one = await running(api)
    await report(one)

    async def tell(client: object, resources: dict[str, str]) -> int:
        body = {"checkpoints": [{"uuid": UUID, "resources": {"resources": resources}}]}
        return (await client.patch("/api/v1/checkpoints", body)).status_code  # type: ignore[attr-defined, no-any-return]

    async def state() -> str:
        return str((await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["state"])

    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret"})
    assert await tell(await api.login("eve", "s3cret"), {}) == 403
    assert await tell(one.task, {"other": "3"}) == 403
    assert await tell(one.task, {"weights/": "0"}) == 200
    assert await state() == "STATE_PARTIALLY_DELETED"
    assert await tell(one.task, {}) == 200
    assert await state() == "STATE_DELETED"


async def test_files_come_through_the_master(api: Api) -> None:
    """As a tar archive, compressed if that is accepted; not where the master cannot reach them."""
    one = await running(api)
    await report(one)
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code in (400, 404)
    stored_files(api)
    for accept, mode in (("application/gzip", "r:gz"), ("application/x-tar", "r:"), ("*/*", "r:")):
        reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
        assert "content-encoding" not in reply.headers
        with tarfile.open(fileobj=io.BytesIO(reply.content), mode=mode) as tar:
            assert sorted(tar.getnames()) == ["metadata.json", "weights", "weights/w.bin"]
            assert tar.extractfile("weights/w.bin").read() == b"data"


async def test_the_master_follows_no_link_out_of_a_checkpoint(api: Api, tmp_path: Path) -> None:
    """Users say where checkpoints are; what lies elsewhere on the master's machine is neither read nor deleted."""
    one = await running(api)
    await report(one)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.bin").write_text("k")
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    folder = stored_files(api)
    (folder / "inside").symlink_to(secret)
    body = {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*.bin"]}
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 400
    assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 400
    (folder / "inside").unlink()
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(secret)
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 400
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 400
    await report(one, "ssh", 11)
    assert (await api.user.get("/checkpoints/ssh")).status_code == 400
    assert (secret / "key.bin").read_text() == "k"


async def test_files_of_ended_trials_can_be_deleted(api: Api) -> None:
    """By pattern or whole; a live trial's are kept, since it may start from them."""
    one = await running(api)
    await report(one)
    folder = stored_files(api)
    refused = await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert refused.status_code == 400
    assert "still runs" in refusal(refused)
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    some = {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*.bin"]}
    assert (await api.user.post("/api/v1/checkpoints/rm", some)).status_code == 200
    assert not (folder / "weights" / "w.bin").exists()
    assert (folder / "metadata.json").exists()
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    assert not folder.exists()
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["state"] == "STATE_DELETED"


async def reported(one: Running, group: str, step: int, **metrics: object) -> None:
    """A report as the unmodified client makes one."""
    inner = {"avgMetrics": metrics, "batchMetrics": [{"loss": 1.0}] if group == "training" else None}
    told = {"trialId": one.trial, "trialRunId": 1, "stepsCompleted": step, "reportTime": None, "metrics": inner}
    reply = await one.task.post(f"/api/v1/trials/{one.trial}/metrics", {"group": group, "metrics": told})
    assert reply.status_code == 200, reply.text


async def test_what_happened_in_a_trial_is_one_list(api: Api) -> None:
    """Reports and checkpoints by step; filtered, ordered by a metric, with batches on request."""
    one = await running(api)
    for step in (1, 2):
        await reported(one, "training", step, loss=1.0 / step)
        await reported(one, "validation", step, accuracy=0.4 * step)
    await report(one, steps=2)
    path = f"/api/v1/trials/{one.trial}/workloads"

    async def kinds(**query: str) -> list[tuple[str, int]]:
        reply = await api.user.get(path, **query)
        assert reply.status_code == 200, reply.text
        told = [{kind: of for kind, of in each.items() if of is not None} for each in reply.json()["workloads"]]
        return [(next(iter(each)), next(iter(each.values()))["totalBatches"]) for each in told]

    everything = [("training", 1), ("validation", 1), ("training", 2), ("validation", 2), ("checkpoint", 2)]
    assert await kinds() == everything
    assert await kinds(orderBy="ORDER_BY_DESC") == everything[::-1]
    assert await kinds(filter="FILTER_OPTION_CHECKPOINT") == [("checkpoint", 2)]
    assert await kinds(filter="FILTER_OPTION_VALIDATION") == [("validation", 1), ("validation", 2)]
    assert (await kinds(sortKey="accuracy", orderBy="ORDER_BY_DESC"))[:2] == [("validation", 2), ("validation", 1)]
    assert await kinds(metricType="METRIC_TYPE_TRAINING", limit="1") == [("training", 1)]
    first = (await api.user.get(path, includeBatchMetrics="true")).json()["workloads"][0]["training"]["metrics"]
    assert first == {"avgMetrics": {"loss": 1.0}, "batchMetrics": [{"loss": 1.0}]}
    shown = (await api.user.get(f"/api/v1/trials/{one.trial}")).json()["trial"]
    assert shown["latestValidation"]["metrics"]["avgMetrics"] == {"accuracy": 0.8}
    assert shown["summaryMetrics"]["validation_metrics"]["accuracy"]["max"] == 0.8
    assert (shown["totalBatchesProcessed"], shown["searcherMetricValue"]) == (2, 0.8)


async def test_the_search_of_an_experiment_is_shown(api: Api) -> None:
    """Counts, rungs and journal of what was decided; before it began, nothing was."""
    config = CONFIG.replace("name: random", "name: adaptive_asha").replace(
        "max_trials: 8", "max_trials: 4, time_metric: batches, max_time: 16"
    )
    number = (await create(api, config))["experiment"]["id"]
    path = f"/api/v1/experiments/{number}/search"
    before = (await api.user.get(path)).json()
    assert (before["method"], before["created"], before["journal"]) == ("adaptive_asha", 0, [])
    seed = (await api.user.get(f"/api/v1/experiments/{number}")).json()["experiment"]["config"]["reproducibility"]
    resolved = stored_experiment((await api.user.get(f"/api/v1/experiments/{number}")).json()["config"])
    _, decisions = searcher.start(resolved.search, seed["experiment_seed"])
    async with api.master.db.transaction() as conn:
        await searches.append(conn, number, 1, [Started(seed["experiment_seed"]), *decisions])
    after = (await api.user.get(path, limit=2)).json()
    assert (after["created"], after["running"], after["maxTrials"], after["shutDown"]) == (4, 4, 4, False)
    assert after["timeMetric"] == "batches"
    assert [entry["entry"]["type"] for entry in after["journal"]] == ["started", "create"]
    assert after["pagination"]["total"] == len(decisions) + 1
    assert after["rungs"][-1]["units"] == "16"
    assert (await api.user.get("/api/v1/experiments/77/search")).status_code == 404
