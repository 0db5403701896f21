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
b.post_ArchiveWorkspace(s, id=w)
event = next(events)
seen.append([type(event).__name__, event.name, event.archived])
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
        ["ProjectMsg", "renamed", True],
    ]


_REGISTRY = """
from determined.common import streams
from determined.common.api import bindings as b
from determined.common.streams import _client
client.login(master, user, password)
s = client._determined._session
w = b.post_PostWorkspace(s, body=b.v1PostWorkspaceRequest(name="streamed models")).workspace.id
def model(name):
    return b.post_PostModel(s, body=b.v1PostModelRequest(name=name, workspaceId=w)).model.id
def version(model):
    body = b.v1PostModelVersionRequest(checkpointUuid=checkpoint, modelName=model)
    return b.post_PostModelVersion(s, body=body, modelName=model).modelVersion
first = model("streamed-first")
version("streamed-first")
seen = []
stream = _client.Stream(_client.LomondStreamWebSocket(s))
stream.subscribe(
    sync_id=7, models=_client.ModelSpec(workspace_id=w), model_versions=_client.ModelVersionSpec(model_id=first)
)
# The reader itself takes a deleted version for a version, and breaks.
stream.handlers["modelversions_deleted"] = stream._make_deletion_handler(
    _client.wire.ModelVersionsDeleted, stream._model_versions
)
events = iter(stream)
def note():
    event = next(events)
    kind = type(event).__name__
    if kind == "Sync":
        seen.append([kind, event.sync_id, event.complete])
    elif kind.endswith("Deleted"):
        seen.append([kind, event.keys])
    elif kind == "ModelVersionMsg":
        seen.append([kind, event.version, event.model_id == first, event.checkpoint_uuid, event.comment])
    elif ["ModelMsg", event.name, True, event.labels] in seen:
        # A version that comes, changes or goes is a change of its model, too.
        note()
    else:
        seen.append([kind, event.name, event.workspace_id == w, event.labels])
for _ in range(4):
    note()
second = model("streamed-second")
note()
b.patch_PatchModel(s, modelName="streamed-second", body=b.v1PatchModel(labels=["small"]))
note()
later = version("streamed-first")
note()
b.patch_PatchModelVersion(
    s, modelName="streamed-first", modelVersionNum=later.version, body=b.v1PatchModelVersion(comment="better")
)
note()
b.delete_DeleteModelVersion(s, modelName="streamed-first", modelVersionNum=later.version)
note()
b.delete_DeleteModel(s, modelName="streamed-second")
note()
stream.close()
b.delete_DeleteModel(s, modelName="streamed-first")
b.delete_DeleteWorkspace(s, id=w)
result = [seen, later.id, second]
"""


def test_models_and_their_versions_are_followed(admin: RealClient, finished: int) -> None:
    """Each as it is, as it comes, changes and goes; of versions those of the model that was asked for."""
    uuid = admin.sdk("result = client.get_experiment(number).list_checkpoints()[0].uuid", number=finished)
    values: dict[str, Json] = {"master": admin.url, "user": "admin", "password": admin.password, "checkpoint": uuid}
    seen, later, second = cast("tuple[list[list[Json]], int, int]", admin.sdk(_REGISTRY, **values))
    assert seen == [
        ["Sync", 7, False],
        ["ModelMsg", "streamed-first", True, []],
        ["ModelVersionMsg", 1, True, uuid, ""],
        ["Sync", 7, True],
        ["ModelMsg", "streamed-second", True, []],
        ["ModelMsg", "streamed-second", True, ["small"]],
        ["ModelVersionMsg", 2, True, uuid, ""],
        ["ModelVersionMsg", 2, True, uuid, "better"],
        ["ModelVersionsDeleted", str(later)],
        ["ModelsDeleted", str(second)],
    ]
