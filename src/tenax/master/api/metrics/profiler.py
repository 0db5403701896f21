"""What the profiler of a trial measured, series by series: streams, until the trial's end with ``follow``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from asyncpg import Connection
from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from tenax.jsonvalue import JsonObject, to_json
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import line, ndjson
from tenax.master.api.metrics.messages import ProfilerMetricType
from tenax.master.context import Master
from tenax.master.reading.log_search import timestamp
from tenax.master.reading.system import Label, SystemSeries, charts, measured, order
from tenax.master.store.metrics import series
from tenax.master.store.metrics.series import MetricGroup, PackedReports
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.cuts import PROFILING

routes = Routes("Trials")

#: Points in one message.
_POINTS = 1000
#: The profiler reports every ten seconds or so: nothing is missed, and nobody is told more often.
_POLL_S = 5.0


@routes.stream(
    "/api/v1/trials/{trial_id}/profiler/available_series", "GetTrialProfilerAvailableSeries", allow=Allow.USER
)
async def available(master: MasterDep, trial_id: int, follow: bool = False) -> StreamingResponse:
    """The series that there are; with ``follow`` again whenever there are more."""
    await _check(master, trial_id)

    async def parts() -> AsyncIterator[bytes]:
        sent: set[Label] | None = None
        async for series_now in _updates(master, trial_id, follow):
            labels = set(series_now)
            if labels != sent:
                sent = labels
                yield line({"labels": [_label(trial_id, label) for label in sorted(labels, key=order)]})

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
        async for series_now in _updates(master, trial_id, follow):
            for label, own in series_now.items():
                if matches(label):
                    for start in range(shown.get(label, 0), len(own), _POINTS):
                        yield line({"batch": _batch(trial_id, label, own, start)})
                    shown[label] = len(own)

    return ndjson(parts())


@routes.get(
    "/api/v1/trials/{trial_id}/profiler/series", "GetTrialProfilerSeries", allow=Allow.USER, response_class=Response
)
async def profiler_series(
    master: MasterDep, trial_id: int, max_points: Annotated[int, Query(ge=2, le=2000)] = 400
) -> Response:
    """All series for charts: ``{"series": [{"name", "agentId", "device", "total", "times", "values"}]}``.

    Each is thinned to ``maxPoints``; its least and greatest value are kept. Times are microseconds since 1970.
    """
    await _check(master, trial_id)
    async with master.db.snapshot() as conn:
        groups = [group for group in await series.groups_of(conn, [trial_id]) if group.name in PROFILING]
        packed = await _packed(conn, groups)
    body = await master.readers.run(_charts, packed, max_points)
    return Response(body, media_type="application/json")


def _charts(packed: list[PackedReports], most: int) -> bytes:
    return msgspec.json.encode({"series": charts(packed, most)})


async def _packed(conn: Connection, groups: list[MetricGroup]) -> list[PackedReports]:
    return [
        await series.fetch(conn, group, cluster) for group in groups for cluster in await series.outline(conn, group)
    ]


async def _check(master: Master, trial_id: int) -> None:
    async with master.db.connection() as conn:
        await trial_lists.owner(conn, trial_id)


async def _updates(master: Master, trial_id: int, follow: bool) -> AsyncIterator[dict[Label, SystemSeries]]:
    """All series, again whenever there are more while the trial goes on."""
    seen: dict[str, int] | None = None
    while True:
        async with master.db.snapshot() as conn:
            over = not follow or await trial_lists.has_ended(conn, trial_id)
            groups = [group for group in await series.groups_of(conn, [trial_id]) if group.name in PROFILING]
            now = {group.name: group.next_ord for group in groups}
            packed = await _packed(conn, groups if now != seen else [])
        if now != seen:
            seen = now
            yield await master.readers.run(measured, packed)
        if over or master.shutdown.is_set():
            return
        try:
            await asyncio.wait_for(master.shutdown.wait(), _POLL_S)
        except asyncio.TimeoutError:
            continue


def _batch(trial_id: int, label: Label, own: SystemSeries, start: int) -> JsonObject:
    times, values = own.times[start : start + _POINTS], own.values[start : start + _POINTS]
    return {
        "labels": _label(trial_id, label),
        "values": [to_json(value) for value in values],
        # The profiler knows no steps.
        "batches": [0] * len(times),
        "timestamps": [timestamp(at_us) for at_us in times],
    }


def _label(trial_id: int, label: Label) -> JsonObject:
    return {
        "trialId": trial_id,
        "name": label.name,
        "agentId": label.agent_id,
        "gpuUuid": label.gpu_uuid,
        "metricType": ProfilerMetricType.SYSTEM.value,
    }
