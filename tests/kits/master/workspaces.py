"""Workspaces and projects made over the API."""

from __future__ import annotations

from tests.kits.api import Api, Client


async def workspace(api: Api, name: str = "vision", client: Client | None = None, **more: object) -> dict[str, object]:
    """The workspace that was made."""
    reply = await (client or api.user).post("/api/v1/workspaces", {"name": name, **more})
    assert reply.status_code == 200, reply.text
    assert reply.json()["namespaceBindings"] == {}
    made: dict[str, object] = reply.json()["workspace"]
    return made


async def project(api: Api, workspace_id: object, name: str = "cats", **more: object) -> dict[str, object]:
    """The project that was made."""
    reply = await api.user.post(f"/api/v1/workspaces/{workspace_id}/projects", {"name": name, **more})
    assert reply.status_code == 200, reply.text
    made: dict[str, object] = reply.json()["project"]
    return made
