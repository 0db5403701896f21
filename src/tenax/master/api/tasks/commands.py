"""Commands: launched, listed, shown, ended.

Rules it keeps: everyone who is logged in sees every command; only its owner and administrators change it, and only they
see the secrets of its configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import InvalidInput
from tenax.lifecycle.container import exit_status
from tenax.lifecycle.task import TaskEvent, TaskKind, TaskState
from tenax.master.access.authorization import Allow, Caller, shown_config
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.paging import Rendering, Window, WindowDep, as_json, listed
from tenax.master.api.http.requests import UploadDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks import messages
from tenax.master.api.tasks.routes import TASK_STATES, container_message
from tenax.master.context import Master
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.tasks import lists as task_lists
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.lists import LaunchedFilter, LaunchedView
from tenax.master.store.tasks.rows import NewTask
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.submission.commands import examine_command
from tenax.master.submission.messages import LaunchCommandRequest
from tenax.wire.message import Message

routes = Routes("Commands")

ORDERS = {
    messages.CommandSortBy.UNSPECIFIED: "start_time",
    messages.CommandSortBy.ID: "id",
    messages.CommandSortBy.DESCRIPTION: "description",
    messages.CommandSortBy.START_TIME: "start_time",
    messages.CommandSortBy.WORKSPACE_ID: "workspace_id",
}
_KIND = TaskKind.COMMAND.value


@routes.post("/api/v1/commands", "LaunchCommand", allow=Allow.USER, creates=True)
async def launch_command(
    master: MasterDep, caller: CallerDep, body: LaunchCommandRequest, upload: UploadDep
) -> messages.LaunchCommandResponse:
    """Run a program once; with ``preview`` only say what it would be."""
    launch = await examine_command(master.db, master.settings, master.examiners, caller.person.id, body, upload)
    if body.preview:
        message = _imagined(launch.new, caller)
    else:
        async with master.db.transaction() as conn:
            await workspaces.hold(conn, launch.new.workspace_id)
            task_id = await tasks.create(conn, launch.new)
            message = command_message(await task_lists.get_launched(conn, task_id))
    config = shown_config(launch.new.config, caller, caller.person.id, own=launch.new.own)
    return messages.LaunchCommandResponse(
        command=message, config=config, warnings=list(launch.warnings), notices=list(launch.notices)
    )


@routes.get("/api/v1/commands", "GetCommands", allow=Allow.USER, response_model=messages.GetCommandsResponse)
async def get_commands(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[messages.CommandSortBy, Query()] = messages.CommandSortBy.UNSPECIFIED,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    workspace_id: Annotated[int | None, Query()] = None,
) -> Response:
    """Those that live or have ended within a day; ``users`` and ``userIds`` together name whose."""
    filters = LaunchedFilter(
        (_KIND,),
        usernames=None if users is None else tuple(users),
        user_ids=None if user_ids is None else tuple(user_ids),
        workspace_id=workspace_id or None,
    )
    return await launched(master, filters, window, sort_by, "commands", command_message)


async def launched(
    master: Master,
    filters: LaunchedFilter,
    window: Window,
    sort_by: messages.CommandSortBy,
    name: str,
    made: Callable[[LaunchedView], Message],
) -> Response:
    """A page of launched tasks: somebody may have launched thousands, and each has a description."""
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await task_lists.count_launched(conn, filters))
        ids = await task_lists.launched_ids(conn, filters, page, order=ORDERS[sort_by], descending=window.descending)

        async def load(part: Sequence[str]) -> list[LaunchedView]:
            return await task_lists.launched_views(conn, list(part), documents=False)

        return await listed(master, ids, Rendering(name, load, lambda view: as_json(made(view))), pagination)


@routes.get("/api/v1/commands/{command_id}", "GetCommand", allow=Allow.USER)
async def get_command(master: MasterDep, caller: CallerDep, command_id: str) -> messages.GetCommandResponse:
    """One command and its configuration."""
    async with master.db.connection() as conn:
        view = await task_lists.get_launched(conn, command_id, _KIND)
    config = shown_config(view.config, caller, view.owner_id, own=view.own)
    return messages.GetCommandResponse(command=command_message(view), config=config)


@routes.post("/api/v1/commands/{command_id}/kill", "KillCommand", allow=Allow.USER)
async def kill_command(master: MasterDep, caller: CallerDep, command_id: str) -> messages.KillCommandResponse:
    """End it at once; nothing if it has ended."""
    async with master.db.transaction() as conn:
        await _check_owner(conn, caller, command_id)
        task = await tasks.lock(conn, command_id)
        await tasks.happen(conn, task, TaskEvent.KILL, f"killed by {caller.person.username}")
        view = await task_lists.get_launched(conn, command_id, _KIND)
    return messages.KillCommandResponse(command=command_message(view))


@routes.post("/api/v1/commands/{command_id}/set_priority", "SetCommandPriority", allow=Allow.USER)
async def set_priority(
    master: MasterDep, caller: CallerDep, command_id: str, body: messages.SetCommandPriorityRequest
) -> messages.SetCommandPriorityResponse:
    """Its place in the queue: 1 is the most urgent, 99 the least."""
    if not 1 <= body.priority <= 99:
        raise InvalidInput(f"priority is {body.priority}: give a number from 1 (most urgent) to 99")
    async with master.db.transaction() as conn:
        view = await _check_owner(conn, caller, command_id)
        await quotas.check_priority(conn, view.owner_id, view.workspace_id, body.priority)
        await tasks.set_priority(conn, command_id, body.priority)
        view = await task_lists.get_launched(conn, command_id, _KIND)
    return messages.SetCommandPriorityResponse(command=command_message(view))


async def _check_owner(conn: Connection, caller: Caller, command_id: str) -> LaunchedView:
    view = await task_lists.get_launched(conn, command_id, _KIND)
    caller.may_change(view.owner_id, f"command {command_id}")
    return view


def command_message(view: LaunchedView) -> messages.Command:
    """A command as clients see one."""
    ended = view.ended_at is not None
    return messages.Command(
        id=view.task_id,
        description=view.description,
        state=messages.TaskState.TERMINATED
        if ended
        else TASK_STATES.get(view.attempt_state or "", messages.TaskState.QUEUED),
        start_time=view.created_at,
        container=container_message(view),
        display_name=view.display_name,
        user_id=view.owner_id,
        username=view.username,
        resource_pool=view.pool,
        exit_status=_exit_status(view) if ended else "",
        job_id=view.job_id,
        workspace_id=view.workspace_id,
        end_time=view.ended_at,
        exit_code=view.exit_code if ended else None,
        priority=view.priority,
        reason=view.wait_reason or (view.reason if ended else ""),
    )


def _exit_status(view: LaunchedView) -> str:
    """In Determined's words where its program ended by itself: they hold "success" after success only."""
    if view.state == TaskState.COMPLETED.value:
        return exit_status(0)
    failed = view.state == TaskState.ERROR.value and view.exit_code
    return exit_status(view.exit_code) if failed else view.reason


def _imagined(new: NewTask, caller: Caller) -> messages.Command:
    """What the command would be; it has no id."""
    return messages.Command(
        id="",
        description=new.description,
        state=messages.TaskState.QUEUED,
        start_time=datetime.now(timezone.utc),
        display_name=caller.person.display_name,
        user_id=caller.person.id,
        username=caller.person.username,
        resource_pool=new.pool,
        job_id="",
        workspace_id=new.workspace_id,
        priority=new.priority,
    )
