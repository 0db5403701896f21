"""Experiments: listed, looked at, edited, told what to do.

Rules it keeps: everyone who is logged in sees every experiment; only its owner and administrators change it; a verb
that the state does not allow is refused with what to do instead.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Query

from tenax.errors import InvalidInput, NotFound
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.paging import Window, WindowDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import checkpoint_message, experiment_message, trial_message
from tenax.master.auth import Caller
from tenax.master.context import Master
from tenax.master.store import experiments, listings_checkpoints, listings_experiments, listings_trials
from tenax.master.store.listings_checkpoints import CheckpointFilter
from tenax.master.store.listings_experiments import ExperimentFilter
from tenax.wire.api.checkpoints import CheckpointSortBy, CheckpointState, GetCheckpointsResponse
from tenax.wire.api.experiments import (
    BestMetricResponse,
    ExperimentSortBy,
    GetExperimentResponse,
    GetExperimentsResponse,
    JobState,
    JobSummary,
    PatchExperiment,
    PatchExperimentResponse,
    State,
)
from tenax.wire.api.message import Empty
from tenax.wire.api.trials import GetExperimentTrialsResponse, TrialSortBy

routes = Routes("Experiments")
T = TypeVar("T")

#: What limit 0, -1 and -2 mean in this one list.
_DEFAULT_LIMIT, _ALL, _NONE = 100, -1, -2

_ORDERS = {
    ExperimentSortBy.UNSPECIFIED: "id",
    ExperimentSortBy.ID: "id",
    ExperimentSortBy.DESCRIPTION: "description",
    ExperimentSortBy.START_TIME: "start_time",
    ExperimentSortBy.END_TIME: "end_time",
    ExperimentSortBy.STATE: "state",
    ExperimentSortBy.NUM_TRIALS: "num_trials",
    ExperimentSortBy.PROGRESS: "progress",
    ExperimentSortBy.USER: "user",
    ExperimentSortBy.NAME: "name",
    ExperimentSortBy.FORKED_FROM: "forked_from",
    ExperimentSortBy.RESOURCE_POOL: "resource_pool",
    ExperimentSortBy.PROJECT_ID: "project_id",
    ExperimentSortBy.CHECKPOINT_SIZE: "checkpoint_size",
    ExperimentSortBy.CHECKPOINT_COUNT: "checkpoint_count",
    ExperimentSortBy.SEARCHER_METRIC_VAL: "searcher_metric",
}
_TRIAL_ORDERS = {
    TrialSortBy.UNSPECIFIED: "id",
    TrialSortBy.ID: "id",
    TrialSortBy.START_TIME: "start_time",
    TrialSortBy.END_TIME: "end_time",
    TrialSortBy.STATE: "state",
    TrialSortBy.BEST_VALIDATION_METRIC: "best_validation",
    TrialSortBy.LATEST_VALIDATION_METRIC: "latest_validation",
    TrialSortBy.BATCHES_PROCESSED: "total_batches",
    TrialSortBy.DURATION: "duration",
    TrialSortBy.RESTARTS: "restarts",
    TrialSortBy.CHECKPOINT_SIZE: "checkpoint_size",
    TrialSortBy.LOG_RETENTION_DAYS: "id",
}
CHECKPOINT_ORDERS = {
    CheckpointSortBy.UNSPECIFIED: "trial_id",
    CheckpointSortBy.UUID: "uuid",
    CheckpointSortBy.TRIAL_ID: "trial_id",
    CheckpointSortBy.BATCH_NUMBER: "steps",
    CheckpointSortBy.END_TIME: "reported_at",
    CheckpointSortBy.STATE: "state",
    CheckpointSortBy.SEARCHER_METRIC: "metric",
}


@routes.get("/api/v1/experiments", "GetExperiments", allow=Allow.USER)
async def get_experiments(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    sort_by: Annotated[ExperimentSortBy, Query()] = ExperimentSortBy.UNSPECIFIED,
    archived: Annotated[bool | None, Query()] = None,
    name: Annotated[str | None, Query()] = None,
    description: Annotated[str | None, Query()] = None,
    labels: Annotated[list[str] | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    states: Annotated[list[State] | None, Query()] = None,
    project_id: Annotated[int | None, Query()] = None,
    gt: Annotated[int | None, Query(alias="experiment_id_filter.gt")] = None,
    gte: Annotated[int | None, Query(alias="experiment_id_filter.gte")] = None,
    lt: Annotated[int | None, Query(alias="experiment_id_filter.lt")] = None,
    lte: Annotated[int | None, Query(alias="experiment_id_filter.lte")] = None,
    incl: Annotated[list[int] | None, Query(alias="experiment_id_filter.incl")] = None,
    not_in: Annotated[list[int] | None, Query(alias="experiment_id_filter.not_in")] = None,
) -> GetExperimentsResponse:
    """Experiments, filtered and in order. Limit 0 is 100, -1 is all, -2 is none (only the count)."""
    wanted = ExperimentFilter(
        archived=archived,
        name=name,
        description=description,
        labels=_tuple(labels),
        users=_tuple(users),
        user_ids=_tuple(user_ids),
        states=None if states is None else tuple(bare(state) for state in states),
        project_id=project_id or None,
        after_id=max((bound for bound in (gt, None if gte is None else gte - 1) if bound is not None), default=None),
        before_id=min((bound for bound in (lt, None if lte is None else lte + 1) if bound is not None), default=None),
        ids=_tuple(incl),
        not_ids=_tuple(not_in),
    )
    async with master.db.snapshot() as conn:
        total = await listings_experiments.count(conn, wanted)
        page, pagination = _window(window).of(total)
        found = []
        if window.limit != _NONE:
            found = await listings_experiments.page(
                conn, wanted, page, total, order=_ORDERS[sort_by], descending=window.descending
            )
    if window.limit == _NONE:
        pagination.end_index = pagination.start_index
    pagination.limit = window.limit
    return GetExperimentsResponse(
        experiments=[experiment_message(view, caller) for view in found], pagination=pagination
    )


@routes.get("/api/v1/experiments/{experiment_id}", "GetExperiment", allow=Allow.USER)
async def get_experiment(master: MasterDep, caller: CallerDep, experiment_id: int) -> GetExperimentResponse:
    """One experiment, and where its job stands."""
    async with master.db.connection() as conn:
        view = await listings_experiments.get(conn, experiment_id)
        trials = await listings_experiments.trial_ids(conn, experiment_id)
        summary = None
        if view.ended_at is None:
            ahead, placed = await listings_experiments.job_standing(conn, experiment_id)
            summary = JobSummary(state=JobState.SCHEDULED if placed else JobState.QUEUED, jobs_ahead=ahead)
    message = experiment_message(view, caller, trials)
    return GetExperimentResponse(experiment=message, config=message.config, job_summary=summary)


@routes.patch("/api/v1/experiments/{experiment_id}", "PatchExperiment", allow=Allow.USER)
async def patch_experiment(
    master: MasterDep, caller: CallerDep, experiment_id: int, body: PatchExperiment
) -> PatchExperimentResponse:
    """Edit its words."""
    if body.name is not None and not body.name.strip():
        raise InvalidInput("a name cannot be blank")
    await _check_owner(master, caller, experiment_id)
    async with master.db.transaction() as conn:
        await listings_experiments.edit(
            conn,
            experiment_id,
            name=body.name,
            description=body.description,
            notes=body.notes,
            labels=None if body.labels is None else list(dict.fromkeys(body.labels)),
        )
        view = await listings_experiments.get(conn, experiment_id)
    return PatchExperimentResponse(experiment=experiment_message(view, caller))


@routes.post("/api/v1/experiments/{experiment_id}/activate", "ActivateExperiment", allow=Allow.USER)
async def activate(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Let it go on from where each trial saved."""
    return await _happen(master, caller, experiment_id, ExperimentEvent.ACTIVATE)


@routes.post("/api/v1/experiments/{experiment_id}/pause", "PauseExperiment", allow=Allow.USER)
async def pause(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Every trial saves and leaves its slots."""
    return await _happen(master, caller, experiment_id, ExperimentEvent.PAUSE)


@routes.post("/api/v1/experiments/{experiment_id}/cancel", "CancelExperiment", allow=Allow.USER)
async def cancel(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Every trial saves, and the experiment ends."""
    return await _happen(master, caller, experiment_id, ExperimentEvent.CANCEL)


@routes.post("/api/v1/experiments/{experiment_id}/kill", "KillExperiment", allow=Allow.USER)
async def kill(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """End it at once."""
    return await _happen(master, caller, experiment_id, ExperimentEvent.KILL)


@routes.post("/api/v1/experiments/{experiment_id}/archive", "ArchiveExperiment", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Hide it from lists; nothing of it is deleted."""
    return await _archive(master, caller, experiment_id, True)


@routes.post("/api/v1/experiments/{experiment_id}/unarchive", "UnarchiveExperiment", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Show it in lists again."""
    return await _archive(master, caller, experiment_id, False)


@routes.delete("/api/v1/experiments/{experiment_id}", "DeleteExperiment", allow=Allow.USER)
async def delete(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Delete it with its checkpoints, metrics and logs, in the background; it must have ended."""
    return await _happen(master, caller, experiment_id, ExperimentEvent.DELETE)


@routes.get("/api/v1/experiments/{experiment_id}/trials", "GetExperimentTrials", allow=Allow.USER)
async def get_experiment_trials(
    master: MasterDep,
    experiment_id: int,
    window: WindowDep,
    sort_by: Annotated[TrialSortBy, Query()] = TrialSortBy.UNSPECIFIED,
    states: Annotated[list[State] | None, Query()] = None,
) -> GetExperimentTrialsResponse:
    """Its trials."""
    wanted = None if states is None else [bare(state) for state in states]
    async with master.db.connection() as conn:
        await listings_experiments.owner(conn, experiment_id)
        page, pagination = window.of(await listings_trials.count(conn, experiment_id, wanted))
        found = await listings_trials.page(
            conn, experiment_id, wanted, page, order=_TRIAL_ORDERS[sort_by], descending=window.descending
        )
    return GetExperimentTrialsResponse(trials=[trial_message(view) for view in found], pagination=pagination)


@routes.get("/api/v1/experiments/{experiment_id}/checkpoints", "GetExperimentCheckpoints", allow=Allow.USER)
async def get_experiment_checkpoints(
    master: MasterDep,
    caller: CallerDep,
    experiment_id: int,
    window: WindowDep,
    sort_by_attr: Annotated[CheckpointSortBy, Query()] = CheckpointSortBy.UNSPECIFIED,
    states: Annotated[list[CheckpointState] | None, Query()] = None,
) -> GetCheckpointsResponse:
    """Checkpoints of its trials."""
    bared = None if states is None else tuple(bare(state) for state in states)
    wanted = CheckpointFilter(experiment_id=experiment_id, states=bared)
    async with master.db.connection() as conn:
        await listings_experiments.owner(conn, experiment_id)
        page, pagination = window.of(await listings_checkpoints.count(conn, wanted))
        found = await listings_checkpoints.page(
            conn, wanted, page, order=CHECKPOINT_ORDERS[sort_by_attr], descending=window.descending
        )
    return GetCheckpointsResponse(
        checkpoints=[checkpoint_message(view, caller) for view in found], pagination=pagination
    )


@routes.get(
    "/api/v1/experiments/{experiment_id}/searcher/best_searcher_validation_metric",
    "GetBestSearcherValidationMetric",
    allow=Allow.USER,
)
async def best_metric(master: MasterDep, experiment_id: int) -> BestMetricResponse:
    """The best value of the searcher's metric so far; 404 before there is one."""
    async with master.db.connection() as conn:
        view = await listings_experiments.get(conn, experiment_id)
    if view.best_metric is None:
        raise NotFound(f"experiment {experiment_id} has no validation with the searcher's metric yet")
    return BestMetricResponse(metric=view.best_metric)


def bare(state: State | CheckpointState) -> str:
    """A state without the prefix that it travels with."""
    return str(state.value).removeprefix("STATE_")


#: How it is told in an experiment's reason.
_PAST = {
    ExperimentEvent.PAUSE: "paused",
    ExperimentEvent.CANCEL: "canceled",
    ExperimentEvent.KILL: "killed",
    ExperimentEvent.DELETE: "deleted",
}


async def _happen(master: Master, caller: Caller, experiment_id: int, event: ExperimentEvent) -> Empty:
    await _check_owner(master, caller, experiment_id)
    reason = f"{_PAST[event]} by {caller.person.username}" if event in _PAST else ""
    async with master.db.transaction() as conn:
        await experiments.ask(conn, experiment_id, event, reason)
    return Empty()


async def _archive(master: Master, caller: Caller, experiment_id: int, archived: bool) -> Empty:
    await _check_owner(master, caller, experiment_id)
    async with master.db.transaction() as conn:
        await listings_experiments.set_archived(conn, experiment_id, archived)
    return Empty()


async def _check_owner(master: Master, caller: Caller, experiment_id: int) -> None:
    async with master.db.connection() as conn:
        caller.may_change(await listings_experiments.owner(conn, experiment_id), f"experiment {experiment_id}")


def _window(window: Window) -> Window:
    limit = {0: _DEFAULT_LIMIT, _ALL: 0, _NONE: 0}.get(window.limit, window.limit)
    return Window(window.offset, limit, window.order_by)


def _tuple(values: list[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)
