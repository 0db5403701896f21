"""What is done to experiments, to one or to many of a project: verbs, labels, moves, retention of logs.

Rules it keeps: only its owner and administrators change an experiment; a verb that the state does not allow is refused
with what to do instead; of many, each is changed by itself, and one that is refused stops no other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from asyncpg import Connection

from tenax.errors import NotFound, UserError
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.experiments.messages import (
    BulkFilters,
    BulkMoveRequest,
    BulkRequest,
    BulkResponse,
    BulkResult,
    BulkRetainLogsRequest,
    LabelsResponse,
    MoveExperimentRequest,
    RetainLogsRequest,
)
from tenax.master.api.experiments.queries import narrowed
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.requests import check_labels
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.database.filter_text import Filter
from tenax.master.store.database.paging import Page
from tenax.master.store.experiments import columns as experiment_columns
from tenax.master.store.experiments import edits as experiment_edits
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.lists import ExperimentFilter
from tenax.master.store.workspaces import projects
from tenax.wire.message import Empty

routes = Routes("Experiments")

#: Does something for a caller to the experiment of that number, in a transaction of its own. Raises UserError.
Action = Callable[[Connection, Caller, int], Awaitable[object]]

#: How an experiment's reason puts it.
_PAST = {
    ExperimentEvent.PAUSE: "paused",
    ExperimentEvent.CANCEL: "canceled",
    ExperimentEvent.KILL: "killed",
    ExperimentEvent.DELETE: "deleted",
}


def _event(event: ExperimentEvent) -> Action:
    async def ask(conn: Connection, caller: Caller, experiment_id: int) -> None:
        reason = f"{_PAST[event]} by {caller.person.username}" if event in _PAST else ""
        await experiments.ask(conn, experiment_id, event, reason)

    return ask


def _archive(archived: bool) -> Action:
    return lambda conn, _, experiment_id: experiment_edits.set_archived(conn, experiment_id, archived)


#: Verb -> what is done, and what the contract says of it: to one experiment, and to many of a project.
_VERBS = {
    "activate": (
        _event(ExperimentEvent.ACTIVATE),
        "Resume it: each trial goes on from its latest checkpoint.",
        "Resume paused experiments.",
    ),
    "pause": (
        _event(ExperimentEvent.PAUSE),
        "Pause it: every trial saves a checkpoint and leaves its slots.",
        "Pause experiments: their trials save and leave their slots.",
    ),
    "cancel": (
        _event(ExperimentEvent.CANCEL),
        "Cancel it: every trial saves a checkpoint, and the experiment ends.",
        "Cancel experiments: their trials save and end.",
    ),
    "kill": (_event(ExperimentEvent.KILL), "End it at once.", "End experiments at once."),
    "archive": (
        _archive(True),
        "Hide it from lists; nothing of it is deleted.",
        "Hide experiments that have ended from lists.",
    ),
    "unarchive": (_archive(False), "Show it in lists again.", "Show experiments in lists again."),
    "delete": (
        _event(ExperimentEvent.DELETE),
        "Delete it with its checkpoints, metrics and logs, in the background; it must have ended.",
        "Delete experiments that have ended, in the background.",
    ),
}


def _declare(verb: str, action: Action, of_one: str, of_many: str) -> None:
    """The operations of a verb: PauseExperiment, PauseExperiments."""

    async def act(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
        return await _act(master, caller, experiment_id, action)

    async def act_on_many(master: MasterDep, caller: CallerDep, project_id: int, body: BulkRequest) -> BulkResponse:
        return await _act_on_each(master, caller, project_id, body, action)

    act.__doc__, act_on_many.__doc__ = of_one, of_many
    operation, path = f"{verb.capitalize()}Experiment", "/api/v1/experiments/{experiment_id}"
    declare = routes.delete if verb == "delete" else routes.post
    declare(path if verb == "delete" else f"{path}/{verb}", operation, allow=Allow.USER)(act)
    declare(f"/api/v1/projects/{{project_id}}/experiments/{verb}", f"{operation}s", allow=Allow.USER)(act_on_many)


for _verb, (_action, _of_one, _of_many) in _VERBS.items():
    _declare(_verb, _action, _of_one, _of_many)


@routes.post("/api/v1/experiments/{experiment_id}/move", "MoveExperiment", allow=Allow.USER)
async def move(master: MasterDep, caller: CallerDep, experiment_id: int, body: MoveExperimentRequest) -> Empty:
    """File it in another project."""
    return await _act(master, caller, experiment_id, _move(body.destination_project_id))


@routes.put("/api/v1/experiments/{experiment_id}/retain_logs", "PutExperimentRetainLogs", allow=Allow.USER)
async def retain_logs(master: MasterDep, caller: CallerDep, experiment_id: int, body: RetainLogsRequest) -> Empty:
    """Keep the output of all its trials so many days after their end."""
    return await _act(master, caller, experiment_id, _retain(body.num_days))


@routes.get("/api/v1/experiment/labels", "GetExperimentLabels", allow=Allow.USER)
async def get_labels(master: MasterDep, project_id: int | None = None) -> LabelsResponse:
    """Every label in use, the most used first."""
    async with master.db.connection() as conn:
        if project_id:
            await projects.get(conn, project_id)
        return LabelsResponse(labels=await experiment_edits.popular_labels(conn, project_id or None))


@routes.put("/api/v1/experiments/{experiment_id}/labels/{label:path}", "PutExperimentLabel", allow=Allow.USER)
async def put_label(master: MasterDep, caller: CallerDep, experiment_id: int, label: str) -> LabelsResponse:
    """Add a label; one that it has stays as it is."""
    check_labels([label])
    async with master.db.transaction() as conn:
        await check_owner(conn, caller, experiment_id)
        labels = await experiment_edits.add_label(conn, experiment_id, label)
        check_labels(labels)
    return LabelsResponse(labels=labels)


@routes.delete("/api/v1/experiments/{experiment_id}/labels/{label:path}", "DeleteExperimentLabel", allow=Allow.USER)
async def delete_label(master: MasterDep, caller: CallerDep, experiment_id: int, label: str) -> LabelsResponse:
    """Take a label away; one that it does not have is no error."""
    async with master.db.transaction() as conn:
        await check_owner(conn, caller, experiment_id)
        return LabelsResponse(labels=await experiment_edits.remove_label(conn, experiment_id, label))


@routes.post("/api/v1/projects/{project_id}/experiments/move", "MoveExperiments", allow=Allow.USER)
async def move_many(master: MasterDep, caller: CallerDep, project_id: int, body: BulkMoveRequest) -> BulkResponse:
    """File experiments in another project."""
    async with master.db.transaction() as conn:
        await projects.hold(conn, body.destination_project_id)
    return await _act_on_each(master, caller, project_id, body, _move(body.destination_project_id))


@routes.put("/api/v1/projects/{project_id}/experiments/retain_logs", "PutExperimentsRetainLogs", allow=Allow.USER)
async def retain_logs_of_many(
    master: MasterDep, caller: CallerDep, project_id: int, body: BulkRetainLogsRequest
) -> BulkResponse:
    """Keep the output of all trials of experiments so many days after their end."""
    return await _act_on_each(master, caller, project_id, body, _retain(body.num_days))


async def check_owner(conn: Connection, caller: Caller, experiment_id: int) -> None:
    """Raises NotFound, Forbidden."""
    caller.may_change(await experiment_lists.owner(conn, experiment_id), f"experiment {experiment_id}")


def _move(project_id: int) -> Action:
    return lambda conn, _, experiment_id: experiment_edits.move(conn, experiment_id, project_id)


def _retain(days: int) -> Action:
    return lambda conn, _, experiment_id: experiment_edits.set_log_retention(conn, experiment_id, days)


async def _act(master: Master, caller: Caller, experiment_id: int, action: Action) -> Empty:
    async with master.db.transaction() as conn:
        await check_owner(conn, caller, experiment_id)
        await action(conn, caller, experiment_id)
    return Empty()


async def _act_on_each(
    master: Master, caller: Caller, project_id: int, request: BulkRequest, action: Action
) -> BulkResponse:
    """Do it to each by itself, in the order of the numbers."""
    results = []
    project_id = _project(project_id) or _project(request.project_id) or 0
    for number in await _chosen(master, caller, project_id, request):
        if master.shutdown.is_set():
            results.append(BulkResult(id=number, error="the master is shutting down: ask again in a moment"))
            continue
        try:
            await _act(master, caller, number, action)
        except UserError as error:
            results.append(BulkResult(id=number, error=error.message))
        else:
            results.append(BulkResult(id=number))
    if request.filters is None:
        missing = set(request.experiment_ids) - {result.id for result in results}
        missing_results = [BulkResult(id=number, error=_missing(number, project_id)) for number in missing]
        results = sorted([*results, *missing_results], key=lambda result: result.id)
    return BulkResponse(results=results)


def _project(number: int | None) -> int | None:
    """The project that is meant; None for any: no number, 0 and -1."""
    return number if number and number > 0 else None


def _missing(number: int, project_id: int) -> str:
    return f"experiment {number} not found" + (f" in project {project_id}" if project_id else "")


async def _chosen(master: Master, caller: Caller, project_id: int | None, request: BulkRequest) -> list[int]:
    """Numbers of the experiments that are meant and are there."""
    if request.filters is None:
        filters = ExperimentFilter(ids=tuple(request.experiment_ids), project_id=project_id or None)
    else:
        filters = _filter(request.filters, project_id)
    async with master.db.snapshot() as conn:
        if project_id:
            await projects.get(conn, project_id)
        if request.filters is not None and request.filters.query:
            filters = await _queried(conn, caller, filters, request.filters.query)
        total = await experiment_lists.count(conn, filters)
        return await experiment_lists.ids(conn, filters, Page(), total)


async def _queried(conn: Connection, caller: Caller, filters: ExperimentFilter, query: str) -> ExperimentFilter:
    """Only those that a typed filter finds, too. Raises InvalidInput."""
    matching = await narrowed(conn, caller, filters.project_id, Filter(), query)
    numbers = await experiment_columns.search(conn, filters.project_id, matching, (), Page())
    return replace(filters, ids=tuple(numbers))


def _filter(filters: BulkFilters, project_id: int | None) -> ExperimentFilter:
    own = _project(filters.project_id)
    if own and project_id and own != project_id:
        raise NotFound(
            f"experiments not found: filters.projectId is {filters.project_id}, "
            f"and the request is about project {project_id}"
        )
    return ExperimentFilter(
        name=filters.name,
        description=filters.description,
        labels=tuple(filters.labels) or None,
        archived=filters.archived,
        states=tuple(state.value.removeprefix("STATE_") for state in filters.states) or None,
        user_ids=tuple(filters.user_ids) or None,
        project_id=own or project_id or None,
        not_ids=tuple(filters.excluded_experiment_ids) or None,
    )
