"""Lists of checkpoints over the wire: their order, and what of equal ones comes first."""

from __future__ import annotations

from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.master.metrics import reported, validated


async def test_checkpoints_are_listed_by_metric_with_the_missing_last(api: Api) -> None:
    """In both directions; states filter."""
    run = await running(api)
    for number, metric in enumerate((0.5, 0.9, None), start=1):
        uuid = UUID[:-1] + str(number)
        await report(run, uuid, number)
        if metric is not None:
            await validated(api, run.trial, number, metric)
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


async def test_of_equal_checkpoints_the_first_is_the_best(api: Api) -> None:
    """In lists by a metric in both directions, and for their trial."""
    run = await running(api)
    for number, end in enumerate("cab", start=1):
        await validated(api, run.trial, number, 0.5)
        await report(run, UUID[:-1] + end, number)
    path = "/api/v1/experiments/1/checkpoints"
    for query in ({"sortByAttr": "SORT_BY_SEARCHER_METRIC"}, {"sortByMetric": "accuracy"}):
        for direction in ("ORDER_BY_ASC", "ORDER_BY_DESC"):
            listed = (await api.user.get(path, orderBy=direction, **query)).json()["checkpoints"]
            assert [each["uuid"][-1] for each in listed] == ["c", "a", "b"]
    trial = (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"]
    assert trial["bestCheckpoint"]["uuid"][-1] == "c"


async def test_a_list_by_metric_begins_with_the_best(api: Api) -> None:
    """By the searcher's metric, or any other of the validations; the whole validation is shown at each step."""
    run = await running(api)
    for number, (accuracy, loss) in enumerate(((0.5, 3.0), (0.9, 2.0), (0.7, 1.0)), start=1):
        await reported(run, "validation", number, accuracy=accuracy, loss=loss)
        await report(run, UUID[:-1] + str(number), number)
    await report(run, UUID[:-1] + "4", 4)
    paths = ("/api/v1/experiments/1/checkpoints", f"/api/v1/trials/{run.trial}/checkpoints")

    async def steps(path: str, **query: object) -> list[int]:
        reply = await api.user.get(path, **query)
        assert reply.status_code == 200, reply.text
        return [each["metadata"]["steps_completed"] for each in reply.json()["checkpoints"]]

    for path in paths:
        assert await steps(path, sortByAttr="SORT_BY_SEARCHER_METRIC") == [2, 3, 1, 4]
        assert await steps(path, sortByMetric="accuracy") == [2, 3, 1, 4]
        assert await steps(path, sortByMetric="loss", orderBy="ORDER_BY_ASC") == [3, 2, 1, 4]
        assert await steps(path, sortByMetric="loss", orderBy="ORDER_BY_DESC", limit=2, offset=1) == [2, 3]
        assert len(await steps(path, sortByMetric="absent")) == 4
        assert (await api.user.get(path, sortByMetric="loss", sortByAttr="SORT_BY_UUID")).status_code == 400
        assert (await api.user.get(path, sortByAttr="SORT_BY_COLOUR")).status_code == 400
        assert (await api.user.get(path, states="STATE_GONE")).status_code == 400
        assert (await api.user.get(path, limit=-1)).status_code == 400
        assert (await api.user.get(path, offset=9)).status_code == 400
    first = (await api.user.get(paths[0])).json()["checkpoints"][0]
    assert first["training"]["validationMetrics"]["avgMetrics"] == {"accuracy": 0.5, "loss": 3.0}
    shown = (await api.user.get(f"/api/v1/checkpoints/{first['uuid']}")).json()["checkpoint"]
    assert shown["training"]["validationMetrics"]["avgMetrics"] == {"accuracy": 0.5, "loss": 3.0}
