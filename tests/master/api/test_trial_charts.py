"""Metrics as charts want them, trials side by side; and what the profiler measured."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tenax.jsonvalue import Json, JsonObject
from tenax.master.api.metrics.messages import CompareTrialsResponse
from tests.kits import rows
from tests.kits.api import Api, Client


async def add_trial(api: Api, count: int = 0, **metrics: list[Json]) -> tuple[int, Client]:
    """A trial in its first run that has reported ``metrics`` in training, a value a step; and its task."""
    async with api.master.db.transaction() as conn:
        await rows.add_agent(conn)
        experiment = await rows.add_experiment(conn)
        await conn.execute("update experiments set owner_id = 2 where id = $1", experiment)
        trial = await rows.add_trial(conn, experiment)
        attempt = await rows.run_attempt(conn, trial)
    task = await api.task(attempt.allocation_id)
    for step in range(max((len(values) for values in metrics.values()), default=0)):
        reported = {name: values[step] for name, values in metrics.items() if step < len(values)}
        await report(task, trial, "training", step + 1, reported)
    return trial, task


async def report(task: Client, trial: int, group: str, step: int | None, values: JsonObject) -> None:
    metrics = {"trialRunId": 1, "stepsCompleted": step, "metrics": {"avgMetrics": values}}
    reply = await task.post(f"/api/v1/trials/{trial}/metrics", {"group": group, "metrics": metrics})
    assert reply.status_code == 200, reply.text


@dataclass
class Point:
    """One point of a chart."""

    batches: int
    time: str
    values: JsonObject
    epoch: float | None = None


@dataclass
class Line:
    """One group of one trial."""

    trial: int
    group: str
    type: str
    data: list[Point]


async def compare(api: Api, **query: object) -> list[Line]:
    reply = await api.user.get("/api/v1/trials/time-series", **query)
    assert reply.status_code == 200, reply.text
    return [
        Line(compared["trial"]["id"], line["group"], line["type"], [Point(**point) for point in line["data"]])
        for compared in reply.json()["trials"]
        for line in compared["metrics"]
    ]


async def test_trials_side_by_side(api: Api) -> None:
    """In the order asked for, each with its lines; the same few points each time."""
    values: list[Json] = [5.0, 4.0, 9.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.25]
    trial, _ = await add_trial(api, loss=values, epoch=[step * 0.25 for step in range(10)])
    async with api.master.db.transaction() as conn:
        experiment = await conn.fetchval("select experiment_id from trials where id = $1", trial)
        other = await rows.add_trial(conn, experiment, 2)
    query = {"trialIds": [other, trial], "metricIds": ["training.loss"], "maxDatapoints": 3}
    first = await compare(api, **query)
    assert first == await compare(api, **query)
    assert [(line.trial, line.group, line.type, len(line.data)) for line in first] == [
        (other, "training", "METRIC_TYPE_TRAINING", 0),
        (trial, "training", "METRIC_TYPE_TRAINING", 3),
    ]
    (whole,) = await compare(api, trialIds=[trial], metricNames=["loss"], group="training")
    assert [(point.batches, point.values, point.epoch) for point in whole.data] == [
        (step + 1, {"loss": value}, step * 0.25) for step, value in enumerate(values)
    ]


async def test_an_answer_is_the_message_that_is_published(api: Api) -> None:
    """With all fields, also those of a point without an epoch, and the trial as its own route has it."""
    trial, _ = await add_trial(api, loss=["NaN", 1, 0.5], epoch=[0.5])
    reply = await api.user.get("/api/v1/trials/time-series", trialIds=[trial], metricIds=["training.loss", "g.none"])
    answer = reply.json()
    assert CompareTrialsResponse.model_validate(answer).model_dump(mode="json", by_alias=True) == answer
    (compared,) = answer["trials"]
    assert compared["trial"].keys() == (await api.user.get(f"/api/v1/trials/{trial}")).json()["trial"].keys()
    assert [point["epoch"] for point in compared["metrics"][0]["data"]] == [0.5, None, None]


async def test_a_range_of_points(api: Api) -> None:
    """By steps, by epochs, by time; both ends as they are said."""
    trial, _ = await add_trial(
        api, loss=[float(step) for step in range(1, 9)], epoch=[step / 4 for step in range(1, 9)]
    )

    async def steps(**query: object) -> list[int]:
        (line,) = await compare(api, trialIds=[trial], metricNames=["loss"], metricType="METRIC_TYPE_TRAINING", **query)
        return [point.batches for point in line.data]

    assert await steps(startBatches=3, endBatches=5) == [3, 4, 5]
    batches = {"timeSeriesFilter.name": "batches"}
    assert await steps(**batches, **{"timeSeriesFilter.integerRange.gt": 6}) == [7, 8]
    assert await steps(**batches, **{"timeSeriesFilter.integerRange.incl": [2, 5]}) == [2, 5]
    assert await steps(**batches, **{"timeSeriesFilter.integerRange.notIn": [1, 2, 3]}) == [4, 5, 6, 7, 8]
    epochs = {"timeSeriesFilter.name": "epoch"}
    assert await steps(**epochs, **{"timeSeriesFilter.doubleRange.gte": 1.5}) == [6, 7, 8]
    later = {"timeSeriesFilter.name": "time", "timeSeriesFilter.timeRange.gt": "2099-01-01T00:00:00Z"}
    assert await steps(**later) == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"trialIds": [1], "metricIds": ["loss"]}, 400),
        ({"trialIds": [1], "metricNames": ["loss"]}, 400),
        ({"trialIds": [77], "metricIds": ["training.loss"]}, 404),
        ({"trialIds": [1], "maxDatapoints": -1}, 400),
        ({"trialIds": ["x"]}, 400),
        ({"timeSeriesFilter.name": "weather"}, 400),
        ({"timeSeriesFilter.name": "epoch", "timeSeriesFilter.doubleRange.gt": "much"}, 400),
        ({"timeSeriesFilter.moonRange.gt": 1}, 400),
    ],
)
async def test_what_cannot_be_compared(api: Api, query: dict[str, object], status: int) -> None:
    """It is refused in words; no trials are no lines."""
    reply = await api.user.get("/api/v1/trials/time-series", **query)
    assert reply.status_code == status, reply.text
    assert await compare(api) == []


async def test_special_values_in_a_chart(api: Api) -> None:
    """They travel as the strings that stand for them."""
    trial, _ = await add_trial(api, loss=["NaN", 1.0, "Infinity"])
    (line,) = await compare(api, trialIds=[trial], metricIds=["training.loss"], maxDatapoints=10)
    assert [point.values["loss"] for point in line.data] == ["NaN", 1.0, "Infinity"]


async def lines(api: Api, path: str, **query: object) -> list[JsonObject]:
    reply = await api.user.get(path, **query)
    assert reply.status_code == 200, reply.text
    return [json.loads(line)["result"] for line in reply.text.splitlines()]


async def test_series_of_the_profiler(api: Api) -> None:
    """Each metric of each agent and device is a series; labels choose among them."""
    trial, task = await add_trial(api)
    for load in (10.0, 20.0):
        await report(task, trial, "gpu", None, {"a1": {"GPU-7": {"gpu_util": load}}})
        await report(task, trial, "cpu", None, {"a1": {"cpu_util_simple": load / 2}})
    (message,) = await lines(api, f"/api/v1/trials/{trial}/profiler/available_series")
    labels = message["labels"]
    assert isinstance(labels, list)
    of_gpu = {
        "trialId": trial, "name": "gpu_util", "agentId": "a1", "gpuUuid": "GPU-7",
        "metricType": "PROFILER_METRIC_TYPE_SYSTEM",
    }  # fmt: skip
    assert of_gpu in labels
    assert len(labels) == 2
    path = f"/api/v1/trials/{trial}/profiler/metrics"
    (message,) = await lines(api, path, **{"labels.name": "gpu_util"})
    batch = message["batch"]
    assert isinstance(batch, dict)
    assert (batch["labels"], batch["values"], batch["batches"]) == (of_gpu, [10.0, 20.0], [0, 0])
    assert len(await lines(api, path)) == 2
    assert await lines(api, path, **{"labels.agentId": "other"}) == []
    assert await lines(api, path, **{"labels.metricType": "PROFILER_METRIC_TYPE_TIMING"}) == []
    assert (await api.user.get("/api/v1/trials/999/profiler/metrics")).status_code == 404


async def test_series_are_followed_to_the_end_of_the_trial(api: Api) -> None:
    """With ``follow`` what there is comes at once, and the stream ends with the trial."""
    trial, task = await add_trial(api)
    await report(task, trial, "cpu", None, {"a1": {"cpu_util_simple": 1.0}})
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
    (message,) = await lines(api, f"/api/v1/trials/{trial}/profiler/metrics", follow=True)
    assert message["batch"]["values"] == [1.0]  # type: ignore[index,call-overload]
