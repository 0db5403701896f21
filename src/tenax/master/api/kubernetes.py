"""What only a cluster on Kubernetes has: refused in words, so that a client of one is told what to use here instead."""

from __future__ import annotations

from typing import NoReturn

from tenax.errors import Unsupported
from tenax.master.api.routing import Allow, Routes
from tenax.wire.api.message import Empty

routes = Routes("Kubernetes")

_NAMESPACES = "workspaces are not bound to Kubernetes namespaces here: keep a resource pool for a workspace instead"
_QUOTAS = (
    "there are no Kubernetes resource quotas here: resources.max_slots bounds an experiment, a bound pool a workspace"
)


@routes.get("/api/v1/workspaces/{id}/list-namespace-bindings", "ListWorkspaceNamespaceBindings", allow=Allow.USER)
async def list_namespaces(id: int) -> Empty:
    """Not offered."""
    _refuse(_NAMESPACES)


@routes.post("/api/v1/workspaces/{workspace_id}/namespace-bindings", "SetWorkspaceNamespaceBindings", allow=Allow.ADMIN)
async def set_namespaces(workspace_id: int) -> Empty:
    """Not offered."""
    _refuse(_NAMESPACES)


@routes.delete(
    "/api/v1/workspaces/{workspace_id}/namespace-bindings", "DeleteWorkspaceNamespaceBindings", allow=Allow.ADMIN
)
async def delete_namespaces(workspace_id: int) -> Empty:
    """Not offered."""
    _refuse(_NAMESPACES)


@routes.get(
    "/api/v1/namespace-bindings/workspace-ids-with-default-bindings",
    "GetWorkspacesWithDefaultNamespaceBindings",
    allow=Allow.USER,
)
async def default_namespaces() -> Empty:
    """Not offered."""
    _refuse(_NAMESPACES)


@routes.post(
    "/api/v1/namespace-bindings/bulk-auto-create", "BulkAutoCreateWorkspaceNamespaceBindings", allow=Allow.ADMIN
)
async def create_namespaces() -> Empty:
    """Not offered."""
    _refuse(_NAMESPACES)


@routes.post("/api/v1/workspaces/{id}/set-resource-quota", "SetResourceQuotas", allow=Allow.ADMIN)
async def set_quotas(id: int) -> Empty:
    """Not offered."""
    _refuse(_QUOTAS)


@routes.get("/api/v1/workspaces/{id}/get-k8s-resource-quotas", "GetKubernetesResourceQuotas", allow=Allow.USER)
async def get_quotas(id: int) -> Empty:
    """Not offered."""
    _refuse(_QUOTAS)


@routes.get("/api/v1/k8s-resource-managers", "GetKubernetesResourceManagers", allow=Allow.USER)
async def get_managers() -> Empty:
    """Not offered."""
    _refuse("no part of this cluster runs on Kubernetes: GET /api/v1/resource-pools lists what there is")


def _refuse(why: str) -> NoReturn:
    raise Unsupported(why)
