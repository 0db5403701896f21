"""Trials and checkpoints over the wire."""

from __future__ import annotations

from tenax.config.resolve import stored_experiment
from tenax.search import searcher
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.metrics import reported, validated
from tests.kits.rows import add_trial


async def test_a_trial_shows_what_is_known_of_it(api: Api) -> None:
    """Every field that clients insist on is there; its checkpoint and best validation, too."""
    run = await running(api)
    await report(run)
    await validated(api, run.trial, 10, 0.9)
    trial = (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"]
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
    run = await running(api)
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    eve = await api.login("eve", "s3cret-!!")
    assert (await eve.post(f"/api/v1/trials/{run.trial}/kill")).status_code == 403
    assert (await api.user.post(f"/api/v1/trials/{run.trial}/kill")).status_code == 200
    assert (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"]["state"] == "STATE_STOPPING_KILLED"
    assert (await api.user.post("/api/v1/trials/77/kill")).status_code == 404


async def test_trials_of_an_experiment_are_listed(api: Api) -> None:
    """Filtered by what they do, in any order."""
    run = await running(api)
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
    assert (await api.user.get(path, states=["STATE_RUNNING"])).json()["trials"][0]["id"] == run.trial
    assert (await api.user.get(path, limit=1, offset=-1)).json()["trials"][0]["id"] == 2
    assert (await api.user.get("/api/v1/experiments/77/trials")).status_code == 404


async def test_what_happened_in_a_trial_is_one_list(api: Api) -> None:
    """Reports and checkpoints by step; filtered, ordered by a metric, with batches on request."""
    run = await running(api)
    for step in (1, 2):
        await reported(run, "training", step, loss=1.0 / step)
        await reported(run, "validation", step, accuracy=0.4 * step)
    await report(run, steps=2)
    path = f"/api/v1/trials/{run.trial}/workloads"

    async def kinds(**query: str) -> list[tuple[str, int]]:
        reply = await api.user.get(path, **query)
        assert reply.status_code == 200, reply.text
        workloads = [{kind: of for kind, of in each.items() if of is not None} for each in reply.json()["workloads"]]
        return [(next(iter(each)), next(iter(each.values()))["totalBatches"]) for each in workloads]

    everything = [("training", 1), ("validation", 1), ("training", 2), ("validation", 2), ("checkpoint", 2)]
    assert await kinds() == everything
    assert await kinds(orderBy="ORDER_BY_DESC") == everything[::-1]
    assert await kinds(filter="FILTER_OPTION_CHECKPOINT") == [("checkpoint", 2)]
    assert await kinds(filter="FILTER_OPTION_VALIDATION") == [("validation", 1), ("validation", 2)]
    assert (await kinds(sortKey="accuracy", orderBy="ORDER_BY_DESC"))[:2] == [("validation", 2), ("validation", 1)]
    assert await kinds(metricType="METRIC_TYPE_TRAINING", limit="1") == [("training", 1)]
    first = (await api.user.get(path, includeBatchMetrics="true")).json()["workloads"][0]["training"]["metrics"]
    assert first == {"avgMetrics": {"loss": 1.0}, "batchMetrics": [{"loss": 1.0}]}
    shown = (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"]
    assert shown["latestValidation"]["metrics"]["avgMetrics"] == {"accuracy": 0.8}
    assert shown["summaryMetrics"]["validation_metrics"]["accuracy"]["max"] == 0.8
    assert (shown["totalBatchesProcessed"], shown["searcherMetricValue"]) == (2, 0.8)


async def test_the_search_of_an_experiment_is_shown(api: Api) -> None:
    """Counts, rungs and journal of what was decided."""
    config = CONFIG.replace("name: random", "name: adaptive_asha").replace(
        "max_trials: 8", "max_trials: 4, time_metric: batches, max_time: 16"
    )
    number = (await create(api, config))["experiment"]["id"]
    path = f"/api/v1/experiments/{number}/search"
    seed = (await api.user.get(f"/api/v1/experiments/{number}")).json()["experiment"]["config"]["reproducibility"]
    resolved = stored_experiment((await api.user.get(f"/api/v1/experiments/{number}")).json()["config"])
    _, decisions = searcher.start(resolved.search, seed["experiment_seed"])
    method = (await api.user.get(path)).json()["method"]
    assert method == "adaptive_asha"
    after = (await api.user.get(path, limit=2)).json()
    assert (after["created"], after["running"], after["maxTrials"], after["shutDown"]) == (4, 4, 4, False)
    assert after["timeMetric"] == "batches"
    assert [entry["entry"]["type"] for entry in after["journal"]] == ["started", "create"]
    assert after["pagination"]["total"] == len(decisions) + 1
    assert after["rungs"][-1]["units"] == "16"
    assert (await api.user.get("/api/v1/experiments/77/search")).status_code == 404
