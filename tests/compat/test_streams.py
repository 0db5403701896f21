"""The websocket of changes through the client's own reader of it: `determined.common.streams`."""

from __future__ import annotations

from typing import cast

from tenax.jsonvalue import Json
from tests.compat.client import RealClient

_FOLLOW = """
from determined.common import streams
from determined.common.api import bindings as b
from determined.common.streams import _client
client.login(master, user, password)
s = client._determined._session
w = b.post_PostWorkspace(s, body=b.v1PostWorkspaceRequest(name="streamed")).workspace.id
first = b.post_PostProject(s, body=b.v1PostProjectRequest(name="first", workspaceId=w), workspaceId=w).project.id
seen = []
stream = _client.Stream(_client.LomondStreamWebSocket(s))
stream.subscribe(sync_id="one", projects=_client.ProjectSpec(workspace_id=w))
events = iter(stream)
def note():
    event = next(events)
    kind = type(event).__name__
    told = event.sync_id if kind == "Sync" else event.keys if kind.endswith("Deleted") else event.name
    seen.append([kind, told, getattr(event, "complete", None)])
for _ in range(3):
    note()
second = b.post_PostProject(s, body=b.v1PostProjectRequest(name="second", workspaceId=w), workspaceId=w).project.id
note()
b.patch_PatchProject(s, id=first, body=b.v1PatchProject(name="renamed"))
note()
b.delete_DeleteProject(s, id=second)
note()
stream.close()
result = [seen, first, second]
"""


def test_projects_are_followed(admin: RealClient) -> None:
    """What is there, then that there is no more, then each change as it comes."""
    values: dict[str, Json] = {"master": admin.url, "user": "admin", "password": admin.password}
    seen, _, second = cast("tuple[list[list[Json]], int, int]", admin.sdk(_FOLLOW, **values))
    assert seen == [
        ["Sync", "one", False],
        ["ProjectMsg", "first", None],
        ["Sync", "one", True],
        ["ProjectMsg", "second", None],
        ["ProjectMsg", "renamed", None],
        ["ProjectsDeleted", str(second), None],
    ]
