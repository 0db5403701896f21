"""What happened in a trial, step by step: reports and checkpoints in one list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.api.checkpoints.messages import CheckpointState
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import Rendering, WindowDep, as_json, listed
from tenax.master.api.http.routing import Routes
from tenax.master.api.trials import messages
from tenax.master.context import Master
from tenax.master.reading.log_search import timestamp
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints.lists import CheckpointFilter, CheckpointView, Measured
from tenax.master.store.database.paging import Page
from tenax.master.store.metrics import series
from tenax.master.store.metrics.packing import Floats, Integers
from tenax.master.store.metrics.series import MetricGroup, StoredReport, reports_at, steps_of
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.cuts import PROFILING

routes = Routes("Trials")

_TRAINING, _VALIDATION = "training", "validation"
#: What stands at one step stands in this order.
_ORDER = {_TRAINING: 0, _VALIDATION: 1}
_CHECKPOINT_PLACE = 3
_DELETED = ("DELETED",)


@routes.get(
    "/api/v1/trials/{trial_id}/workloads",
    "GetTrialWorkloads",
    allow=Allow.USER,
    response_model=messages.GetTrialWorkloadsResponse,
)
async def get_workloads(
    master: MasterDep,
    trial_id: int,
    window: WindowDep,
    sort_key: Annotated[str, Query()] = "",
    filter: Annotated[messages.WorkloadFilter, Query()] = messages.WorkloadFilter.UNSPECIFIED,
    metric_type: Annotated[messages.MetricType, Query()] = messages.MetricType.UNSPECIFIED,
    group: Annotated[str, Query()] = "",
    include_batch_metrics: Annotated[bool, Query()] = False,
    remove_deleted_checkpoints: Annotated[bool, Query()] = False,
) -> Response:
    """By step, or by the value of the metric ``sortKey``, what lacks it last. Only the page is read."""
    async with master.db.snapshot() as conn:
        await trial_lists.owner(conn, trial_id)
        known = {group.name: group for group in await series.groups_of(conn, [trial_id])}
        groups = [known[name] for name in _groups(filter, metric_type, group) if name in known]
        lists = [await _list_of(master, conn, stored, sort_key) for stored in groups]
        checkpoints: list[Measured] = []
        if filter is not messages.WorkloadFilter.VALIDATION and metric_type is messages.MetricType.UNSPECIFIED:
            stored_ones = await checkpoint_lists.measured(conn, CheckpointFilter(trial_id=trial_id))
            checkpoints = [each for each in stored_ones if not (remove_deleted_checkpoints and each.state in _DELETED)]
            checkpoints.sort(key=lambda checkpoint: (checkpoint.steps_completed, checkpoint.uuid))
        lists.append(_of_checkpoints(checkpoints))
        page, pagination = window.of(sum(len(listing.steps) for listing in lists))
        places = await master.readers.run(_places, lists, window.descending, bool(_metric(sort_key)), page)
        last = len(lists) - 1

        async def load(part: Sequence[tuple[int, int]]) -> list[messages.Workload]:
            shown: dict[tuple[int, int], messages.Workload] = {}
            for number, stored in enumerate(groups):
                at = {int(lists[number].steps[place]): place for source, place in part if source == number}
                for report in await _reports(master, conn, stored, list(at)):
                    place = at[report.step or 0]
                    shown[number, place] = _of_report(report, stored.name, include_batch_metrics)
            place_of = {checkpoints[place].uuid: place for source, place in part if source == last}
            for view in await checkpoint_lists.views(conn, list(place_of)):
                shown[last, place_of[view.uuid]] = _of_checkpoint(view)
            return [shown[row] for row in part if row in shown]

        return await listed(master, places, Rendering("workloads", load, as_json), pagination)


@dataclass(frozen=True, slots=True)
class _List:
    """What is ordered: the steps of one group, or of the checkpoints; all have one length."""

    #: Among what stands at one step.
    place: int
    steps: Integers
    #: What is ordered by, turned by nothing; NaN where there is none.
    values: Floats


def _metric(sort_key: str) -> str:
    return "" if sort_key == "batches" else sort_key


async def _list_of(master: Master, conn: Connection, group: MetricGroup, sort_key: str) -> _List:
    steps = await master.readers.run((await steps_of(conn, group)).steps)
    values = np.full(len(steps), np.nan)
    if _metric(sort_key):
        line = await master.readers.run((await series.series(conn, group, sort_key)).unpack)
        inside = np.isin(line.steps, steps)
        values[np.searchsorted(steps, line.steps[inside])] = line.values[inside]
    return _List(_ORDER.get(group.name, 2), steps, values)


def _of_checkpoints(checkpoints: list[Measured]) -> _List:
    steps = np.array([checkpoint.steps_completed for checkpoint in checkpoints], np.int64)
    return _List(_CHECKPOINT_PLACE, steps, np.full(len(steps), np.nan))


def _places(lists: list[_List], descending: bool, by_value: bool, page: Page) -> list[tuple[int, int]]:
    """(list, place in it) of the rows of a page."""
    sources = np.concatenate([np.full(len(listing.steps), number) for number, listing in enumerate(lists)])
    inside = np.concatenate([np.arange(len(listing.steps)) for listing in lists])
    steps = np.concatenate([listing.steps for listing in lists])
    places = np.concatenate([np.full(len(listing.steps), listing.place) for listing in lists])
    order = np.lexsort((places, steps))
    if descending:
        order = order[::-1]
    if by_value:
        values = np.concatenate([listing.values for listing in lists])[order]
        # What has no value is last both ways, as NaN is in an order.
        order = order[np.argsort(-values if descending else values, kind="stable")]
    chosen = order[page.offset : None if page.limit is None else page.offset + page.limit]
    return list(zip(sources[chosen].tolist(), inside[chosen].tolist()))


def _groups(chosen: messages.WorkloadFilter, kind: messages.MetricType, group: str) -> Iterable[str]:
    if kind is messages.MetricType.PROFILING or group in PROFILING:
        raise InvalidInput("what the profiler measured has no steps: read it by /trials/{id}/profiler/metrics")
    if chosen is messages.WorkloadFilter.CHECKPOINT:
        return ()
    if group:
        return (group,)
    if kind is messages.MetricType.VALIDATION or chosen in (
        messages.WorkloadFilter.VALIDATION,
        messages.WorkloadFilter.CHECKPOINT_OR_VALIDATION,
    ):
        return (_VALIDATION,)
    return (_TRAINING,) if kind is messages.MetricType.TRAINING else (_TRAINING, _VALIDATION)


async def _reports(master: Master, conn: Connection, group: MetricGroup, steps: list[int]) -> list[StoredReport]:
    """Those at ``steps``."""
    chosen = set(steps)
    matching: list[StoredReport] = []
    for packed in await reports_at(conn, group, steps) if steps else []:
        reports = await master.readers.run(packed.reports)
        matching += [report for report in reports if (report.step or 0) in chosen]
    return matching


def _of_report(report: StoredReport, name: str, batches: bool) -> messages.Workload:
    batch = msgspec.json.decode(report.batch) if batches and report.batch is not None else None
    workload = messages.MetricsWorkload(
        end_time=timestamp(report.at_us),
        metrics=messages.Metrics(avg_metrics=report.metrics, batch_metrics=batch),
        total_batches=report.step or 0,
    )
    return messages.Workload(validation=workload) if name == _VALIDATION else messages.Workload(training=workload)


def _of_checkpoint(view: CheckpointView) -> messages.Workload:
    return messages.Workload(
        checkpoint=messages.CheckpointWorkload(
            uuid=view.uuid,
            end_time=view.reported_at,
            state=CheckpointState(f"STATE_{view.state}"),
            resources=view.resources,
            total_batches=view.steps_completed,
            metadata=view.metadata,
        )
    )
