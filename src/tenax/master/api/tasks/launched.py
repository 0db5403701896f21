"""Tasks that no search asked for, of all kinds in one list.

Rules it keeps: everyone who is logged in sees every task; a list holds no configuration, so no secret.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks import messages
from tenax.master.api.tasks.commands import launched
from tenax.master.api.tasks.routes import TASK_STATES, container_message
from tenax.master.store.tasks.lists import LaunchedFilter, LaunchedView

routes = Routes("Tasks")

_PREFIX = "TASK_TYPE_"


@routes.get(
    "/api/v1/launched-tasks",
    "GetLaunchedTasks",
    allow=Allow.USER,
    response_model=messages.GetLaunchedTasksResponse,
)
async def get_launched_tasks(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[messages.CommandSortBy, Query()] = messages.CommandSortBy.UNSPECIFIED,
    task_types: Annotated[list[messages.LaunchedKind] | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    workspace_id: Annotated[int | None, Query()] = None,
    name: Annotated[str, Query()] = "",
    parent_id: Annotated[str, Query()] = "",
    old: Annotated[bool, Query()] = False,
) -> Response:
    """Those that live or have ended within a day; with ``old`` all.

    ``name``: a part of the description, or how the id begins.
    """
    filters = LaunchedFilter(
        tuple(kind.value.removeprefix(_PREFIX) for kind in task_types or messages.LaunchedKind),
        usernames=None if users is None else tuple(users),
        user_ids=None if user_ids is None else tuple(user_ids),
        workspace_id=workspace_id or None,
        name=name or None,
        parent_id=parent_id or None,
        old=old,
    )
    return await launched(master, filters, window, sort_by, "tasks", _message)


def _message(view: LaunchedView) -> messages.ListedTask:
    ended = view.ended_at is not None
    return messages.ListedTask(
        task_id=view.task_id,
        task_type=messages.LaunchedKind(f"{_PREFIX}{view.kind}"),
        description=view.description,
        task_state=messages.GenericTaskState(f"GENERIC_TASK_STATE_{view.state}"),
        state=messages.TaskState.TERMINATED
        if ended
        else TASK_STATES.get(view.attempt_state or "", messages.TaskState.QUEUED),
        reason=view.wait_reason or view.reason,
        user_id=view.owner_id,
        username=view.username,
        resource_pool=view.pool,
        priority=view.priority,
        workspace_id=view.workspace_id,
        project_id=view.project_id,
        parent_id=view.parent_id,
        forked_from=view.forked_from,
        no_pause=not view.pausable,
        start_time=view.created_at,
        end_time=view.ended_at,
        exit_code=view.exit_code if ended else None,
        container=container_message(view),
    )
