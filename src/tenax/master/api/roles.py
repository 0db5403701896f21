"""Roles: not offered. Who may do what is decided by three words: administrator, owner, anyone else.

Every route of roles answers so, with what is to be done instead; nothing is pretended.
"""

from __future__ import annotations

from tenax.errors import Unsupported
from tenax.master.api.routing import Allow, Routes
from tenax.wire.api.message import Empty

routes = Routes("Roles")

NO_ROLES = (
    "there are no roles here: administrators change everything, owners what is theirs, and all others read; make "
    "someone an administrator with `tenax user edit NAME --admin true`"
)

#: Method, path, operation.
_REFUSED = (
    ("POST", "/api/v1/roles/search", "ListRoles"),
    ("POST", "/api/v1/roles/search/by-ids", "GetRolesByID"),
    ("POST", "/api/v1/roles/search/by-assignability", "SearchRolesAssignableToScope"),
    ("GET", "/api/v1/roles/search/by-group/{group_id}", "GetRolesAssignedToGroup"),
    ("GET", "/api/v1/roles/search/by-user/{user_id}", "GetRolesAssignedToUser"),
    ("POST", "/api/v1/roles/add-assignments", "AssignRoles"),
    ("POST", "/api/v1/roles/remove-assignments", "RemoveAssignments"),
    ("GET", "/api/v1/permissions/summary", "GetPermissionsSummary"),
)


def _refuse(method: str, path: str, operation: str) -> None:
    async def refused() -> Empty:
        """Not offered."""
        raise Unsupported(NO_ROLES)

    declare = routes.get if method == "GET" else routes.post
    declare(path, operation, allow=Allow.USER)(refused)


for _method, _path, _operation in _REFUSED:
    _refuse(_method, _path, _operation)
