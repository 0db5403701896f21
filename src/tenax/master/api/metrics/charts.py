"""Trials side by side, as few points per metric as a chart can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from fastapi import Depends, Query, Response
from starlette.requests import Request

from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.metrics.messages import CompareTrialsResponse
from tenax.master.api.trials.messages import MetricType, Trial
from tenax.master.api.trials.routes import whole_trials
from tenax.master.context import Master
from tenax.master.reading.charts import EPOCH, Bounds, ChartQuery, chart, points
from tenax.master.store.metrics import series
from tenax.master.store.metrics.series import PackedSeries
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.cuts import PROFILING
from tenax.master.telemetry.reports import microseconds
from tenax.wire.message import Message

routes = Routes("Trials")

#: Trials, and metrics of each, that are compared at most.
_MAX_TRIALS, _MAX_METRICS = 1000, 200
#: Trials whose metrics are read together: what is held in memory at a time.
READ_AT_ONCE = 100
_TYPES = {"training": MetricType.TRAINING, "validation": MetricType.VALIDATION}
GROUPS = {MetricType.TRAINING: "training", MetricType.VALIDATION: "validation"}
Texts = Annotated[list[str], Query()]
Numbers = Annotated[list[int], Query()]
#: Beginnings of the names of query parameters, without regard to how they are spelled.
_FILTER = "timeseriesfilter."


@dataclass(frozen=True, slots=True)
class _GroupMetrics:
    """A group, and the metrics of it that are asked for."""

    group: str
    names: tuple[str, ...]


async def _selection(
    request: Request,
    max_datapoints: Annotated[int, Query(ge=0)] = 0,
    start_batches: int = 0,
    end_batches: int = 0,
) -> ChartQuery:
    """The points that are asked for; a filter holds for steps, times or epochs, as its name says."""
    bounds = _bounds(request)
    steps = Bounds(low=start_batches or None, high=end_batches or None)
    name = bounds.pop("name", None)
    ranged = bounds.get("integerrange") or bounds.get("doublerange")
    if name == EPOCH and isinstance(ranged, Bounds):
        return ChartQuery(max_datapoints, steps, epochs=ranged)
    if name not in (None, "batches", "time", EPOCH):
        raise InvalidInput(f"timeSeriesFilter.name is {name!r}: batches, epoch, time are all")
    times = bounds.get("timerange")
    return ChartQuery(
        max_datapoints,
        _narrower(steps, ranged if isinstance(ranged, Bounds) else Bounds()),
        times if isinstance(times, Bounds) else Bounds(),
    )


def _narrower(first: Bounds, second: Bounds) -> Bounds:
    """Both hold: where ``second`` says nothing, ``first`` does."""
    low = max((bound for bound in (first.low, second.low) if bound is not None), default=None)
    high = min((bound for bound in (first.high, second.high) if bound is not None), default=None)
    return Bounds(low, high, second.above, second.below, second.among, second.without)


@routes.get("/api/v1/trials/time-series", "CompareTrials", allow=Allow.USER, response_model=CompareTrialsResponse)
async def compare(
    master: MasterDep,
    selection: Annotated[ChartQuery, Depends(_selection)],
    trial_ids: Numbers = [],  # noqa: B006
    metric_names: Texts = [],  # noqa: B006
    metric_ids: Texts = [],  # noqa: B006
    metric_type: Annotated[MetricType, Query()] = MetricType.UNSPECIFIED,
    group: str = "",
) -> Response:
    """Metrics of trials, at most ``maxDatapoints`` of each metric (0: all); least and greatest values are kept.

    Metrics are named by ``metricIds`` (``group.name``), or by ``metricNames`` of one ``group`` or ``metricType``.
    """
    lines = _lines(metric_names, metric_ids, group or GROUPS.get(metric_type, ""))
    if len(trial_ids) > _MAX_TRIALS:
        raise InvalidInput(f"at most {_MAX_TRIALS} trials are compared, and {len(trial_ids)} are asked for")
    ids = list(dict.fromkeys(trial_ids))
    async with master.db.snapshot() as conn:
        trials = await whole_trials(conn, await trial_lists.views(conn, ids))
    missing = set(ids) - {trial.id for trial in trials}
    if missing:
        raise NotFound(f"trial {min(missing)} not found")
    metrics: dict[int, list[JsonObject]] = {}
    for start in range(0, len(trials), READ_AT_ONCE):
        numbers = [trial.id for trial in trials[start : start + READ_AT_ONCE]]
        metrics |= await _metrics(master, numbers, lines, selection)
    return Response(await master.readers.run(_compared, trials, metrics), media_type="application/json")


def _compared(trials: Sequence[Trial], metrics: Mapping[int, list[JsonObject]]) -> bytes:
    """A `CompareTrialsResponse`, as text at once: thousands of points take less so than as messages."""
    return msgspec.json.encode(
        {"trials": [{"trial": msgspec.Raw(_json(trial)), "metrics": metrics[trial.id]} for trial in trials]}
    )


def _json(message: Message) -> bytes:
    return message.__pydantic_serializer__.to_json(message, by_alias=True)


@routes.get("/api/v1/trials/series", "GetSeriesOfTrials", allow=Allow.USER, response_class=Response)
async def series_of_trials(
    master: MasterDep,
    trial_ids: Annotated[list[int], Query(max_length=READ_AT_ONCE)],
    metric: str,
    group: str = "training",
    max_points: Annotated[int, Query(ge=0)] = 1000,
) -> Response:
    """One metric of several trials for one chart: ``{"series": [{"trialId", "total", "steps", "times", "values"}]}``.

    Each is as ``GetTrialSeries`` has it; trials that have not reported the metric are left out.
    """
    ids = list(dict.fromkeys(trial_ids))
    async with master.db.snapshot() as conn:
        missing = await series.unknown_trials(conn, ids)
        if missing:
            raise NotFound(f"trial {missing[0]} not found")
        groups = [stored for stored in await series.groups_of(conn, ids) if stored.name == group]
        packed = await series.series_of(conn, groups, [metric])
    body = await master.readers.run(_lines_of_chart, ids, packed, max_points)
    return Response(body, media_type="application/json")


def _lines_of_chart(trial_ids: list[int], packed: Mapping[int, Sequence[PackedSeries]], most: int) -> bytes:
    drawn: list[JsonObject] = []
    for trial_id in trial_ids:
        for line in packed.get(trial_id, ()):
            unpacked = line.unpack()
            if len(unpacked):
                drawn.append({"trialId": trial_id, **chart(unpacked, most)})
    return msgspec.json.encode({"series": drawn})


async def _metrics(
    master: Master, trial_ids: list[int], lines: list[_GroupMetrics], selection: ChartQuery
) -> dict[int, list[JsonObject]]:
    """Trial -> `DownsampledMetrics` of each group that is asked for."""
    sampled: dict[int, list[JsonObject]] = {trial_id: [] for trial_id in trial_ids}
    for line in lines:
        async with master.db.snapshot() as conn:
            groups = [group for group in await series.groups_of(conn, trial_ids) if group.name == line.group]
            packed = await series.series_of(conn, groups, (*line.names, EPOCH), selection.steps.ends)
        kind = MetricType.PROFILING if line.group in PROFILING else _TYPES.get(line.group, MetricType.UNSPECIFIED)
        for trial_id, data in (await master.readers.run(_unpacked, trial_ids, packed, selection)).items():
            sampled[trial_id].append({"data": data, "group": line.group, "type": kind.value})
    return sampled


def _unpacked(
    trial_ids: list[int], packed: Mapping[int, Sequence[PackedSeries]], selection: ChartQuery
) -> dict[int, list[Json]]:
    """Trial -> a `DataPoint` of each step."""
    data: dict[int, list[Json]] = {}
    for trial_id in trial_ids:
        *those, epochs = packed.get(trial_id) or (None,)
        known = [line for line in those if line is not None]
        data[trial_id] = [{"epoch": None, **point} for point in points(known, epochs, selection)]
    return data


def _lines(names: list[str], ids: list[str], group: str) -> list[_GroupMetrics]:
    if len(names) + len(ids) > _MAX_METRICS:
        raise InvalidInput(f"at most {_MAX_METRICS} metrics are compared at a time")
    chosen: dict[str, dict[str, None]] = {}
    if names and not group:
        raise InvalidInput("metricNames are of a group: name it as group, or as metricType")
    if names:
        chosen[group] = dict.fromkeys(names)
    for metric_id in ids:
        of, dot, name = metric_id.partition(".")
        if not dot or not of or not name:
            raise InvalidInput(f"{metric_id!r} is no metric: metricIds are group.name")
        chosen.setdefault(of, {})[name] = None
    return [_GroupMetrics(of, tuple(them)) for of, them in chosen.items()]


def _bounds(request: Request) -> dict[str, Bounds | str]:
    """``timeSeriesFilter.integerRange.gt=5`` as ``{"integerrange": Bounds(above=5)}``; either spelling."""
    texts: dict[str, dict[str, list[str]]] = {}
    name: str | None = None
    for key, value in request.query_params.multi_items():
        plain = key.replace("_", "").lower()
        if not plain.startswith(_FILTER):
            continue
        what, _, sign = plain.removeprefix(_FILTER).partition(".")
        if what == "name":
            name = value
        else:
            texts.setdefault(what, {}).setdefault(sign, []).append(value)
    bounds: dict[str, Bounds | str] = {} if name is None else {"name": name}
    for what, signs in texts.items():
        if what not in ("integerrange", "doublerange", "timerange"):
            raise InvalidInput(f"timeSeriesFilter has no {what}: integerRange, doubleRange, timeRange are all")
        bounds[what] = _bound(what, signs)
    return bounds


def _bound(what: str, signs: Mapping[str, list[str]]) -> Bounds:
    def number(text: str) -> float:
        if what == "timerange":
            return float(microseconds(text))
        try:
            return float(text)
        except ValueError:
            raise InvalidInput(f"timeSeriesFilter: {text!r} is no number") from None

    limits = {sign: number(values[-1]) for sign, values in signs.items() if sign in ("gt", "gte", "lt", "lte")}
    among = signs.get("incl")
    return Bounds(
        low=limits.get("gte"),
        high=limits.get("lte"),
        above=limits.get("gt"),
        below=limits.get("lt"),
        among=None if among is None else frozenset(map(number, among)),
        without=frozenset(map(number, signs.get("notin", []))),
    )
