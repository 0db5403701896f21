"""Lists of checkpoints: of an experiment, of a trial; by what is known of them, or by a metric at their step.

Without a direction a list by a metric begins with the best. What has no value, or none that is a number, comes last in
both directions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.checkpoints.messages import CheckpointSortBy, CheckpointState, GetCheckpointsResponse
from tenax.master.api.checkpoints.rendering import checkpoint_message
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.paging import Rendering, Window, WindowDep, as_json, listed
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints.lists import CheckpointFilter, CheckpointView, Measured, StepReports
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import lists as trial_lists
from tenax.wire.message import OrderBy

routes = Routes("Checkpoints")

_ORDERS = {
    CheckpointSortBy.UUID: "uuid",
    CheckpointSortBy.TRIAL_ID: "trial_id",
    CheckpointSortBy.BATCH_NUMBER: "steps",
    CheckpointSortBy.END_TIME: "reported_at",
    CheckpointSortBy.STATE: "state",
    CheckpointSortBy.SEARCHER_METRIC: "metric",
}
SortBy = Annotated[CheckpointSortBy, Query()]
#: A metric of the validations.
Metric = Annotated[str, Query()]
States = Annotated[list[CheckpointState] | None, Query()]


@routes.get(
    "/api/v1/experiments/{experiment_id}/checkpoints",
    "GetExperimentCheckpoints",
    allow=Allow.USER,
    response_model=GetCheckpointsResponse,
)
async def of_experiment(
    master: MasterDep,
    caller: CallerDep,
    experiment_id: int,
    window: WindowDep,
    sort_by_attr: SortBy = CheckpointSortBy.UNSPECIFIED,
    sort_by_metric: Metric = "",
    states: States = None,
) -> Response:
    """Checkpoints of its trials."""
    async with master.db.connection() as conn:
        await experiments.get(conn, experiment_id)
    filters = CheckpointFilter(experiment_id=experiment_id, states=_states(states))
    return await _listed(
        master, caller, experiment_id, filters, window, _order(sort_by_attr, sort_by_metric, "trial_id")
    )


@routes.get(
    "/api/v1/trials/{trial_id}/checkpoints",
    "GetTrialCheckpoints",
    allow=Allow.USER,
    response_model=GetCheckpointsResponse,
)
async def of_trial(
    master: MasterDep,
    caller: CallerDep,
    trial_id: int,
    window: WindowDep,
    sort_by_attr: SortBy = CheckpointSortBy.UNSPECIFIED,
    sort_by_metric: Metric = "",
    states: States = None,
) -> Response:
    """Its checkpoints."""
    async with master.db.connection() as conn:
        _, experiment_id = await trial_lists.owner(conn, trial_id)
    filters = CheckpointFilter(trial_id=trial_id, states=_states(states))
    order = _order(sort_by_attr, sort_by_metric, "steps")
    return await _listed(master, caller, experiment_id, filters, window, order)


async def with_metrics(master: Master, conn: Connection, views: Sequence[CheckpointView]) -> list[CheckpointView]:
    """The same with all that was trained and validated at the step of each, where it was reported."""
    reports = await _reports(master, conn, views)
    return [_with(view, reports.get((view.trial_id or 0, view.steps_completed), StepReports())) for view in views]


async def _reports(
    master: Master, conn: Connection, views: Sequence[CheckpointView | Measured]
) -> Mapping[tuple[int, int], StepReports]:
    """(trial, step) -> what was reported there."""
    steps = {(view.trial_id, view.steps_completed) for view in views if view.trial_id is not None}
    if not steps:
        return {}
    return await master.readers.run((await checkpoint_lists.at_steps(conn, steps)).reports)


@dataclass(frozen=True, slots=True)
class _Order:
    """By something of the checkpoints, or by a metric of the validations."""

    column: str
    metric: str = ""

    @property
    def best_first(self) -> bool:
        """Where no direction is asked for."""
        return self.column == "metric" or bool(self.metric)


async def _listed(
    master: Master, caller: Caller, experiment_id: int, filters: CheckpointFilter, window: Window, order: _Order
) -> Response:
    descending = window.descending
    async with master.db.snapshot() as conn:
        total = await checkpoint_lists.count(conn, filters)
        page, pagination = window.of(total)
        if window.order_by is OrderBy.UNSPECIFIED and order.best_first:
            descending = not _smaller_is_better((await experiments.plan(conn, experiment_id)).config)
        if order.metric:
            uuids = await _by_metric(master, conn, filters, order.metric, descending)
            uuids = uuids[page.offset : page.offset + (page.limit or 0)]
        else:
            uuids = await checkpoint_lists.uuids(conn, filters, page, order=order.column, descending=descending)

        async def load(part: Sequence[str]) -> list[CheckpointView]:
            return await with_metrics(master, conn, await checkpoint_lists.views(conn, part))

        def render(view: CheckpointView) -> bytes:
            return as_json(checkpoint_message(view, caller))

        return await listed(master, uuids, Rendering("checkpoints", load, render), pagination)


def _order(attribute: CheckpointSortBy, metric: str, default: str) -> _Order:
    if metric and attribute is not CheckpointSortBy.UNSPECIFIED:
        raise InvalidInput("sortByAttr and sortByMetric exclude one another: give one of them")
    return _Order(_ORDERS.get(attribute, default), metric)


async def _by_metric(
    master: Master, conn: Connection, filters: CheckpointFilter, metric: str, descending: bool
) -> list[str]:
    """The uuids of all that match, in order."""
    views = await checkpoint_lists.measured(conn, filters)
    reports = await _reports(master, conn, views)
    sign = -1.0 if descending else 1.0

    def key(view: Measured) -> tuple[bool, float, datetime, str]:
        at_step = reports.get((view.trial_id or 0, view.steps_completed), StepReports())
        value = _number({**(view.metrics or {}), **(at_step.validation or {})}.get(metric))
        return value is None, sign * (value or 0.0), view.reported_at, view.uuid

    return [view.uuid for view in sorted(views, key=key)]


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _with(view: CheckpointView, reports: StepReports) -> CheckpointView:
    validated = view.metrics if reports.validation is None else {**(view.metrics or {}), **reports.validation}
    return replace(view, trained=reports.training, metrics=validated)


def _smaller_is_better(config: JsonObject) -> bool:
    searcher = config.get("searcher")
    return not isinstance(searcher, dict) or searcher.get("smaller_is_better") is not False


def _states(states: list[CheckpointState] | None) -> tuple[str, ...] | None:
    return None if states is None else tuple(state.value.removeprefix("STATE_") for state in states)
