"""Workspaces: listed, made, changed, archived, pinned, deleted; and what the routes of projects share with these.

Rules it keeps: everyone sees and may use every workspace; its owner and administrators change it; only administrators
say as whom its tasks run; the immutable one stays as it is; what is archived takes nothing new and does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.config.workspace import shown_storage, workspace_storage
from tenax.errors import Forbidden, InvalidInput, NotNow, Unsupported
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Rendering, WindowDep, as_json, listed
from tenax.master.api.http.routing import Routes
from tenax.master.api.users.messages import AgentUserGroup, user_message
from tenax.master.api.workspaces import messages
from tenax.master.context import Master
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.users import rows as users
from tenax.master.store.workspaces import lists as project_lists
from tenax.master.store.workspaces import removal as workspace_removal
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.lists import ProjectFilter, ProjectView
from tenax.master.store.workspaces.removal import Folder
from tenax.master.store.workspaces.rows import (
    AgentUser,
    WorkspaceDefaults,
    WorkspaceFilter,
    WorkspaceRow,
    WorkspaceView,
)
from tenax.wire.message import Empty

routes = Routes("Workspaces")

_ORDERS = {
    messages.WorkspaceSortBy.UNSPECIFIED: "id",
    messages.WorkspaceSortBy.ID: "id",
    messages.WorkspaceSortBy.NAME: "name",
}
_PROJECT_ORDERS = {
    messages.ProjectSortBy.UNSPECIFIED: "id",
    messages.ProjectSortBy.ID: "id",
    messages.ProjectSortBy.NAME: "name",
    messages.ProjectSortBy.DESCRIPTION: "description",
    messages.ProjectSortBy.CREATION_TIME: "created_at",
    messages.ProjectSortBy.LAST_EXPERIMENT_START_TIME: "last_experiment",
}
#: The role that its owner has in effect, by the number and name that role-based access gives it.
_OWNER_ROLE: JsonObject = {"roleId": 2, "name": "WorkspaceAdmin", "permissions": [], "scopeTypeMask": None}


@routes.get("/api/v1/workspaces", "GetWorkspaces", allow=Allow.USER)
async def get_workspaces(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    sort_by: Annotated[messages.WorkspaceSortBy, Query()] = messages.WorkspaceSortBy.UNSPECIFIED,
    name: Annotated[str | None, Query()] = None,
    name_case_sensitive: Annotated[str | None, Query()] = None,
    archived: Annotated[bool | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    pinned: Annotated[bool | None, Query()] = None,
) -> messages.GetWorkspacesResponse:
    """Workspaces, filtered and in order. ``name`` is the whole name, whatever its capitals."""
    filters = WorkspaceFilter(
        viewer=caller.person.id,
        archived=archived,
        name=name,
        exact_name=name_case_sensitive,
        users=tuple(users) if users else None,
        user_ids=tuple(user_ids) if user_ids else None,
        pinned=pinned,
    )
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await workspaces.count(conn, filters))
        views = await workspaces.page(conn, filters, page, order=_ORDERS[sort_by], descending=window.descending)
    return messages.GetWorkspacesResponse(workspaces=[workspace_message(view) for view in views], pagination=pagination)


@routes.get("/api/v1/workspaces/{workspace_id}", "GetWorkspace", allow=Allow.USER)
async def get_workspace(master: MasterDep, caller: CallerDep, workspace_id: int) -> messages.GetWorkspaceResponse:
    """One workspace."""
    async with master.db.connection() as conn:
        view = await workspaces.get(conn, workspace_id, caller.person.id)
    return messages.GetWorkspaceResponse(workspace=workspace_message(view))


@routes.get(
    "/api/v1/workspaces/{workspace_id}/projects",
    "GetWorkspaceProjects",
    allow=Allow.USER,
    response_model=messages.GetProjectsResponse,
)
async def get_projects(
    master: MasterDep,
    caller: CallerDep,
    workspace_id: int,
    window: WindowDep,
    sort_by: Annotated[messages.ProjectSortBy, Query()] = messages.ProjectSortBy.UNSPECIFIED,
    name: Annotated[str | None, Query()] = None,
    archived: Annotated[bool | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
) -> Response:
    """The projects of a workspace, filtered and in order; 0 means all workspaces."""
    filters = ProjectFilter(
        workspace_id=workspace_id or None,
        name=name,
        archived=archived,
        users=tuple(users) if users else None,
        user_ids=tuple(user_ids) if user_ids else None,
    )
    async with master.db.snapshot() as conn:
        if workspace_id:
            await workspaces.get(conn, workspace_id, caller.person.id)
        page, pagination = window.of(await project_lists.count(conn, filters))
        ids = await project_lists.page(
            conn, filters, page, order=_PROJECT_ORDERS[sort_by], descending=window.descending
        )

        async def load(part: Sequence[int]) -> list[ProjectView]:
            return await project_lists.views(conn, part)

        def render(view: ProjectView) -> bytes:
            return as_json(project_message(view))

        return await listed(master, ids, Rendering("projects", load, render), pagination)


@routes.post("/api/v1/workspaces", "PostWorkspace", allow=Allow.USER, creates=True)
async def post_workspace(
    master: MasterDep, caller: CallerDep, body: messages.WorkspaceSettings
) -> messages.ChangedWorkspaceResponse:
    """Make a workspace; it is pinned for who makes it."""
    name = checked_name(body.name or "", "workspace")
    agent_user = _agent_user(caller, body) or AgentUser()
    storage = _storage(body)
    compute, aux = _pools(master, body)
    _check_kubernetes(body)
    async with master.db.transaction() as conn:
        defaults = WorkspaceDefaults(storage, compute or "", aux or "")
        new = await workspaces.create(conn, name, caller.person.id, agent_user, defaults)
        view = await workspaces.get(conn, new, caller.person.id)
    return messages.ChangedWorkspaceResponse(workspace=workspace_message(view))


@routes.patch("/api/v1/workspaces/{workspace_id}", "PatchWorkspace", allow=Allow.USER)
async def patch_workspace(
    master: MasterDep, caller: CallerDep, workspace_id: int, body: messages.PatchWorkspace
) -> messages.ChangedWorkspaceResponse:
    """Change what is given; the rest stays."""
    name = None if body.name is None else checked_name(body.name, "workspace")
    agent_user = _agent_user(caller, body)
    storage = _storage(body)
    compute, aux = _pools(master, body)
    _check_kubernetes(body)
    async with master.db.transaction() as conn:
        workspace = await workspaces.lock(conn, workspace_id)
        workspace.check_editable()
        caller.may_change(workspace.owner_id, workspace.called)
        if body.expected is not None:
            present = workspace_message(await workspaces.get(conn, workspace_id, caller.person.id))
            check_expected(body.expected, present, workspace.called)
        if name is not None:
            await workspaces.rename(conn, workspace_id, name)
        if agent_user is not None:
            await workspaces.set_agent_user(conn, workspace_id, agent_user)
        if body.checkpoint_storage_config is not None:
            await workspaces.set_storage(conn, workspace_id, storage)
        await workspaces.set_pools(conn, workspace_id, compute, aux)
        view = await workspaces.get(conn, workspace_id, caller.person.id)
    return messages.ChangedWorkspaceResponse(workspace=workspace_message(view))


@routes.delete("/api/v1/workspaces/{workspace_id}", "DeleteWorkspace", allow=Allow.USER)
async def delete_workspace(master: MasterDep, caller: CallerDep, workspace_id: int) -> messages.DeleteResponse:
    """Delete it with its projects, their experiments and its templates; in the background where there are any.

    Commands and generic tasks in it are ended.
    """
    folder = Folder(workspace_id=workspace_id)
    while True:
        # Many tasks are many transactions: none of them locks many rows.
        async with master.db.transaction() as conn:
            workspace = await workspaces.lock(conn, workspace_id)
            if workspace.immutable:
                raise NotNow(f"{workspace.called} is immutable and cannot be deleted")
            caller.may_change(workspace.owner_id, workspace.called)
            await _check_deletable(conn, workspace)
            reason = f"{caller.person.username} deleted {workspace.called}"
            if await tasks.kill_in_workspace(conn, workspace_id, reason):
                continue
            completed = await workspace_removal.request(conn, folder, workspace.called, caller.person.username)
        return messages.DeleteResponse(completed=completed)


@routes.post("/api/v1/workspaces/{workspace_id}/archive", "ArchiveWorkspace", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Archive a workspace: nothing in it changes, and nothing is put into it."""
    return await _archive(master, caller, workspace_id, True)


@routes.post("/api/v1/workspaces/{workspace_id}/unarchive", "UnarchiveWorkspace", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Unarchive a workspace; projects that were archived on their own stay archived."""
    return await _archive(master, caller, workspace_id, False)


@routes.post("/api/v1/workspaces/{workspace_id}/pin", "PinWorkspace", allow=Allow.USER)
async def pin(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Pin a workspace: the caller sees it first."""
    async with master.db.transaction() as conn:
        await workspaces.get(conn, workspace_id, caller.person.id)
        await workspaces.pin(conn, workspace_id, caller.person.id)
    return Empty()


@routes.post("/api/v1/workspaces/{workspace_id}/unpin", "UnpinWorkspace", allow=Allow.USER)
async def unpin(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Unpin a workspace."""
    async with master.db.transaction() as conn:
        await workspaces.get(conn, workspace_id, caller.person.id)
        await workspaces.unpin(conn, workspace_id, caller.person.id)
    return Empty()


@routes.get("/api/v1/roles/workspace/{workspace_id}", "GetGroupsAndUsersAssignedToWorkspace", allow=Allow.USER)
async def get_members(
    master: MasterDep, caller: CallerDep, workspace_id: int, name: Annotated[str, Query()] = ""
) -> messages.GetWorkspaceMembersResponse:
    """Who has a role in it: its owner. Without role-based access there are no others, and everyone may use it."""
    async with master.db.connection() as conn:
        view = await workspaces.get(conn, workspace_id, caller.person.id)
        owner = None if view.owner_id is None else await users.get(conn, view.owner_id)
    if owner is None or name.lower() not in owner.username.lower():
        return messages.GetWorkspaceMembersResponse()
    assignment: JsonObject = {
        "userId": owner.id,
        "roleAssignment": {"role": _OWNER_ROLE, "scopeWorkspaceId": workspace_id, "scopeCluster": False},
    }
    return messages.GetWorkspaceMembersResponse(
        users_assigned_directly=[user_message(owner)],
        assignments=[{"role": _OWNER_ROLE, "userRoleAssignments": [assignment], "groupRoleAssignments": []}],
    )


async def _check_deletable(conn: Connection, workspace: WorkspaceRow) -> None:
    """Raises NotNow."""
    model = await workspaces.a_model(conn, workspace.id)
    if model is not None:
        raise NotNow(f"{workspace.called} holds the model {model!r}: delete its models first, or move them")
    await workspace_removal.check(conn, Folder(workspace_id=workspace.id), workspace.called)


async def _archive(master: Master, caller: Caller, workspace_id: int, archived: bool) -> Empty:
    async with master.db.transaction() as conn:
        workspace = await workspaces.lock(conn, workspace_id)
        if workspace.immutable:
            raise NotNow(f"{workspace.called} is immutable and cannot be archived")
        if workspace.state == "DELETING":
            raise NotNow(f"{workspace.called} is being deleted")
        caller.may_change(workspace.owner_id, workspace.called)
        await workspaces.set_archived(conn, workspace_id, archived)
    return Empty()


def _agent_user(caller: Caller, body: messages.WorkspaceSettings) -> AgentUser | None:
    group = body.agent_user_group
    if group is None:
        return None
    if not caller.is_admin:
        raise Forbidden("agentUserGroup says whom tasks run as on the agents: only administrators may set it")
    for name, number in (("agentUid", group.agent_uid), ("agentGid", group.agent_gid)):
        if number is not None and not 0 <= number < 2**31:
            raise InvalidInput(f"agentUserGroup.{name} is {number}: it must be a number of a user, 0 or more")
    if group.agent_uid is not None and not group.agent_user:
        raise InvalidInput("agentUserGroup: agentUid has no name: give agentUser with it")
    if group.agent_gid is not None and not group.agent_group:
        raise InvalidInput("agentUserGroup: agentGid has no name: give agentGroup with it")
    return AgentUser(group.agent_uid, group.agent_gid, group.agent_user, group.agent_group)


def _storage(body: messages.WorkspaceSettings) -> JsonObject | None:
    given = body.checkpoint_storage_config
    return None if given is None else workspace_storage(given)


def _pools(master: Master, body: messages.WorkspaceSettings) -> tuple[str | None, str | None]:
    """The default pools for tasks with slots and without; None for what is not given. Raises InvalidInput."""
    compute = body.default_compute_pool if body.default_compute_pool is not None else body.default_compute_resource_pool
    aux = body.default_aux_pool if body.default_aux_pool is not None else body.default_aux_resource_pool
    for name, pool in (("defaultComputePool", compute), ("defaultAuxPool", aux)):
        if pool and master.settings.pool(pool) is None:
            known = ", ".join(sorted(settings.name for settings in master.settings.pools))
            raise InvalidInput(f"{name}: there is no pool {pool!r}; the pools are {known}")
    return compute, aux


def _check_kubernetes(body: messages.WorkspaceSettings) -> None:
    if body.cluster_namespace_meta or body.cluster_quota_pairs:
        raise Unsupported("namespaces and quotas are Kubernetes', and this cluster places tasks on agents of its own")


#: Letters of a name; more are no name.
NAME_LIMIT = 80

_STATES = {
    "ACTIVE": messages.WorkspaceState.UNSPECIFIED,
    "DELETING": messages.WorkspaceState.DELETING,
    "DELETE_FAILED": messages.WorkspaceState.DELETE_FAILED,
}


def checked_name(name: str, what: str) -> str:
    """``name`` if it may name a workspace or a project. Raises InvalidInput."""
    if not name.strip():
        raise InvalidInput(f"the name of a {what} cannot be blank: choose one")
    if name != name.strip():
        raise InvalidInput(f"the name {name!r} begins or ends with a space: leave it out")
    if len(name) > NAME_LIMIT:
        raise InvalidInput(f"a name of a {what} has at most {NAME_LIMIT} letters, and this one has {len(name)}")
    return name


def workspace_message(view: WorkspaceView) -> messages.Workspace:
    """A workspace as its caller sees it; secrets of its storage are stars for everyone."""
    group = AgentUserGroup(
        agent_uid=view.agent_uid,
        agent_gid=view.agent_gid,
        agent_user=view.agent_user,
        agent_group=view.agent_group,
    )
    return messages.Workspace(
        id=view.id,
        name=view.name,
        archived=view.archived,
        username=view.username,
        immutable=view.immutable,
        num_projects=view.projects,
        num_experiments=view.experiments,
        pinned=view.pinned_at is not None,
        pinned_at=view.pinned_at,
        user_id=view.owner_id or 0,
        state=_STATES[view.state],
        error_message=view.error_message,
        agent_user_group=group if group != AgentUserGroup() else None,
        checkpoint_storage_config=shown_storage(view.checkpoint_storage),
        default_compute_pool=view.default_compute_pool,
        default_aux_pool=view.default_aux_pool,
    )


def project_message(view: ProjectView) -> messages.Project:
    """A project as anyone sees it."""
    return messages.Project(
        id=view.id,
        name=view.name,
        description=view.description,
        key=view.key,
        notes=[messages.Note.model_validate(note) for note in view.notes],
        workspace_id=view.workspace_id,
        workspace_name=view.workspace_name,
        user_id=view.owner_id or 0,
        username=view.username,
        immutable=view.immutable,
        archived=view.archived,
        state=_STATES[view.state],
        error_message=view.error_message,
        last_experiment_started_at=view.last_at,
        num_experiments=view.experiments,
        num_active_experiments=view.active,
        num_runs=view.runs,
    )
