"""Policies that bind or complete all configurations of a workspace or of the cluster: not offered yet, in words."""

from __future__ import annotations

from tenax.errors import Unsupported
from tenax.master.api.routing import Allow, Routes
from tenax.wire.api.message import Empty

routes = Routes("ConfigPolicies")

_INSTEAD = (
    "config policies are not offered yet: defaults for all tasks stand in task_container_defaults of the master or of "
    "a pool, and in templates"
)
#: Path -> what operations on it are called.
_PLACES = {
    "/api/v1/config-policies/global/{workload_type}": "GlobalConfigPolicies",
    "/api/v1/config-policies/workspaces/{workspace_id}/{workload_type}": "WorkspaceConfigPolicies",
}


def _declare(path: str, name: str) -> None:
    for declare, verb in ((routes.get, "Get"), (routes.put, "Put"), (routes.delete, "Delete")):

        async def refused() -> Empty:
            """Not offered."""
            raise Unsupported(_INSTEAD)

        declare(path, f"{verb}{name}", allow=Allow.USER)(refused)


for _path, _name in _PLACES.items():
    _declare(_path, _name)
