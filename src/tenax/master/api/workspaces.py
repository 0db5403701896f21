"""Workspaces: listed, made, changed, archived, pinned, deleted.

Rules it keeps: everyone sees and may use every workspace; its owner and administrators change it; whom its tasks run as
is an administrator's to say; the immutable one stays as it is; what is archived takes nothing new and does not change.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Query

from tenax.config.workspace import workspace_storage
from tenax.errors import Forbidden, InvalidInput, NotNow, Unsupported
from tenax.jsonvalue import JsonObject
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.folders import checked_name, project_message, workspace_message
from tenax.master.api.paging import WindowDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import user_message
from tenax.master.auth import Caller
from tenax.master.context import Master
from tenax.master.store import listings_projects, removal, tasks, users, workspaces
from tenax.master.store.listings_projects import ProjectFilter
from tenax.master.store.removal import Folder
from tenax.master.store.workspaces import AgentUser, Defaults, WorkspaceFilter
from tenax.wire.api.message import Document, Empty
from tenax.wire.api.projects import GetProjectsResponse, ProjectSortBy
from tenax.wire.api.workspaces import (
    ChangedWorkspaceResponse,
    DeleteResponse,
    GetWorkspaceMembersResponse,
    GetWorkspaceResponse,
    GetWorkspacesResponse,
    WorkspaceSettings,
    WorkspaceSortBy,
)

routes = Routes("Workspaces")

_ORDERS = {WorkspaceSortBy.UNSPECIFIED: "id", WorkspaceSortBy.ID: "id", WorkspaceSortBy.NAME: "name"}
_PROJECT_ORDERS = {
    ProjectSortBy.UNSPECIFIED: "id",
    ProjectSortBy.ID: "id",
    ProjectSortBy.NAME: "name",
    ProjectSortBy.DESCRIPTION: "description",
    ProjectSortBy.CREATION_TIME: "created_at",
    ProjectSortBy.LAST_EXPERIMENT_START_TIME: "last_experiment",
}
#: The role that its owner has in effect, by the number and name that role-based access gives it.
_OWNER_ROLE: Document = {"roleId": 2, "name": "WorkspaceAdmin", "permissions": [], "scopeTypeMask": None}


@routes.get("/api/v1/workspaces", "GetWorkspaces", allow=Allow.USER)
async def get_workspaces(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    sort_by: Annotated[WorkspaceSortBy, Query()] = WorkspaceSortBy.UNSPECIFIED,
    name: Annotated[str | None, Query()] = None,
    name_case_sensitive: Annotated[str | None, Query()] = None,
    archived: Annotated[bool | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    pinned: Annotated[bool | None, Query()] = None,
) -> GetWorkspacesResponse:
    """Workspaces, filtered and in order. ``name`` is the whole name, whatever its capitals."""
    wanted = WorkspaceFilter(
        viewer=caller.person.id,
        archived=archived,
        name=name,
        exact_name=name_case_sensitive,
        users=tuple(users) if users else None,
        user_ids=tuple(user_ids) if user_ids else None,
        pinned=pinned,
    )
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await workspaces.count(conn, wanted))
        found = await workspaces.page(conn, wanted, page, order=_ORDERS[sort_by], descending=window.descending)
    return GetWorkspacesResponse(workspaces=[workspace_message(view) for view in found], pagination=pagination)


@routes.get("/api/v1/workspaces/{workspace_id}", "GetWorkspace", allow=Allow.USER)
async def get_workspace(master: MasterDep, caller: CallerDep, workspace_id: int) -> GetWorkspaceResponse:
    """One workspace."""
    async with master.db.connection() as conn:
        view = await workspaces.get(conn, workspace_id, caller.person.id)
    return GetWorkspaceResponse(workspace=workspace_message(view))


@routes.get("/api/v1/workspaces/{workspace_id}/projects", "GetWorkspaceProjects", allow=Allow.USER)
async def get_projects(
    master: MasterDep,
    caller: CallerDep,
    workspace_id: int,
    window: WindowDep,
    sort_by: Annotated[ProjectSortBy, Query()] = ProjectSortBy.UNSPECIFIED,
    name: Annotated[str | None, Query()] = None,
    archived: Annotated[bool | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
) -> GetProjectsResponse:
    """Its projects, filtered and in order; of all workspaces for 0."""
    wanted = ProjectFilter(
        workspace_id=workspace_id or None,
        name=name,
        archived=archived,
        users=tuple(users) if users else None,
        user_ids=tuple(user_ids) if user_ids else None,
    )
    async with master.db.snapshot() as conn:
        if workspace_id:
            await workspaces.get(conn, workspace_id, caller.person.id)
        page, pagination = window.of(await listings_projects.count(conn, wanted))
        found = await listings_projects.page(
            conn, wanted, page, order=_PROJECT_ORDERS[sort_by], descending=window.descending
        )
    return GetProjectsResponse(projects=[project_message(view) for view in found], pagination=pagination)


@routes.post("/api/v1/workspaces", "PostWorkspace", allow=Allow.USER)
async def post_workspace(master: MasterDep, caller: CallerDep, body: WorkspaceSettings) -> ChangedWorkspaceResponse:
    """Make a workspace; it is pinned for who makes it."""
    name = checked_name(body.name or "", "workspace")
    agent_user = _agent_user(caller, body) or AgentUser()
    storage = _storage(body)
    compute, aux = _pools(master, body)
    _check_kubernetes(body)
    async with master.db.transaction() as conn:
        defaults = Defaults(storage, compute or "", aux or "")
        new = await workspaces.create(conn, name, caller.person.id, agent_user, defaults)
        view = await workspaces.get(conn, new, caller.person.id)
    return ChangedWorkspaceResponse(workspace=workspace_message(view))


@routes.patch("/api/v1/workspaces/{workspace_id}", "PatchWorkspace", allow=Allow.USER)
async def patch_workspace(
    master: MasterDep, caller: CallerDep, workspace_id: int, body: WorkspaceSettings
) -> ChangedWorkspaceResponse:
    """Change what is given; the rest stays."""
    name = None if body.name is None else checked_name(body.name, "workspace")
    agent_user = _agent_user(caller, body)
    storage = _storage(body)
    compute, aux = _pools(master, body)
    _check_kubernetes(body)
    async with master.db.transaction() as conn:
        workspace = await workspaces.lock(conn, workspace_id)
        caller.may_change(workspace.owner_id, workspace.called)
        workspace.check_editable()
        if name is not None:
            await workspaces.rename(conn, workspace_id, name)
        if agent_user is not None:
            await workspaces.set_agent_user(conn, workspace_id, agent_user)
        if body.checkpoint_storage_config is not None:
            await workspaces.set_storage(conn, workspace_id, storage)
        await workspaces.set_pools(conn, workspace_id, compute, aux)
        view = await workspaces.get(conn, workspace_id, caller.person.id)
    return ChangedWorkspaceResponse(workspace=workspace_message(view))


@routes.delete("/api/v1/workspaces/{workspace_id}", "DeleteWorkspace", allow=Allow.USER)
async def delete_workspace(master: MasterDep, caller: CallerDep, workspace_id: int) -> DeleteResponse:
    """Delete it with its projects, their experiments and its templates; in the background where there are any.

    Commands and generic tasks in it are ended.
    """
    async with master.db.transaction() as conn:
        workspace = await workspaces.lock(conn, workspace_id)
        caller.may_change(workspace.owner_id, workspace.called)
        if workspace.immutable:
            raise NotNow(f"{workspace.called} is immutable and cannot be deleted")
        model = await workspaces.a_model(conn, workspace_id)
        if model is not None:
            raise NotNow(f"{workspace.called} holds the model {model!r}: delete its models first, or move them")
        folder = Folder(workspace_id=workspace_id)
        await tasks.kill_in_workspace(conn, workspace_id, f"{caller.person.username} deleted {workspace.called}")
        completed = await removal.ask(conn, folder, workspace.called, caller.person.username)
    return DeleteResponse(completed=completed)


@routes.post("/api/v1/workspaces/{workspace_id}/archive", "ArchiveWorkspace", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Nothing in it changes any more, and nothing is put into it."""
    return await _archive(master, caller, workspace_id, True)


@routes.post("/api/v1/workspaces/{workspace_id}/unarchive", "UnarchiveWorkspace", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """As it was before; projects that were archived themselves stay so."""
    return await _archive(master, caller, workspace_id, False)


@routes.post("/api/v1/workspaces/{workspace_id}/pin", "PinWorkspace", allow=Allow.USER)
async def pin(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Show it first to the caller."""
    async with master.db.transaction() as conn:
        await workspaces.get(conn, workspace_id, caller.person.id)
        await workspaces.pin(conn, workspace_id, caller.person.id)
    return Empty()


@routes.post("/api/v1/workspaces/{workspace_id}/unpin", "UnpinWorkspace", allow=Allow.USER)
async def unpin(master: MasterDep, caller: CallerDep, workspace_id: int) -> Empty:
    """Show it to the caller where it stands."""
    async with master.db.transaction() as conn:
        await workspaces.get(conn, workspace_id, caller.person.id)
        await workspaces.unpin(conn, workspace_id, caller.person.id)
    return Empty()


@routes.get("/api/v1/roles/workspace/{workspace_id}", "GetGroupsAndUsersAssignedToWorkspace", allow=Allow.USER)
async def get_members(
    master: MasterDep, caller: CallerDep, workspace_id: int, name: Annotated[str, Query()] = ""
) -> GetWorkspaceMembersResponse:
    """Who has a role in it: its owner. Without role-based access there are no others, and everyone may use it."""
    async with master.db.connection() as conn:
        view = await workspaces.get(conn, workspace_id, caller.person.id)
        owner = None if view.owner_id is None else await users.get(conn, view.owner_id)
    if owner is None or name.lower() not in owner.username.lower():
        return GetWorkspaceMembersResponse()
    assignment: Document = {
        "userId": owner.id,
        "roleAssignment": {"role": _OWNER_ROLE, "scopeWorkspaceId": workspace_id, "scopeCluster": False},
    }
    return GetWorkspaceMembersResponse(
        users_assigned_directly=[user_message(owner)],
        assignments=[{"role": _OWNER_ROLE, "userRoleAssignments": [assignment], "groupRoleAssignments": []}],
    )


async def _archive(master: Master, caller: Caller, workspace_id: int, archived: bool) -> Empty:
    async with master.db.transaction() as conn:
        workspace = await workspaces.lock(conn, workspace_id)
        caller.may_change(workspace.owner_id, workspace.called)
        if workspace.immutable:
            raise NotNow(f"{workspace.called} is immutable and cannot be archived")
        if workspace.state == "DELETING":
            raise NotNow(f"{workspace.called} is being deleted")
        await workspaces.set_archived(conn, workspace_id, archived)
    return Empty()


def _agent_user(caller: Caller, body: WorkspaceSettings) -> AgentUser | None:
    group = body.agent_user_group
    if group is None:
        return None
    if not caller.is_admin:
        raise Forbidden("agentUserGroup says whom tasks run as on the agents: only administrators may set it")
    for name, number in (("agentUid", group.agent_uid), ("agentGid", group.agent_gid)):
        if number is not None and not 0 <= number < 2**31:
            raise InvalidInput(f"agentUserGroup.{name} is {number}: it must be a number of a user, 0 or more")
    return AgentUser(group.agent_uid, group.agent_gid, group.agent_user, group.agent_group)


def _storage(body: WorkspaceSettings) -> JsonObject | None:
    given = body.checkpoint_storage_config
    return None if given is None else workspace_storage(cast(JsonObject, given))


def _pools(master: Master, body: WorkspaceSettings) -> tuple[str | None, str | None]:
    """The default pools for tasks with slots and without; None for what is not given. Raises InvalidInput."""
    compute = body.default_compute_pool if body.default_compute_pool is not None else body.default_compute_resource_pool
    aux = body.default_aux_pool if body.default_aux_pool is not None else body.default_aux_resource_pool
    for name, pool in (("defaultComputePool", compute), ("defaultAuxPool", aux)):
        if pool and master.settings.pool(pool) is None:
            known = ", ".join(sorted(one.name for one in master.settings.pools))
            raise InvalidInput(f"{name}: there is no pool {pool!r}; the pools are {known}")
    return compute, aux


def _check_kubernetes(body: WorkspaceSettings) -> None:
    if body.cluster_namespace_meta or body.cluster_quota_pairs:
        raise Unsupported("namespaces and quotas are Kubernetes', and this cluster places tasks on agents of its own")
