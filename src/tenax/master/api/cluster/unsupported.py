"""What Determined's API has and this master does not: each such route says so, and what to do instead.

These are roles (administrators, owners and everyone else are all there is), notebooks, shells and TensorBoards,
configuration policies, and what only a cluster on Kubernetes has. Nothing is pretended: the lists of what could be
started are empty, and all else is refused with 501.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from tenax.errors import Unsupported
from tenax.master.access.authorization import Allow
from tenax.master.api.cluster.messages import NotebooksResponse, ShellsResponse, TensorboardsResponse
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks.messages import CommandSortBy
from tenax.wire.message import Empty, Message

routes = Routes("Unsupported")

NO_ROLES = (
    "there are no roles here: administrators change everything, owners what is theirs, and all others read; make "
    "someone an administrator with `tenax user edit NAME --admin true`"
)

#: Method, path, operation.
_ROLES = (
    ("POST", "/api/v1/roles/search", "ListRoles"),
    ("POST", "/api/v1/roles/search/by-ids", "GetRolesByID"),
    ("POST", "/api/v1/roles/search/by-assignability", "SearchRolesAssignableToScope"),
    ("GET", "/api/v1/roles/search/by-group/{group_id}", "GetRolesAssignedToGroup"),
    ("GET", "/api/v1/roles/search/by-user/{user_id}", "GetRolesAssignedToUser"),
    ("POST", "/api/v1/roles/add-assignments", "AssignRoles"),
    ("POST", "/api/v1/roles/remove-assignments", "RemoveAssignments"),
    ("GET", "/api/v1/permissions/summary", "GetPermissionsSummary"),
)
#: Noun in paths -> (operation's noun, what it is called, what to do instead).
_NOUNS = {
    "notebooks": ("Notebook", "notebooks", "run a script as a command (`cmd run`), or a notebook on your own machine"),
    "shells": ("Shell", "shells", "run a program as a command (`cmd run`)"),
    "tensorboards": ("Tensorboard", "TensorBoards", "point one of your own at the checkpoint storage"),
}
_VERBS = (
    ("POST", "", "Launch{}"),
    ("GET", "/{{{}_id}}", "Get{}"),
    ("POST", "/{{{}_id}}/kill", "Kill{}"),
    ("POST", "/{{{}_id}}/set_priority", "Set{}Priority"),
)
_INSTEAD = (
    "config policies are not offered yet: defaults for all tasks stand in task_container_defaults of the master or of "
    "a pool, and in templates"
)
#: Path -> what operations on it are called.
_PLACES = {
    "/api/v1/config-policies/global/{workload_type}": "GlobalConfigPolicies",
    "/api/v1/config-policies/workspaces/{workspace_id}/{workload_type}": "WorkspaceConfigPolicies",
}
_BINDINGS = "/api/v1/workspaces/{workspace_id}/namespace-bindings"
_NAMESPACES = "workspaces are not bound to Kubernetes namespaces here: keep a resource pool for a workspace instead"
_QUOTAS = (
    "there are no Kubernetes resource quotas here: resources.max_slots bounds an experiment, a bound pool a workspace"
)
_MANAGERS = "no part of this cluster runs on Kubernetes: GET /api/v1/resource-pools lists what there is"


def _list_none(noun: str, operation: str, answer: type[Message]) -> None:
    async def listed(
        master: MasterDep,
        window: WindowDep,
        sort_by: Annotated[CommandSortBy, Query()] = CommandSortBy.UNSPECIFIED,
    ) -> Message:
        """None, as none can be started."""
        return answer.model_validate({noun: [], "pagination": window.of(0)[1]})

    routes.get(f"/api/v1/{noun}", operation, allow=Allow.USER, response_model=answer)(listed)


_list_none("notebooks", "GetNotebooks", NotebooksResponse)
_list_none("shells", "GetShells", ShellsResponse)
_list_none("tensorboards", "GetTensorboards", TensorboardsResponse)


def _refuse(
    method: str, path: str, operation: str, why: str, *, allow: Allow = Allow.USER, doc: str = "Not offered."
) -> None:
    """Declare a route whose parameters nobody looks at."""

    async def refused() -> Empty:
        raise Unsupported(why)

    refused.__doc__ = doc
    declare = {"GET": routes.get, "POST": routes.post, "PUT": routes.put, "DELETE": routes.delete}[method]
    declare(path, operation, allow=allow)(refused)


for _method, _path, _operation in _ROLES:
    _refuse(_method, _path, _operation, NO_ROLES)

for _noun, (_name, _title, _instead) in _NOUNS.items():
    _why = f"{_title} are not offered yet: {_instead}"
    for _method, _rest, _operation in _VERBS:
        _path = f"/api/v1/{_noun}" + _rest.format(_name.lower())
        _refuse(_method, _path, _operation.format(_name), _why, doc=f"Refused: {_why}.")
#: What a notebook tells of itself; there is none.
_why = "notebooks are not offered yet"
_refuse("PUT", "/api/v1/notebooks/{notebook_id}/report_idle", "IdleNotebook", _why, doc=f"Refused: {_why}.")

for _path, _name in _PLACES.items():
    for _method in ("GET", "PUT", "DELETE"):
        _refuse(_method, _path, f"{_method.capitalize()}{_name}", _INSTEAD)

_refuse(
    "GET",
    "/api/v1/namespace-bindings/workspace-ids-with-default-bindings",
    "GetWorkspacesWithDefaultNamespaceBindings",
    _NAMESPACES,
)
_refuse(
    "POST",
    "/api/v1/namespace-bindings/bulk-auto-create",
    "BulkAutoCreateWorkspaceNamespaceBindings",
    _NAMESPACES,
    allow=Allow.ADMIN,
)
_refuse("GET", "/api/v1/k8s-resource-managers", "GetKubernetesResourceManagers", _MANAGERS)


@routes.get("/api/v1/workspaces/{id}/list-namespace-bindings", "ListWorkspaceNamespaceBindings", allow=Allow.USER)
async def list_namespaces(id: int) -> Empty:
    """Not offered."""
    raise Unsupported(_NAMESPACES)


@routes.post(_BINDINGS, "SetWorkspaceNamespaceBindings", allow=Allow.ADMIN)
@routes.delete(_BINDINGS, "DeleteWorkspaceNamespaceBindings", allow=Allow.ADMIN)
async def change_namespaces(workspace_id: int) -> Empty:
    """Not offered."""
    raise Unsupported(_NAMESPACES)


@routes.post("/api/v1/workspaces/{id}/set-resource-quota", "SetResourceQuotas", allow=Allow.ADMIN)
async def set_quotas(id: int) -> Empty:
    """Not offered."""
    raise Unsupported(_QUOTAS)


@routes.get("/api/v1/workspaces/{id}/get-k8s-resource-quotas", "GetKubernetesResourceQuotas", allow=Allow.USER)
async def get_quotas(id: int) -> Empty:
    """Not offered."""
    raise Unsupported(_QUOTAS)
