"""What the profiler of a trial measured, series by series: streams, until the trial's end with ``follow``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from tenax.jsonvalue import Json, JsonObject, to_json, to_number
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import line, ndjson
from tenax.master.api.metrics.messages import ProfilerMetricType
from tenax.master.context import Master
from tenax.master.reading.log_search import timestamp
from tenax.master.store.metrics import series
from tenax.master.store.metrics.series import PackedReports, StoredReport
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.cuts import PROFILING

routes = Routes("Trials")

#: Points in one message.
_POINTS = 1000
#: The profiler reports every ten seconds or so: nothing is missed, and nobody is told more often.
_POLL_S = 5.0


@dataclass(frozen=True, slots=True)
class Label:
    """One series: a metric of an agent, or of one of its devices."""

    name: str
    agent_id: str
    #: Empty for what is not of one device.
    gpu_uuid: str = ""


@dataclass(frozen=True, slots=True)
class _Point:
    label: Label
    at_us: int
    value: float


@routes.stream(
    "/api/v1/trials/{trial_id}/profiler/available_series", "GetTrialProfilerAvailableSeries", allow=Allow.USER
)
async def available(master: MasterDep, trial_id: int, follow: bool = False) -> StreamingResponse:
    """The series that there are; with ``follow`` again whenever there are more."""
    await _check(master, trial_id)

    async def parts() -> AsyncIterator[bytes]:
        sent: set[Label] | None = None
        async for points in _updates(master, trial_id, follow):
            labels = {point.label for point in points}
            if labels != sent:
                sent = labels
                yield line({"labels": [_label(trial_id, label) for label in sorted(labels, key=_order)]})

    return ndjson(parts())


@routes.stream("/api/v1/trials/{trial_id}/profiler/metrics", "GetTrialProfilerMetrics", allow=Allow.USER)
async def profiler_metrics(
    master: MasterDep,
    trial_id: int,
    name: Annotated[str, Query(alias="labels.name")] = "",
    agent_id: Annotated[str, Query(alias="labels.agent_id")] = "",
    gpu_uuid: Annotated[str, Query(alias="labels.gpu_uuid")] = "",
    metric_type: Annotated[ProfilerMetricType, Query(alias="labels.metric_type")] = ProfilerMetricType.UNSPECIFIED,
    follow: bool = False,
) -> StreamingResponse:
    """The points of every series that the labels speak for, in order of time."""
    await _check(master, trial_id)

    def matches(label: Label) -> bool:
        filters = ((name, label.name), (agent_id, label.agent_id), (gpu_uuid, label.gpu_uuid))
        # All that is measured here is of the system.
        of_kind = metric_type in (ProfilerMetricType.UNSPECIFIED, ProfilerMetricType.SYSTEM)
        return of_kind and all(not value or value == actual for value, actual in filters)

    async def parts() -> AsyncIterator[bytes]:
        shown: dict[Label, int] = {}
        async for points in _updates(master, trial_id, follow):
            for label, own in _by_label(point for point in points if matches(point.label)).items():
                fresh = own[shown.get(label, 0) :]
                shown[label] = len(own)
                for start in range(0, len(fresh), _POINTS):
                    yield line({"batch": _batch(trial_id, label, fresh[start : start + _POINTS])})

    return ndjson(parts())


async def _check(master: Master, trial_id: int) -> None:
    async with master.db.connection() as conn:
        await trial_lists.owner(conn, trial_id)


async def _updates(master: Master, trial_id: int, follow: bool) -> AsyncIterator[list[_Point]]:
    """All points, again whenever there are more while the trial goes on."""
    seen: dict[str, int] | None = None
    while True:
        async with master.db.snapshot() as conn:
            over = not follow or await trial_lists.has_ended(conn, trial_id)
            groups = [group for group in await series.groups_of(conn, [trial_id]) if group.name in PROFILING]
            now = {group.name: group.next_ord for group in groups}
            packed = [
                await series.fetch(conn, group, cluster)
                for group in (groups if now != seen else ())
                for cluster in await series.outline(conn, group)
            ]
        if now != seen:
            seen = now
            yield await master.readers.run(_unpacked, packed)
        if over or master.shutdown.is_set():
            return
        try:
            await asyncio.wait_for(master.shutdown.wait(), _POLL_S)
        except asyncio.TimeoutError:
            continue


def _unpacked(packed: Iterable[PackedReports]) -> list[_Point]:
    return [point for reports in packed for point in _points(reports.reports())]


def _points(reports: Iterable[StoredReport]) -> Iterator[_Point]:
    for report in sorted(reports, key=lambda report: report.at_us):
        for agent_id, measured in report.metrics.items():
            for label, value in _measured(agent_id, measured):
                yield _Point(label, report.at_us, value)


def _measured(agent_id: str, measured: Json) -> Iterator[tuple[Label, float]]:
    """Metrics of an agent, and below the ids of its devices theirs."""
    for name, value in (measured if isinstance(measured, dict) else {}).items():
        if isinstance(value, dict):
            for inner, of_device in value.items():
                number = to_number(of_device)
                if number is not None:
                    yield Label(inner, agent_id, name), number
        else:
            number = to_number(value)
            if number is not None:
                yield Label(name, agent_id), number


def _by_label(points: Iterable[_Point]) -> dict[Label, list[_Point]]:
    grouped: dict[Label, list[_Point]] = {}
    for point in points:
        grouped.setdefault(point.label, []).append(point)
    return {label: grouped[label] for label in sorted(grouped, key=_order)}


def _batch(trial_id: int, label: Label, points: list[_Point]) -> JsonObject:
    return {
        "labels": _label(trial_id, label),
        "values": [to_json(point.value) for point in points],
        # The profiler knows no steps.
        "batches": [0] * len(points),
        "timestamps": [timestamp(point.at_us) for point in points],
    }


def _label(trial_id: int, label: Label) -> JsonObject:
    return {
        "trialId": trial_id,
        "name": label.name,
        "agentId": label.agent_id,
        "gpuUuid": label.gpu_uuid,
        "metricType": ProfilerMetricType.SYSTEM.value,
    }


def _order(label: Label) -> tuple[str, str, str]:
    return label.name, label.agent_id, label.gpu_uuid
