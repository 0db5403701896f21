"""Who may call what: the whole table. A route that is added or opened up has to be written here, too."""

from __future__ import annotations

from tenax.master.api.routing import Allow

POLICIES: dict[str, Allow] = {
    # The cluster.
    "Info": Allow.PUBLIC,
    "Health": Allow.PUBLIC,
    "Metrics": Allow.PUBLIC,
    "OpenApi": Allow.PUBLIC,
    "GetMaster": Allow.PUBLIC,
    "GetTelemetry": Allow.PUBLIC,
    # Logging in.
    "Login": Allow.PUBLIC,
    "Logout": Allow.USER,
    "GetMe": Allow.USER,
    "CurrentUser": Allow.USER,
    # Users.
    "GetUsers": Allow.USER,
    "GetUser": Allow.USER,
    "GetUserByUsername": Allow.USER,
    "PostUser": Allow.ADMIN,
    "PatchUser": Allow.USER,
}
