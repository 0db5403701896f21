"""What happened in a trial, step by step: reports and checkpoints in one list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, cast

import msgspec
from fastapi import Query

from tenax.master.api.deps import MasterDep
from tenax.master.api.paging import WindowDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.context import Master
from tenax.master.ingest.log_search import timestamp
from tenax.master.store import listings_checkpoints, listings_trials, series
from tenax.master.store.listings_checkpoints import CheckpointFilter, CheckpointView
from tenax.master.store.paging import Page
from tenax.master.store.series import Reported
from tenax.wire.api.checkpoints import CheckpointState
from tenax.wire.api.message import Document
from tenax.wire.api.trials import (
    CheckpointWorkload,
    GetTrialWorkloadsResponse,
    Metrics,
    MetricsWorkload,
    MetricType,
    Workload,
    WorkloadFilter,
)

routes = Routes("Trials")

_TRAINING, _VALIDATION = "training", "validation"
#: What stands at one step stands in this order.
_ORDER = {_TRAINING: 0, _VALIDATION: 1}
_CHECKPOINT_PLACE = 3
_DELETED = ("DELETED",)


@routes.get("/api/v1/trials/{trial_id}/workloads", "GetTrialWorkloads", allow=Allow.USER)
async def get_workloads(
    master: MasterDep,
    trial_id: int,
    window: WindowDep,
    sort_key: Annotated[str, Query()] = "",
    filter: Annotated[WorkloadFilter, Query()] = WorkloadFilter.UNSPECIFIED,
    metric_type: Annotated[MetricType, Query()] = MetricType.UNSPECIFIED,
    group: Annotated[str, Query()] = "",
    include_batch_metrics: Annotated[bool, Query()] = False,
    remove_deleted_checkpoints: Annotated[bool, Query()] = False,
) -> GetTrialWorkloadsResponse:
    """By step, or by the value of the metric ``sortKey``, what lacks it last."""
    async with master.db.connection() as conn:
        await listings_trials.owner(conn, trial_id)
    rows: list[_Row] = []
    for name in _groups(filter, metric_type, group):
        reports = await _reports(master, trial_id, name)
        rows.extend(_of_report(report, name, sort_key, include_batch_metrics) for report in reports)
    if filter is not WorkloadFilter.VALIDATION and metric_type is MetricType.UNSPECIFIED:
        async with master.db.connection() as conn:
            found = await listings_checkpoints.page(conn, CheckpointFilter(trial_id=trial_id), Page(), order="steps")
        rows.extend(_of_checkpoint(one) for one in found if not (remove_deleted_checkpoints and one.state in _DELETED))
    ordered = _ordered(rows, sort_key, window.descending)
    page, pagination = window.of(len(ordered))
    shown = ordered[page.offset : page.offset + (page.limit or 0)]
    return GetTrialWorkloadsResponse(workloads=[row.workload for row in shown], pagination=pagination)


class _Row:
    """A workload and what it is ordered by."""

    __slots__ = ("place", "step", "value", "workload")

    def __init__(self, step: int, place: int, value: float | None, workload: Workload) -> None:
        self.step, self.place, self.value, self.workload = step, place, value, workload


def _groups(wanted: WorkloadFilter, kind: MetricType, group: str) -> Iterable[str]:
    if wanted is WorkloadFilter.CHECKPOINT:
        return ()
    if group:
        return (group,)
    if kind is MetricType.VALIDATION or wanted in (
        WorkloadFilter.VALIDATION,
        WorkloadFilter.CHECKPOINT_OR_VALIDATION,
    ):
        return (_VALIDATION,)
    return (_TRAINING,) if kind is MetricType.TRAINING else (_TRAINING, _VALIDATION)


async def _reports(master: Master, trial_id: int, name: str) -> list[Reported]:
    found: list[Reported] = []
    async with master.db.snapshot() as conn:
        for group in await series.groups_of(conn, [trial_id]):
            if group.name == name:
                for cluster in await series.outline(conn, group):
                    packed = await series.fetch(conn, group, cluster)
                    found.extend(await master.intake.threads.run(packed.reports))
    return found


def _of_report(report: Reported, name: str, sort_key: str, batches: bool) -> _Row:
    step = report.step or 0
    batch = msgspec.json.decode(report.batch) if batches and report.batch is not None else None
    workload = MetricsWorkload(
        end_time=timestamp(report.at_us),
        metrics=Metrics(avg_metrics=cast(Document, report.metrics), batch_metrics=batch),
        total_batches=step,
    )
    told = report.metrics.get(sort_key)
    value = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
    whole = Workload(validation=workload) if name == _VALIDATION else Workload(training=workload)
    return _Row(step, _ORDER.get(name, 2), value, whole)


def _of_checkpoint(view: CheckpointView) -> _Row:
    workload = CheckpointWorkload(
        uuid=view.uuid,
        end_time=view.reported_at,
        state=CheckpointState(f"STATE_{view.state}"),
        resources=view.resources,
        total_batches=view.steps_completed,
        metadata=cast(Document, view.metadata),
    )
    return _Row(view.steps_completed, _CHECKPOINT_PLACE, None, Workload(checkpoint=workload))


def _ordered(rows: list[_Row], sort_key: str, descending: bool) -> list[_Row]:
    by_step = sorted(rows, key=lambda row: (row.step, row.place), reverse=descending)
    if sort_key in ("", "batches"):
        return by_step
    sign = -1.0 if descending else 1.0
    return sorted(by_step, key=lambda row: (row.value is None, sign * (row.value or 0.0)))
