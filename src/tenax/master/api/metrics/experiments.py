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
from tenax.master.api.metrics import messages
from tenax.master.api.metrics.charts import GROUPS, READ_AT_ONCE
from tenax.master.api.trials.messages import MetricType
from tenax.master.context import Master
from tenax.master.reading.charts import EPOCH, Bounds, ChartQuery, points
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.metrics import series, summaries
from tenax.master.store.metrics.series import PackedSeries
from tenax.wire.message import Message

routes = Routes("Experiments")

_PERIOD_S, _MAX_PERIOD_S = 30, 3600
_TRIALS, _POINTS = 25, 1000
Period = Annotated[int, Query(ge=0, le=_MAX_PERIOD_S)]
#: The next message and whether anything may follow it; None: no news, which only the first message may be without.
NextMessage = Callable[[bool], Awaitable[tuple[Message | None, bool]]]


@routes.get(
    "/api/v1/experiments/{experiment_id}/validation-history", "GetExperimentValidationHistory", allow=Allow.USER
)
async def get_history(master: MasterDep, experiment_id: int) -> messages.GetValidationHistoryResponse:
    """The validations that were the best so far when they came."""
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, experiment_id)
        improvements = await summaries.improvements(conn, experiment_id, _smaller_is_better(view.config))
    return messages.GetValidationHistoryResponse(
        validation_history=[
            messages.ValidationHistoryEntry(
                trial_id=improvement.trial_id, end_time=improvement.at, searcher_metric=improvement.metric
            )
            for improvement in improvements
        ]
    )


@routes.stream("/api/v1/experiments/metrics-stream/metric-names", "ExpMetricNames", allow=Allow.USER)
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
    sent: set[tuple[str, str]] = set()

    async def next_message(first: bool) -> tuple[Message | None, bool]:
        current: set[tuple[str, str]] = set()
        async with master.db.connection() as conn:
            searched, running = await summaries.searched(conn, ids)
            for experiment_id in dict.fromkeys(ids):
                for group, names in (await summaries.names_of_experiment(conn, experiment_id)).items():
                    current.update((group, name) for name in names)
        news = sorted(current - sent)
        sent.update(news)
        message = messages.MetricNamesResponse(
            searcher_metrics=searched,
            training_metrics=[name for group, name in news if group == "training"],
            validation_metrics=[name for group, name in news if group == "validation"],
            metric_names=[messages.MetricIdentifier(group=group, name=name) for group, name in news],
        )
        return (message if news or first else None), running

    return _stream(master, next_message, period_seconds)


@routes.stream("/api/v1/experiments/{experiment_id}/metrics-stream/batches", "MetricBatches", allow=Allow.USER)
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
    sent: set[int] = set()

    async def next_message(first: bool) -> tuple[Message | None, bool]:
        current: set[int] = set()
        trials, running = await _trials(master, experiment_id, None)
        for line in (await _points(master, trials, of, ChartQuery())).values():
            current.update(int(str(point["batches"])) for point in line)
        news = sorted(current - sent)
        sent.update(news)
        return (messages.MetricBatchesResponse(batches=news) if news or first else None), running

    return _stream(master, next_message, period_seconds)


@routes.stream("/api/v1/experiments/{experiment_id}/metrics-stream/trials-snapshot", "TrialsSnapshot", allow=Allow.USER)
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
    sent: dict[int, messages.SnapshotTrial] = {}

    async def next_message(first: bool) -> tuple[Message | None, bool]:
        trials, running = await _trials(master, experiment_id, None)
        lines = await _points(master, trials, of, near)
        news = []
        for trial in trials:
            if trial.id not in lines:
                continue
            point = min(lines[trial.id], key=lambda candidate: abs(int(str(candidate["batches"])) - batches_processed))
            message = messages.SnapshotTrial(
                trial_id=trial.id,
                hparams=trial.hparams,
                metric=float(str(cast(JsonObject, point["values"])[metric_name])),
                batches_processed=int(str(point["batches"])),
            )
            if sent.get(trial.id) != message:
                sent[trial.id] = message
                news.append(message)
        return (messages.TrialsSnapshotResponse(trials=news) if news or first else None), running

    return _stream(master, next_message, period_seconds)


@routes.stream("/api/v1/experiments/{experiment_id}/metrics-stream/trials-sample", "TrialsSample", allow=Allow.USER)
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
    selection = ChartQuery(max_datapoints or _POINTS, steps)
    #: Trial -> the last of its steps that was sent.
    sent: dict[int, int] = {}

    async def next_message(first: bool) -> tuple[Message | None, bool]:
        trials, running = await _trials(master, experiment_id, max_trials or _TRIALS)
        chosen = {trial.id for trial in trials}
        promoted = [trial.id for trial in trials if trial.id not in sent]
        demoted = sorted(sent.keys() - chosen)
        for trial_id in demoted:
            del sent[trial_id]
        lines = await _points(master, trials, of, selection)
        sampled = []
        for trial in trials:
            line = lines.get(trial.id, [])
            news = [point for point in line if int(str(point["batches"])) > sent.get(trial.id, -1)]
            sent[trial.id] = max((int(str(point["batches"])) for point in line), default=sent.get(trial.id, -1))
            data = [messages.DataPoint.model_validate(point) for point in news]
            hparams = trial.hparams if trial.id in promoted else None
            sampled.append(messages.SampledTrial(trial_id=trial.id, hparams=hparams, data=data))
        if not (first or promoted or demoted or any(sample.data for sample in sampled)):
            return None, running
        return messages.TrialsSampleResponse(trials=sampled, promoted_trials=promoted, demoted_trials=demoted), running

    # Readers draw an empty chart on it.
    nothing = messages.TrialsSampleResponse(trials=[], promoted_trials=[], demoted_trials=[])
    return _stream(master, next_message, period_seconds, begins=nothing)


def _smaller_is_better(config: JsonObject) -> bool:
    searcher = config.get("searcher")
    return not (isinstance(searcher, dict) and searcher.get("smaller_is_better") is False)


async def _checked(master: Master, experiment_id: int, metric: str, group: str, kind: MetricType) -> tuple[str, str]:
    """(group, metric). Raises InvalidInput, NotFound."""
    named = group or GROUPS.get(kind, "")
    if not metric or not named:
        raise InvalidInput("name the metric: metricName, and its group as group or metricType")
    async with master.db.connection() as conn:
        await experiment_lists.owner(conn, experiment_id)
    return named, metric


async def _trials(master: Master, experiment_id: int, most: int | None) -> tuple[Sequence[summaries.Sampled], bool]:
    async with master.db.connection() as conn:
        _, running = await summaries.searched(conn, [experiment_id])
        return await summaries.best_trials(conn, experiment_id, most), running


async def _points(
    master: Master, trials: Sequence[summaries.Sampled], of: tuple[str, str], selection: ChartQuery
) -> dict[int, list[JsonObject]]:
    """Trial -> points, of those that have any. Read for many trials at a time, so that few statements are made."""
    group, metric = of
    lines: dict[int, list[JsonObject]] = {}
    for start in range(0, len(trials), READ_AT_ONCE):
        numbers = [trial.id for trial in trials[start : start + READ_AT_ONCE]]
        async with master.db.snapshot() as conn:
            groups = [candidate for candidate in await series.groups_of(conn, numbers) if candidate.name == group]
            packed = await series.series_of(conn, groups, (metric, EPOCH), selection.steps.ends)
        lines |= await master.readers.run(_unpacked, packed, selection)
    return lines


def _unpacked(packed: Mapping[int, Sequence[PackedSeries]], selection: ChartQuery) -> dict[int, list[JsonObject]]:
    lines = {trial_id: points([line], epochs, selection) for trial_id, (line, epochs) in packed.items()}
    return {trial_id: data for trial_id, data in lines.items() if data}


def _stream(
    master: Master, next_message: NextMessage, period_s: int, *, begins: Message | None = None
) -> StreamingResponse:
    return ndjson(_messages(master, next_message, period_s or _PERIOD_S, begins))


async def _messages(
    master: Master, next_message: NextMessage, period_s: int, begins: Message | None
) -> AsyncIterator[bytes]:
    if begins is not None:
        yield _line(begins)
    first = True
    while True:
        message, running = await next_message(first)
        first = False
        if message is not None:
            yield _line(message)
        if not running or master.shutdown.is_set():
            return
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(master.shutdown.wait(), period_s)


def _line(message: Message) -> bytes:
    return b'{"result":' + message.model_dump_json(by_alias=True).encode() + b"}\n"
