"""The model registry: models.

Rules it keeps: everyone sees every model and may register versions under it; its owner and administrators change it;
an archived model takes no new versions and does not change; a path names a model by its name or its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Rendering, WindowDep, as_json, listed
from tenax.master.api.http.requests import check_labels, check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.models import messages
from tenax.master.context import Master
from tenax.master.store.models import rows as models
from tenax.master.store.models.rows import HeldModel, ModelEdit, ModelFilter, ModelView
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.projects import DEFAULT_WORKSPACE_ID
from tenax.wire.message import Empty

routes = Routes("Models")

_ORDERS = {
    messages.ModelSortBy.UNSPECIFIED: "id",
    messages.ModelSortBy.NAME: "name",
    messages.ModelSortBy.DESCRIPTION: "description",
    messages.ModelSortBy.CREATION_TIME: "created_at",
    messages.ModelSortBy.LAST_UPDATED_TIME: "updated_at",
    messages.ModelSortBy.NUM_VERSIONS: "versions",
    messages.ModelSortBy.WORKSPACE: "workspace",
}


@routes.get("/api/v1/models", "GetModels", allow=Allow.USER, response_model=messages.GetModelsResponse)
async def get_models(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[messages.ModelSortBy, Query()] = messages.ModelSortBy.UNSPECIFIED,
    model_id: Annotated[int | None, Query(alias="id")] = None,
    name: Annotated[str | None, Query()] = None,
    description: Annotated[str | None, Query()] = None,
    labels: Annotated[list[str] | None, Query()] = None,
    archived: Annotated[bool | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    workspace_ids: Annotated[list[int] | None, Query()] = None,
    workspace_names: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Models, filtered and in order. ``name`` and ``description`` are parts of them."""
    filters = ModelFilter(
        id=model_id,
        name=name,
        description=description,
        labels=tuple(labels) if labels else None,
        archived=archived,
        users=tuple(users) if users else None,
        user_ids=tuple(user_ids) if user_ids else None,
        workspace_ids=tuple(workspace_ids) if workspace_ids else None,
        workspace_names=tuple(workspace_names) if workspace_names else None,
    )
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await models.count(conn, filters))
        ids = await models.ids(conn, filters, page, order=_ORDERS[sort_by], descending=window.descending)

        async def load(part: Sequence[int]) -> list[ModelView]:
            return await models.views(conn, part)

        def render(view: ModelView) -> bytes:
            return as_json(model_message(view))

        return await listed(master, ids, Rendering("models", load, render), pagination)


@routes.get("/api/v1/model/labels", "GetModelLabels", allow=Allow.USER)
async def get_labels(
    master: MasterDep, workspace_id: Annotated[int | None, Query()] = None
) -> messages.GetModelLabelsResponse:
    """Labels of models, the most used first."""
    async with master.db.connection() as conn:
        return messages.GetModelLabelsResponse(labels=await models.labels(conn, workspace_id or None))


@routes.get("/api/v1/models/{model_name}", "GetModel", allow=Allow.USER)
async def get_model(master: MasterDep, model_name: str) -> messages.ModelResponse:
    """One model."""
    async with master.db.snapshot() as conn:
        view = await models.get(conn, await models.id_of(conn, model_name))
    return messages.ModelResponse(model=model_message(view))


@routes.post("/api/v1/models", "PostModel", allow=Allow.USER, creates=True)
async def post_model(master: MasterDep, caller: CallerDep, body: messages.PostModelRequest) -> messages.ModelResponse:
    """Make a model."""
    check_sizes(description=body.description, notes=body.notes, metadata=body.metadata)
    edit = ModelEdit(body.name, body.description, body.notes, list(check_labels(body.labels)), body.metadata)
    models.checked_name(body.name)
    async with master.db.transaction() as conn:
        named = await _workspace(conn, body.workspace_id, body.workspace_name)
        workspace = await workspaces.hold(conn, named or DEFAULT_WORKSPACE_ID)
        new = await models.create(conn, edit, workspace.id, caller.person.id)
        view = await models.get(conn, new)
    return messages.ModelResponse(model=model_message(view))


@routes.patch("/api/v1/models/{model_name}", "PatchModel", allow=Allow.USER)
async def patch_model(
    master: MasterDep, caller: CallerDep, model_name: str, body: messages.PatchModel
) -> messages.ModelResponse:
    """Change what is given; the rest stays. With a workspace, move it there."""
    labels = None if body.labels is None else list(check_labels(body.labels))
    check_sizes(description=body.description, notes=body.notes, metadata=body.metadata)
    edit = ModelEdit(body.name, body.description, body.notes, labels, body.metadata)
    async with master.db.transaction() as conn:
        goal = await _workspace(conn, body.workspace_id, body.workspace_name)
        model = await _changeable(conn, caller, model_name, goal)
        if body.expected is not None:
            check_expected(body.expected, model_message(await models.get(conn, model.id)), model.called)
        await models.edit(conn, model, edit, goal)
        view = await models.get(conn, model.id)
    return messages.ModelResponse(model=model_message(view))


@routes.post("/api/v1/models/{model_name}/move", "MoveModel", allow=Allow.USER)
async def move(master: MasterDep, caller: CallerDep, model_name: str, body: messages.MoveModelRequest) -> Empty:
    """Move a model into another workspace."""
    if not body.destination_workspace_id:
        raise InvalidInput("destinationWorkspaceId is missing: name the workspace that it is to move to")
    async with master.db.transaction() as conn:
        model = await _changeable(conn, caller, model_name, body.destination_workspace_id)
        await models.edit(conn, model, ModelEdit(), body.destination_workspace_id)
    return Empty()


@routes.post("/api/v1/models/{model_name}/archive", "ArchiveModel", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, model_name: str) -> Empty:
    """Archive a model: it takes no new versions and does not change."""
    return await _archive(master, caller, model_name, True)


@routes.post("/api/v1/models/{model_name}/unarchive", "UnarchiveModel", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, model_name: str) -> Empty:
    """Unarchive a model."""
    return await _archive(master, caller, model_name, False)


@routes.delete("/api/v1/models/{model_name}", "DeleteModel", allow=Allow.USER)
async def delete(master: MasterDep, caller: CallerDep, model_name: str) -> Empty:
    """Delete a model and its versions; their checkpoints stay, and may be deleted from then on."""
    async with master.db.transaction() as conn:
        model = await models.lock(conn, await models.id_of(conn, model_name))
        caller.may_change(model.owner_id, model.called)
        await models.delete(conn, model.id)
    return Empty()


def model_message(view: ModelView) -> messages.Model:
    """A model as anyone sees it."""
    return messages.Model(
        id=view.id,
        name=view.name,
        description=view.description,
        notes=view.notes,
        labels=view.labels,
        metadata=view.metadata,
        archived=view.archived,
        num_versions=view.versions,
        workspace_id=view.workspace_id,
        user_id=view.owner_id,
        username=view.username,
        creation_time=view.created_at,
        last_updated_time=view.updated_at,
    )


async def _changeable(conn: Connection, caller: Caller, model_name: str, goal: int | None) -> HeldModel:
    """The model, locked, with the workspace that it goes to held. Raises Forbidden, NotFound, NotNow."""
    if goal is not None:
        await workspaces.hold(conn, goal)
    model = await models.lock(conn, await models.id_of(conn, model_name))
    caller.may_change(model.owner_id, model.called)
    model.check_open()
    return model


async def _archive(master: Master, caller: Caller, model_name: str, archived: bool) -> Empty:
    async with master.db.transaction() as conn:
        model = await models.lock(conn, await models.id_of(conn, model_name))
        caller.may_change(model.owner_id, model.called)
        await models.set_archived(conn, model.id, archived)
    return Empty()


async def _workspace(conn: Connection, number: int | None, name: str | None) -> int | None:
    """The workspace that a request names; None: it names none. Raises InvalidInput, NotFound."""
    named = await workspaces.id_of(conn, name) if name else None
    if number and named is not None and number != named:
        raise InvalidInput(f"workspaceId is {number}, and the workspace {name!r} is {named}: give one of the two")
    return number or named
