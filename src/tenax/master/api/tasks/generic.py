"""Generic tasks: created, forked, paused, ended; with children that share their fate.

Rules it keeps: a pause and a kill reach all that came from a task; what cannot be paused is passed over, unless it is
the one that was named; only owners and administrators change a task, and nothing is changed unless all of it may be.
"""

from __future__ import annotations

from dataclasses import replace

from asyncpg import Connection

from tenax.config.schema.command import GENERIC
from tenax.config.templates import for_struct
from tenax.display.secrets import without_secrets
from tenax.errors import Forbidden, NotNow
from tenax.lifecycle.task import ENDED, TaskEvent, TaskState
from tenax.master.access.authorization import Allow, Caller, may_see_secrets
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.requests import UploadDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks.messages import (
    CreateGenericTaskResponse,
    GetGenericTaskConfigResponse,
    KillGenericTaskRequest,
)
from tenax.master.api.tasks.routes import config_text
from tenax.master.context import Master
from tenax.master.store.tasks import contexts
from tenax.master.store.tasks import lists as task_lists
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import LaunchedTask
from tenax.master.store.workspaces import projects
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.submission.commands import Source, examine_generic, source_of
from tenax.master.submission.messages import CreateGenericTaskRequest
from tenax.wire.message import Empty

routes = Routes("Tasks")


@routes.post("/api/v1/generic-tasks", "CreateGenericTask", allow=Allow.USER, creates=True)
async def create_generic_task(
    master: MasterDep, caller: CallerDep, body: CreateGenericTaskRequest, upload: UploadDep
) -> CreateGenericTaskResponse:
    """Create a task, perhaps as the child or as the fork of another one."""
    source = await _forked(master, caller, body.forked_from) if body.forked_from else await source_of(master.db, body)
    launch = await examine_generic(master.db, master.settings, master.examiners, caller.person.id, body, source, upload)
    new = launch.new
    async with master.db.transaction() as conn:
        # Neither where it is filed nor what it comes from goes, or closes, before it is there.
        if new.project_id is None:
            await workspaces.hold(conn, new.workspace_id)
        else:
            new = replace(new, workspace_id=(await projects.hold(conn, new.project_id)).workspace_id)
        for source_id in sorted({origin for origin in (new.parent_id, new.forked_from) if origin is not None}):
            await tasks.lock(conn, source_id)
        if new.parent_id is not None:
            await _check_parent(conn, caller, new.parent_id)
        task_id = await tasks.create(conn, new)
    return CreateGenericTaskResponse(task_id=task_id, warnings=list(launch.warnings), notices=list(launch.notices))


@routes.get("/api/v1/tasks/{task_id}/config", "GetGenericTaskConfig", allow=Allow.USER)
async def get_config(master: MasterDep, caller: CallerDep, task_id: str) -> GetGenericTaskConfigResponse:
    """The complete configuration of a launched task, as JSON text."""
    async with master.db.connection() as conn:
        view = await task_lists.get_launched(conn, task_id)
    return GetGenericTaskConfigResponse(config=config_text(view, caller))


@routes.post("/api/v1/tasks/{task_id}/kill", "KillGenericTask", allow=Allow.USER)
async def kill(master: MasterDep, caller: CallerDep, task_id: str, body: KillGenericTaskRequest) -> Empty:
    """End it and all that came from it; with ``killFromRoot`` all that its topmost ancestor is the ancestor of."""
    async with master.db.transaction() as conn:
        for task in await _family(conn, caller, task_id, from_root=body.kill_from_root):
            await tasks.happen(conn, task, TaskEvent.KILL, f"killed by {caller.person.username}")
    return Empty()


@routes.post("/api/v1/tasks/{task_id}/pause", "PauseGenericTask", allow=Allow.USER)
async def pause(master: MasterDep, caller: CallerDep, task_id: str) -> Empty:
    """It and all that came from it save and leave their slots."""
    await _happen(master, caller, task_id, TaskEvent.PAUSE, "paused")
    return Empty()


@routes.post("/api/v1/tasks/{task_id}/unpause", "UnpauseGenericTask", allow=Allow.USER)
async def unpause(master: MasterDep, caller: CallerDep, task_id: str) -> Empty:
    """It and all that came from it go on from what they saved."""
    await _happen(master, caller, task_id, TaskEvent.UNPAUSE, "")
    return Empty()


async def _happen(master: Master, caller: Caller, task_id: str, event: TaskEvent, past: str) -> None:
    reason = f"{past} by {caller.person.username}" if past else ""
    async with master.db.transaction() as conn:
        for task in await _family(conn, caller, task_id):
            if task.task_id != task_id and (not task.pausable or task.state in _SETTLED):
                continue
            await tasks.happen(conn, task, event, reason)


#: States in which a pause or its end passes a descendant over.
_SETTLED = (*ENDED, TaskState.STOPPING_CANCELED)


async def _family(conn: Connection, caller: Caller, task_id: str, *, from_root: bool = False) -> list[LaunchedTask]:
    family = await tasks.lock_family(conn, task_id, from_root=from_root)
    for view in await task_lists.launched_views(conn, [task.task_id for task in family], documents=False):
        caller.may_change(view.owner_id, f"task {view.task_id}")
    return family


async def _check_parent(conn: Connection, caller: Caller, parent_id: str) -> None:
    """Locks it, so that one that is being killed has no child that escapes."""
    view = await task_lists.get_launched(conn, parent_id)
    caller.may_change(view.owner_id, f"task {parent_id}")
    parent = await tasks.lock(conn, parent_id)
    if parent.state in _SETTLED:
        raise NotNow(f"the parent {parent_id} is {parent.state.value.lower()}: it can have no more children")


async def _forked(master: Master, caller: Caller, task_id: str) -> Source:
    async with master.db.connection() as conn:
        view = await task_lists.get_launched(conn, task_id)
        code = await contexts.of_task(conn, task_id)
        source = Source(view.config, view.own, view.submitted, code, view.project_id)
    if not may_see_secrets(caller, view.owner_id) and without_secrets(view.config) != view.config:
        raise Forbidden(f"the configuration of task {task_id} holds secrets of its owner: submit one of your own")
    # A command's has more keys; a description that was drawn stays with whom it was drawn for.
    config = for_struct(view.config, GENERIC)
    drawn = "description" if not config.get("name") else ""
    return replace(source, config={name: value for name, value in config.items() if name != drawn})
