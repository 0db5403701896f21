"""What happened in a trial, page by page: reports and checkpoints in one list, in any order."""

from __future__ import annotations

import pytest

from tenax.jsonvalue import Json, JsonObject
from tests.kits.api import Api
from tests.kits.telemetry import Book


@pytest.fixture
async def desk(api: Api) -> Book:
    """Trials of the master that answers."""
    return Book(api.master.db, api.master.intake)


async def story(desk: Book) -> int:
    """Ten training reports, two validations, two checkpoints (one deleted)."""
    trial = await desk.trial()
    for step in range(1, 11):
        batch: list[Json] | None = [{"b": step}] if step == 1 else None
        await desk.report(trial, "training", step, {"loss": float(10 - step), "n": "x"}, batchMetrics=batch)
    await desk.seal(trial)
    for step in (5, 10):
        await desk.report(trial, "validation", step, {"accuracy": step / 10})
    async with desk.database.transaction() as conn:
        for step, state in ((5, "DELETED"), (10, "COMPLETED")):
            await conn.execute(
                "insert into checkpoints (uuid, task_id, trial_id, run_id, state, steps_completed)"
                " select $1, task_id, id, 1, $2, $3 from trials where id = $4",
                f"00000000-0000-4000-8000-0000000000{step:02}", state, step, trial,
            )  # fmt: skip
    return trial


async def rows(api: Api, trial: int, **query: object) -> tuple[list[str], JsonObject]:
    """``t3`` is the training report at step 3, ``v`` a validation, ``c`` a checkpoint; and the pagination."""
    reply = await api.user.get(f"/api/v1/trials/{trial}/workloads", **query)
    assert reply.status_code == 200, reply.text
    kinds = {"training": "t", "validation": "v", "checkpoint": "c"}
    names = []
    for workload in reply.json()["workloads"]:
        ((kind, row),) = [(kind, row) for kind, row in workload.items() if row is not None]
        names.append(f"{kinds[kind]}{row['totalBatches']}")
    return names, reply.json()["pagination"]


async def test_pages_in_order(api: Api, desk: Book) -> None:
    """By step; at one step training, validation, checkpoint; from either end, any part of it."""
    trial = await story(desk)
    whole = ["t1", "t2", "t3", "t4", "t5", "v5", "c5", "t6", "t7", "t8", "t9", "t10", "v10", "c10"]
    assert (await rows(api, trial))[0] == whole
    assert (await rows(api, trial, orderBy="ORDER_BY_DESC"))[0] == whole[::-1]
    page, pagination = await rows(api, trial, offset=4, limit=4)
    assert page == whole[4:8]
    assert pagination == {"offset": 4, "limit": 4, "startIndex": 4, "endIndex": 8, "total": 14}
    assert (await rows(api, trial, offset=-2))[0] == whole[-2:]
    assert (await rows(api, trial, removeDeletedCheckpoints=True))[0] == [name for name in whole if name != "c5"]
    for query in (
        {"offset": 99},
        {"limit": -1},
        {"filter": "FILTER_OPTION_MOON"},
        {"metricType": "METRIC_TYPE_PROFILING"},
    ):
        assert (await api.user.get(f"/api/v1/trials/{trial}/workloads", **query)).status_code == 400
    assert (await api.user.get("/api/v1/trials/999/workloads")).status_code == 404


async def test_parts_of_the_story(api: Api, desk: Book) -> None:
    """Filters, kinds of metrics and groups choose."""
    trial = await story(desk)
    await desk.report(trial, "inference", 7, {"x": 1})
    assert (await rows(api, trial, filter="FILTER_OPTION_CHECKPOINT"))[0] == ["c5", "c10"]
    assert (await rows(api, trial, filter="FILTER_OPTION_VALIDATION"))[0] == ["v5", "v10"]
    assert (await rows(api, trial, filter="FILTER_OPTION_CHECKPOINT_OR_VALIDATION"))[0] == ["v5", "c5", "v10", "c10"]
    assert (await rows(api, trial, metricType="METRIC_TYPE_VALIDATION"))[0] == ["v5", "v10"]
    assert (await rows(api, trial, group="inference", metricType="METRIC_TYPE_TRAINING"))[0] == ["t7"]


async def test_by_the_value_of_a_metric(api: Api, desk: Book) -> None:
    """The least first, or the greatest; what lacks the metric comes last both ways."""
    trial = await story(desk)
    up, _ = await rows(api, trial, sortKey="loss", limit=3)
    down, _ = await rows(api, trial, sortKey="loss", orderBy="ORDER_BY_DESC", limit=3)
    assert (up, down) == (["t10", "t9", "t8"], ["t1", "t2", "t3"])
    assert set((await rows(api, trial, sortKey="loss", offset=10))[0]) == {"v5", "v10", "c5", "c10"}


async def test_batch_metrics_come_when_asked_for(api: Api, desk: Book) -> None:
    """They are large: without ``includeBatchMetrics`` they stay where they are."""
    trial = await story(desk)
    path = f"/api/v1/trials/{trial}/workloads"
    for included, expected in ((False, None), (True, [{"b": 1}])):
        reply = await api.user.get(path, limit=1, includeBatchMetrics=included)
        assert reply.json()["workloads"][0]["training"]["metrics"]["batchMetrics"] == expected


async def test_what_a_newer_run_has_hidden_is_not_in_the_story(api: Api, desk: Book) -> None:
    """Only the newer run's reports stand from where it went on."""
    trial = await story(desk)
    await desk.run(trial, 2)
    await desk.report(trial, "training", 4, {"loss": 1.0}, run=2)
    assert (await rows(api, trial, metricType="METRIC_TYPE_TRAINING"))[0] == ["t1", "t2", "t3", "t4"]
