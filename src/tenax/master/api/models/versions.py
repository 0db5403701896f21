"""The model registry: versions of models, each a checkpoint that stays for as long as it is registered.

Rules it keeps: everyone may register a version under a model that is not archived; a version is changed and deleted by
its owner, its model's and administrators; numbers begin at 1 and are never used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.checkpoints.lists import with_metrics
from tenax.master.api.checkpoints.rendering import checkpoint_message
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Rendering, WindowDep, as_json, listed
from tenax.master.api.http.requests import check_labels, check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.metrics.routes import reports_of
from tenax.master.api.models import messages
from tenax.master.api.models.routes import model_message
from tenax.master.context import Master
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints.lists import CheckpointView
from tenax.master.store.models import rows as models
from tenax.master.store.models import versions as model_versions
from tenax.master.store.models.rows import HeldModel, ModelView
from tenax.master.store.models.versions import ModelVersionEdit, VersionView
from tenax.wire.message import Empty

routes = Routes("Models")

_ORDERS = {
    messages.ModelVersionSortBy.UNSPECIFIED: "version",
    messages.ModelVersionSortBy.VERSION: "version",
    messages.ModelVersionSortBy.CREATION_TIME: "created_at",
}


@routes.get(
    "/api/v1/models/{model_name}/versions",
    "GetModelVersions",
    allow=Allow.USER,
    response_model=messages.GetModelVersionsResponse,
)
async def get_versions(
    master: MasterDep,
    caller: CallerDep,
    model_name: str,
    window: WindowDep,
    sort_by: Annotated[messages.ModelVersionSortBy, Query()] = messages.ModelVersionSortBy.UNSPECIFIED,
) -> Response:
    """Its versions."""
    async with master.db.snapshot() as conn:
        model = await models.get(conn, await models.id_of(conn, model_name))
        page, pagination = window.of(await model_versions.count(conn, model.id))
        numbers = await model_versions.numbers(
            conn, model.id, page, order=_ORDERS[sort_by], descending=window.descending
        )

        async def load(part: Sequence[int]) -> list[tuple[VersionView, CheckpointView]]:
            views = await model_versions.views(conn, model.id, part)
            checkpoints = await _checkpoints(master, conn, views)
            return [(view, checkpoints[view.checkpoint_uuid]) for view in views]

        def render(entry: tuple[VersionView, CheckpointView]) -> bytes:
            return as_json(_message(caller, model, *entry))

        rendering = Rendering("modelVersions", load, render)
        return await listed(master, numbers, rendering, pagination, {"model": model_message(model)})


@routes.get("/api/v1/models/{model_name}/versions/{version}", "GetModelVersion", allow=Allow.USER)
async def get_version(
    master: MasterDep, caller: CallerDep, model_name: str, version: int
) -> messages.ModelVersionResponse:
    """One version."""
    async with master.db.snapshot() as conn:
        return await _response(master, conn, caller, await models.id_of(conn, model_name), version)


@routes.post("/api/v1/models/{model_name}/versions", "PostModelVersion", allow=Allow.USER, creates=True)
async def post_version(
    master: MasterDep, caller: CallerDep, model_name: str, body: messages.PostModelVersionRequest
) -> messages.ModelVersionResponse:
    """Register a checkpoint as the next version."""
    if not body.checkpoint_uuid:
        raise InvalidInput("checkpointUuid is missing: name the checkpoint to register")
    check_sizes(name=body.name, comment=body.comment, notes=body.notes, metadata=body.metadata)
    edit = ModelVersionEdit(body.name, body.comment, body.notes, list(check_labels(body.labels)), body.metadata)
    async with master.db.transaction() as conn:
        model = await models.lock(conn, await models.id_of(conn, model_name))
        model.check_open()
        number = await model_versions.register(conn, model.id, body.checkpoint_uuid, edit, caller.person.id)
        return await _response(master, conn, caller, model.id, number)


@routes.patch("/api/v1/models/{model_name}/versions/{version}", "PatchModelVersion", allow=Allow.USER)
async def patch_version(
    master: MasterDep, caller: CallerDep, model_name: str, version: int, body: messages.PatchModelVersion
) -> messages.ModelVersionResponse:
    """Change what is given; the rest stays."""
    labels = None if body.labels is None else list(check_labels(body.labels))
    check_sizes(name=body.name, comment=body.comment, notes=body.notes, metadata=body.metadata)
    edit = ModelVersionEdit(body.name, body.comment, body.notes, labels, body.metadata)
    async with master.db.transaction() as conn:
        model = await _changeable(conn, caller, model_name, version)
        model.check_open()
        if body.expected is not None:
            present = (await _response(master, conn, caller, model.id, version)).model_version
            check_expected(body.expected, present, f"version {version} of {model.called}")
        await model_versions.edit(conn, model.id, version, edit)
        return await _response(master, conn, caller, model.id, version)


@routes.delete("/api/v1/models/{model_name}/versions/{version}", "DeleteModelVersion", allow=Allow.USER)
async def delete_version(master: MasterDep, caller: CallerDep, model_name: str, version: int) -> Empty:
    """It; its checkpoint stays, and may be deleted from then on. Whose checkpoint it is may do it, too."""
    async with master.db.transaction() as conn:
        model = await _changeable(conn, caller, model_name, version, by_checkpoints_owner=True)
        await model_versions.delete(conn, model.id, version)
    return Empty()


@routes.get("/api/v1/models/{model_name}/versions/{version}/metrics", "GetTrialMetricsByModelVersion", allow=Allow.USER)
async def get_metrics(
    master: MasterDep,
    model_name: str,
    version: int,
    metric_group: Annotated[str, Query()] = "",
    trial_source_info_type: Annotated[messages.TrialSourceKind, Query()] = messages.TrialSourceKind.UNSPECIFIED,
) -> messages.MetricsResponse:
    """What trials reported that said that they use it: of one group, or of all; for one use of it, or for any."""
    kind = None
    if trial_source_info_type is not messages.TrialSourceKind.UNSPECIFIED:
        kind = trial_source_info_type.name
    async with master.db.snapshot() as conn:
        model_id = await models.id_of(conn, model_name)
        await model_versions.get(conn, model_id, version)
        trials = await model_versions.trials_of(conn, model_id, version, kind)
    reports = await reports_of(master, trials, metric_group)
    return messages.MetricsResponse(metrics=[messages.MetricsReport.model_validate(report) for report in reports])


async def _response(
    master: Master, conn: Connection, caller: Caller, model_id: int, version: int
) -> messages.ModelVersionResponse:
    model = await models.get(conn, model_id)
    view = await model_versions.get(conn, model_id, version)
    checkpoints = await _checkpoints(master, conn, [view])
    made = await master.readers.run(_message, caller, model, view, checkpoints[view.checkpoint_uuid])
    return messages.ModelVersionResponse(model_version=made)


async def _checkpoints(master: Master, conn: Connection, versions: list[VersionView]) -> dict[str, CheckpointView]:
    views = await checkpoint_lists.views(conn, list({view.checkpoint_uuid for view in versions}))
    return {view.uuid: view for view in await with_metrics(master, conn, views)}


async def _changeable(
    conn: Connection, caller: Caller, model_name: str, version: int, *, by_checkpoints_owner: bool = False
) -> HeldModel:
    """Its model, locked. Raises Forbidden, NotFound."""
    model = await models.lock(conn, await models.id_of(conn, model_name))
    view = await model_versions.get(conn, model.id, version)
    owners: set[int | None] = {view.owner_id}
    if by_checkpoints_owner:
        owners.add((await checkpoint_lists.get(conn, view.checkpoint_uuid)).owner_id)
    if caller.person.id not in owners:
        caller.may_change(model.owner_id, f"version {version} of {model.called}")
    return model


def _message(caller: Caller, model: ModelView, view: VersionView, checkpoint: CheckpointView) -> messages.ModelVersion:
    return messages.ModelVersion(
        model=model_message(model),
        checkpoint=checkpoint_message(checkpoint, caller),
        version=view.version,
        id=view.id,
        name=view.name,
        comment=view.comment,
        notes=view.notes,
        labels=view.labels,
        metadata=view.metadata,
        user_id=view.owner_id,
        username=view.username,
        creation_time=view.created_at,
        last_updated_time=view.updated_at,
    )
