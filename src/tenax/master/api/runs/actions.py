"""What is done to many runs at once, each by itself: an answer per run, and one that is refused stops no other.

Rules it keeps: runs are named by ids or found by a filter; only who may change a run's experiment changes it; the run
of an experiment of one trial stands for the experiment, where only the experiment can do what is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio.to_thread
from asyncpg import Connection

from tenax.errors import InvalidInput, NotNow, UserError
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.runs.messages import MoveRunsRequest, RunActionResult, RunsRequest, RunsResponse
from tenax.master.checkpoints import removal_tasks
from tenax.master.checkpoints.files import delete_checkpoint, delete_tensorboard
from tenax.master.checkpoints.removal import configured_place
from tenax.master.checkpoints.roots import CheckpointRoots
from tenax.master.context import Master
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.filter_text import parse
from tenax.master.store.database.paging import Page
from tenax.master.store.experiments import edits as experiment_edits
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import unmanaged
from tenax.master.store.runs import lists as run_lists
from tenax.master.store.runs import rows as runs
from tenax.master.store.runs.lists import RunOwner
from tenax.master.store.runs.rows import Leftover
from tenax.master.store.users import rows as users
from tenax.master.store.users.rows import FileOwner
from tenax.master.store.workspaces import projects
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_reachable_by_agents

routes = Routes("Runs")

#: Does something to one run, its experiment locked; what to say when it cannot be done, in words.
Action = Callable[[Connection, RunOwner], Awaitable[None]]


class _Refused(UserError):
    """This cannot be done to this run."""


@routes.post("/api/v1/runs/kill", "KillRuns", allow=Allow.USER)
async def kill(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """End runs at once."""

    async def action(conn: Connection, run: RunOwner) -> None:
        if run.stored_state != "ACTIVE":
            return
        if run.multitrial:
            await unmanaged.kill(conn, run.id, run.experiment_id)
        else:
            reason = f"killed by {caller.person.username}"
            await experiments.ask(conn, run.experiment_id, ExperimentEvent.KILL, reason)

    return await _each(master, caller, body, action)


@routes.post("/api/v1/runs/pause", "PauseRuns", allow=Allow.USER)
async def pause(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """Let runs save and leave; each the only one of its experiment."""
    return await _each(master, caller, body, _hold(ExperimentEvent.PAUSE, f"paused by {caller.person.username}"))


@routes.post("/api/v1/runs/resume", "ResumeRuns", allow=Allow.USER)
async def resume(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """Let paused runs go on."""
    return await _each(master, caller, body, _hold(ExperimentEvent.ACTIVATE, ""))


@routes.post("/api/v1/runs/archive", "ArchiveRuns", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """Hide runs that have ended from lists."""
    return await _each(master, caller, body, _file(archived=True))


@routes.post("/api/v1/runs/unarchive", "UnarchiveRuns", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """Show runs in lists again."""
    return await _each(master, caller, body, _file(archived=False))


@routes.post("/api/v1/runs/delete", "DeleteRuns", allow=Allow.USER)
async def delete(master: MasterDep, caller: CallerDep, body: RunsRequest) -> RunsResponse:
    """Delete runs that have ended: their checkpoints, metrics and output. The only run of a search takes it along."""

    roots = master.checkpoint_roots
    left: dict[int, _Files] = {}

    async def check(conn: Connection, run: RunOwner) -> None:
        if run.stored_state == "ACTIVE":
            raise _Refused("Run is not in a terminal state.")
        if not run.multitrial:
            reason = f"deleted by {caller.person.username}"
            await experiments.ask(conn, run.experiment_id, ExperimentEvent.DELETE, reason)
            return
        if run.experiment_state not in ("COMPLETED", "CANCELED", "ERROR", "DELETE_FAILED"):
            raise _Refused(f"Its search (id: '{run.experiment_id}') goes on and may ask for it: end that first.")
        leftover = await runs.leftover(conn, run.id)
        if leftover.obstacle:
            raise _Refused(leftover.obstacle)
        plan = await experiments.plan(conn, run.experiment_id)
        owner = await users.file_owner(conn, run.owner_id, elsewhere=run.unmanaged)
        place = configured_place(plan.config)
        left[run.id] = _Files(run, leftover, place, roots, str(master.cluster.cluster_id), owner)

    async def remove(conn: Connection, run: RunOwner) -> None:
        now = await runs.leftover(conn, run.id)
        if now.obstacle:
            raise _Refused(now.obstacle)
        await runs.delete(conn, run.id)

    answer = await _each(master, caller, body, check)
    for result in answer.results:
        if not result.error and result.id in left:
            # Files first, outside any transaction: a run without files can be deleted again.
            result.error = await _delete_all_files(master, left[result.id])
            result.error = result.error or await _act(master, caller, result.id, body.project_id, remove)
    return answer


@routes.post("/api/v1/runs/move", "MoveRuns", allow=Allow.USER)
async def move(master: MasterDep, caller: CallerDep, body: MoveRunsRequest) -> RunsResponse:
    """File runs, with all others of their experiments, in another project. Ids count where there is no filter."""
    async with master.db.transaction() as conn:
        target = await projects.hold(conn, body.destination_project_id)
    if body.source_project_id == body.destination_project_id:
        return RunsResponse(results=[])
    ids = [] if body.filter else body.run_ids
    request = RunsRequest(run_ids=ids, project_id=body.source_project_id, filter=body.filter)
    named = await _named(master, request)
    results: dict[int, str] = {}
    whole: dict[int, None] = {}
    for run_id, run in named.items():
        if run is None:
            results[run_id] = _missing(run_id, body.source_project_id)
        elif run.multitrial and body.skip_multitrial:
            results[run_id] = f"Skipping run '{run_id}' (part of multi-trial)."
        elif run.archived or run.experiment_archived or run.place_archived:
            results[run_id] = "Run is archived."
        else:
            whole[run.experiment_id] = None

    async def action(conn: Connection, run: RunOwner) -> None:
        await experiment_edits.move(conn, run.experiment_id, target.id)

    async with master.db.connection() as conn:
        together = await run_lists.owners(conn, await runs.of_experiments(conn, list(whole)))
    outcomes: dict[int, str] = {}
    for run in together:
        if run.experiment_id not in outcomes:
            outcomes[run.experiment_id] = await _act(master, caller, run.id, None, action, into=target.id)
        results[run.id] = outcomes[run.experiment_id]
    return RunsResponse(results=[RunActionResult(id=run_id, error=error) for run_id, error in results.items()])


def _hold(event: ExperimentEvent, reason: str) -> Action:
    async def action(conn: Connection, run: RunOwner) -> None:
        if run.multitrial:
            raise _Refused(f"Cannot pause/unpause run '{run.id}' (part of multi-trial).")
        if run.archived or run.experiment_archived:
            raise _Refused("Run is archived.")
        await experiments.ask(conn, run.experiment_id, event, reason)

    return action


def _file(*, archived: bool) -> Action:
    async def action(conn: Connection, run: RunOwner) -> None:
        if run.experiment_archived:
            raise _Refused(f"Run is part of archived Search (id: '{run.experiment_id}').")
        if run.stored_state == "ACTIVE":
            raise _Refused("Run is not in terminal state.")
        await runs.set_archived(conn, run.id, archived)

    return action


async def _each(master: Master, caller: Caller, body: RunsRequest, action: Action) -> RunsResponse:
    if body.filter and body.run_ids:
        raise InvalidInput("if filter is provided run id list must be empty")
    results = []
    for run_id, run in (await _named(master, body)).items():
        if run is None:
            error = _missing(run_id, body.project_id)
        else:
            error = await _act(master, caller, run_id, body.project_id, action)
        results.append(RunActionResult(id=run_id, error=error))
    return RunsResponse(results=results)


async def _named(master: Master, body: RunsRequest) -> dict[int, RunOwner | None]:
    """The runs that are asked for, in that order; None for one that is not there, or not in the project."""
    async with master.db.connection() as conn:
        ids: Sequence[int] = body.run_ids
        if body.filter:
            ids = await run_lists.search(conn, body.project_id or None, parse(body.filter), (), Page())
        by_id = {run.id: run for run in await run_lists.owners(conn, ids)}
    if body.project_id:
        by_id = {run_id: run for run_id, run in by_id.items() if run.project_id == body.project_id}
    return {run_id: by_id.get(run_id) for run_id in ids}


async def _act(
    master: Master, caller: Caller, run_id: int, project_id: int | None, action: Action, *, into: int | None = None
) -> str:
    """Do it, as the run is now, its experiment locked; why it cannot be done, or nothing.

    ``into``: the project that it is filed in thereby; projects are locked before experiments.
    """
    try:
        async with master.db.transaction() as conn:
            if into is not None:
                await projects.hold(conn, into)
            for before in await run_lists.owners(conn, [run_id]):
                await experiments.lock(conn, before.experiment_id)
            now = await run_lists.owners(conn, [run_id])
            if not now or (project_id and now[0].project_id != project_id):
                return _missing(run_id, project_id)
            caller.may_change(now[0].owner_id, f"run {run_id}")
            await action(conn, now[0])
    except UserError as error:
        return error.message
    return ""


def _missing(run_id: int, project_id: int | None) -> str:
    where = f" in project with id '{project_id}'" if project_id else ""
    return f"Run with id '{run_id}' not found{where}"


@dataclass(frozen=True, slots=True)
class _Files:
    """What a run has left in storages, and where."""

    run: RunOwner
    left: Leftover
    configured: JsonObject | None
    roots: CheckpointRoots
    cluster_id: str
    owner: FileOwner


async def _delete_all_files(master: Master, files: _Files) -> str:
    """Why something is still there; nothing: all is gone. What the master does not touch is left to a task."""
    error = await anyio.to_thread.run_sync(_delete_checkpoints, files)
    if not error:
        return await _delete_tensorboard(master, files)
    if is_reachable_by_agents(files.configured):
        reason = f"run {files.run.id} is deleted"
        reported = [file.uuid for file in files.left.checkpoints if not file.unreported]
        uploads = [file.uuid for file in files.left.checkpoints if file.unreported]
        async with master.db.transaction() as conn:
            await experiments.lock(conn, files.run.experiment_id)
            await gc.request_removals(conn, dict.fromkeys(reported, reason))
            await gc.request_upload_removals(conn, uploads, reason)
        return f"{error}. A task on an agent deletes them: delete the run again once they are gone"
    return error


def _delete_checkpoints(files: _Files) -> str:
    """Why something could not be deleted; nothing: all is gone."""
    for checkpoint in files.left.checkpoints:
        try:
            delete_checkpoint(files.roots.place_of(checkpoint.storage, files.configured, files.owner), checkpoint.uuid)
        except (NotNow, StorageFailed) as error:
            return f"Its checkpoint {checkpoint.uuid} could not be deleted: {error}"
    return ""


async def _delete_tensorboard(master: Master, files: _Files) -> str:
    """Why they could not be deleted; where the master does not reach, a task on an agent deletes what there may be."""
    run, own = files.run, files.configured

    def delete() -> None:
        delete_tensorboard(files.roots.place_of(None, own, files.owner), files.cluster_id, run.experiment_id, run.id)

    try:
        await anyio.to_thread.run_sync(delete)
    except StorageFailed as error:
        return f"Its TensorBoard files could not be deleted: {error}"
    except NotNow:
        async with master.db.transaction() as conn:
            experiment = await experiments.lock(conn, run.experiment_id)
            if own is not None and not experiment.unmanaged and is_reachable_by_agents(own):
                await removal_tasks.delete_tensorboard(conn, master.settings, experiment, own, files.cluster_id, run.id)
    return ""
