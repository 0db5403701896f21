"""Metrics of the trials of an experiment: the history of the best, and streams of what a page of an experiment draws.

Rules of the streams: the first message comes at once; others follow where there is news, looked for once in a period;
a stream ends when the experiment has, or with the master.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, cast

from fastapi import Query
from fastapi.responses import StreamingResponse

from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import ndjson
from tenax.master.api.metrics.messages import (
    DataPoint,
    GetValidationHistoryResponse,
    MetricBatchesResponse,
    MetricIdentifier,
    MetricNamesResponse,
    SampledTrial,
    SnapshotTrial,
    TrialsSampleResponse,
    TrialsSnapshotResponse,
    ValidationHistoryEntry,
)
from tenax.master.api.trials.messages import MetricType
from tenax.master.context import Master
from tenax.master.reading.charts import EPOCH, Bounds, ChartQuery, points
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.metrics import series, summaries
from tenax.master.store.metrics.series import PackedSeries
from tenax.wire.message import Message

routes = Routes("Experiments")

_PERIOD_S, _LONGEST_PERIOD_S = 30, 3600
_TRIALS, _POINTS = 25, 1000
#: Trials whose metrics are read together: what is held in memory at a time.
_READ_AT_ONCE = 100
_GROUPS = {MetricType.TRAINING: "training", MetricType.VALIDATION: "validation"}
Period = Annotated[int, Query(ge=0, le=_LONGEST_PERIOD_S)]
#: The next message and whether anything may follow it; None: no news.
Look = Callable[[], Awaitable[tuple[Message | None, bool]]]


@routes.get(
    "/api/v1/experiments/{experiment_id}/validation-history", "GetExperimentValidationHistory", allow=Allow.USER
)
async def get_history(master: MasterDep, experiment_id: int) -> GetValidationHistoryResponse:
    """The validations that were the best so far when they came."""
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, experiment_id)
        found = await summaries.improvements(conn, experiment_id, _smaller_is_better(view.config))
    return GetValidationHistoryResponse(
        validation_history=[
            ValidationHistoryEntry(trial_id=one.trial_id, end_time=one.at, searcher_metric=one.metric) for one in found
        ]
    )


@routes.get(
    "/api/v1/experiments/metrics-stream/metric-names",
    "ExpMetricNames",
    allow=Allow.USER,
    response_class=StreamingResponse,
)
async def stream_names(
    master: MasterDep,
    ids: Annotated[list[int], Query()] = [],  # noqa: B006
    period_seconds: Period = 0,
) -> StreamingResponse:
    """Names of the metrics that experiments report: a stream."""
    if not ids:
        raise InvalidInput("ids is empty: name at least one experiment")
    async with master.db.connection() as conn:
        await summaries.searched(conn, ids)
    told: set[tuple[str, str]] = set()
    started = False

    async def look() -> tuple[Message | None, bool]:
        nonlocal started
        found: set[tuple[str, str]] = set()
        async with master.db.connection() as conn:
            searched, going_on = await summaries.searched(conn, ids)
            for one in dict.fromkeys(ids):
                for group, names in (await summaries.names_of_experiment(conn, one)).items():
                    found.update((group, name) for name in names)
        news = sorted(found - told)
        told.update(news)
        first, started = not started, True
        message = MetricNamesResponse(
            searcher_metrics=searched,
            training_metrics=[name for group, name in news if group == "training"],
            validation_metrics=[name for group, name in news if group == "validation"],
            metric_names=[MetricIdentifier(group=group, name=name) for group, name in news],
        )
        return (message if news or first else None), going_on

    return _stream(master, look, period_seconds)


@routes.get(
    "/api/v1/experiments/{experiment_id}/metrics-stream/batches",
    "MetricBatches",
    allow=Allow.USER,
    response_class=StreamingResponse,
)
async def stream_batches(
    master: MasterDep,
    experiment_id: int,
    metric_name: str,
    group: str = "",
    metric_type: Annotated[MetricType, Query()] = MetricType.UNSPECIFIED,
    period_seconds: Period = 0,
) -> StreamingResponse:
    """Steps at which trials reported a metric: a stream."""
    of = await _checked(master, experiment_id, metric_name, group, metric_type)
    told: set[int] = set()
    started = False

    async def look() -> tuple[Message | None, bool]:
        nonlocal started
        found: set[int] = set()
        trials, going_on = await _trials(master, experiment_id, None)
        for line in (await _points(master, trials, of, ChartQuery())).values():
            found.update(int(str(point["batches"])) for point in line)
        news = sorted(found - told)
        told.update(news)
        first, started = not started, True
        return (MetricBatchesResponse(batches=news) if news or first else None), going_on

    return _stream(master, look, period_seconds)


@routes.get(
    "/api/v1/experiments/{experiment_id}/metrics-stream/trials-snapshot",
    "TrialsSnapshot",
    allow=Allow.USER,
    response_class=StreamingResponse,
)
async def stream_snapshot(
    master: MasterDep,
    experiment_id: int,
    metric_name: str,
    batches_processed: int,
    batches_margin: Annotated[int, Query(ge=0)] = 0,
    group: str = "",
    metric_type: Annotated[MetricType, Query()] = MetricType.UNSPECIFIED,
    period_seconds: Period = 0,
) -> StreamingResponse:
    """A metric of every trial, nearest to a step and at most ``batchesMargin`` away from it: a stream."""
    of = await _checked(master, experiment_id, metric_name, group, metric_type)
    near = ChartQuery(steps=Bounds(low=batches_processed - batches_margin, high=batches_processed + batches_margin))
    told: dict[int, SnapshotTrial] = {}
    started = False

    async def look() -> tuple[Message | None, bool]:
        nonlocal started
        trials, going_on = await _trials(master, experiment_id, None)
        lines = await _points(master, trials, of, near)
        news = []
        for trial in trials:
            if trial.id not in lines:
                continue
            point = min(lines[trial.id], key=lambda one: abs(int(str(one["batches"])) - batches_processed))
            message = SnapshotTrial(
                trial_id=trial.id,
                hparams=trial.hparams,
                metric=float(str(cast(JsonObject, point["values"])[metric_name])),
                batches_processed=int(str(point["batches"])),
            )
            if told.get(trial.id) != message:
                told[trial.id] = message
                news.append(message)
        first, started = not started, True
        return (TrialsSnapshotResponse(trials=news) if news or first else None), going_on

    return _stream(master, look, period_seconds)


@routes.get(
    "/api/v1/experiments/{experiment_id}/metrics-stream/trials-sample",
    "TrialsSample",
    allow=Allow.USER,
    response_class=StreamingResponse,
)
async def stream_sample(
    master: MasterDep,
    experiment_id: int,
    metric_name: str,
    max_trials: Annotated[int, Query(ge=0, le=1000)] = 0,
    max_datapoints: Annotated[int, Query(ge=0)] = 0,
    start_batches: int = 0,
    end_batches: int = 0,
    group: str = "",
    metric_type: Annotated[MetricType, Query()] = MetricType.UNSPECIFIED,
    period_seconds: Period = 0,
) -> StreamingResponse:
    """A metric of the best trials as lines of a chart, and which trials these are: a stream."""
    of = await _checked(master, experiment_id, metric_name, group, metric_type)
    steps = Bounds(low=start_batches or None, high=end_batches or None)
    wanted = ChartQuery(max_datapoints or _POINTS, steps)
    #: Trial -> its last step that was told.
    told: dict[int, int] = {}
    started = False

    async def look() -> tuple[Message | None, bool]:
        nonlocal started
        trials, going_on = await _trials(master, experiment_id, max_trials or _TRIALS)
        chosen = {trial.id for trial in trials}
        promoted = [trial.id for trial in trials if trial.id not in told]
        demoted = sorted(told.keys() - chosen)
        for one in demoted:
            del told[one]
        lines = await _points(master, trials, of, wanted)
        sampled = []
        for trial in trials:
            found = lines.get(trial.id, [])
            news = [point for point in found if int(str(point["batches"])) > told.get(trial.id, -1)]
            told[trial.id] = max((int(str(point["batches"])) for point in found), default=told.get(trial.id, -1))
            data = [DataPoint.model_validate(point) for point in news]
            sampled.append(SampledTrial(trial_id=trial.id, hparams=trial.hparams, data=data))
        first, started = not started, True
        if not (first or promoted or demoted or any(one.data for one in sampled)):
            return None, going_on
        return TrialsSampleResponse(trials=sampled, promoted_trials=promoted, demoted_trials=demoted), going_on

    return _stream(master, look, period_seconds)


def _smaller_is_better(config: JsonObject) -> bool:
    searcher = config.get("searcher")
    return not (isinstance(searcher, dict) and searcher.get("smaller_is_better") is False)


async def _checked(master: Master, experiment_id: int, metric: str, group: str, kind: MetricType) -> tuple[str, str]:
    """(group, metric). Raises InvalidInput, NotFound."""
    named = group or _GROUPS.get(kind, "")
    if not metric or not named:
        raise InvalidInput("name the metric: metricName, and its group as group or metricType")
    async with master.db.connection() as conn:
        await experiment_lists.owner(conn, experiment_id)
    return named, metric


async def _trials(master: Master, experiment_id: int, most: int | None) -> tuple[Sequence[summaries.Sampled], bool]:
    async with master.db.connection() as conn:
        _, going_on = await summaries.searched(conn, [experiment_id])
        return await summaries.best_trials(conn, experiment_id, most), going_on


async def _points(
    master: Master, trials: Sequence[summaries.Sampled], of: tuple[str, str], wanted: ChartQuery
) -> dict[int, list[JsonObject]]:
    """Trial -> points, of those that have any. Read for many trials at a time, so that few statements are made."""
    group, metric = of
    found: dict[int, list[JsonObject]] = {}
    for start in range(0, len(trials), _READ_AT_ONCE):
        numbers = [trial.id for trial in trials[start : start + _READ_AT_ONCE]]
        async with master.db.snapshot() as conn:
            groups = [one for one in await series.groups_of(conn, numbers) if one.name == group]
            packed = await series.series_of(conn, groups, (metric, EPOCH))
        found |= await master.readers.run(_unpacked, packed, wanted)
    return found


def _unpacked(packed: Mapping[int, Sequence[PackedSeries]], wanted: ChartQuery) -> dict[int, list[JsonObject]]:
    told = {trial_id: points([line], epochs, wanted) for trial_id, (line, epochs) in packed.items()}
    return {trial_id: found for trial_id, found in told.items() if found}


def _stream(master: Master, look: Look, period_s: int) -> StreamingResponse:
    return ndjson(_messages(master, look, period_s or _PERIOD_S))


async def _messages(master: Master, look: Look, period_s: int) -> AsyncIterator[bytes]:
    while True:
        message, going_on = await look()
        if message is not None:
            yield b'{"result":' + message.model_dump_json(by_alias=True).encode() + b"}\n"
        if not going_on or master.shutdown.is_set():
            return
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(master.shutdown.wait(), period_s)
