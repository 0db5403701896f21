"""Checkpoints: reported by tasks, looked at by anyone; deleted and downloaded where the master reaches the files."""

from __future__ import annotations

from typing import cast

import anyio.to_thread
from fastapi import Request
from fastapi.responses import StreamingResponse

from tenax.errors import Forbidden, InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.api.deps import CallerDep, MasterDep, TaskDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import checkpoint_message
from tenax.master.auth import Caller
from tenax.master.context import Master
from tenax.master.ingest import states
from tenax.master.reach import archive_of, delete_checkpoint, directory_of
from tenax.master.store import listings_checkpoints
from tenax.master.store.checkpoints import Report
from tenax.storage.port import EVERYTHING, checked_id
from tenax.wire.api.checkpoints import (
    CheckpointsRemoveFilesRequest,
    DeleteCheckpointsRequest,
    GetCheckpointResponse,
    PatchCheckpointsRequest,
    ReportCheckpointRequest,
)
from tenax.wire.api.message import Empty

routes = Routes("Checkpoints")


@routes.post("/api/v1/checkpoints", "ReportCheckpoint", allow=Allow.TASK)
async def report_checkpoint(master: MasterDep, task: TaskDep, body: ReportCheckpointRequest) -> Empty:
    """A task has written a checkpoint; the attempt is that of its token."""
    checked_id(body.uuid)
    steps = body.metadata.get("steps_completed", 0)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise InvalidInput(f"metadata.steps_completed is {steps!r}, and must be a whole number of at least 0")
    report = Report(
        uuid=body.uuid,
        steps_completed=steps,
        resources=dict(body.resources),
        metadata=cast(JsonObject, body.metadata),
        storage_id=body.storage_id,
        state=body.state,
    )
    async with master.db.transaction() as conn:
        await states.checkpoint_reported(conn, task, report)
    return Empty()


@routes.patch("/api/v1/checkpoints", "PatchCheckpoints", allow=Allow.USER)
async def patch_checkpoints(master: MasterDep, caller: CallerDep, body: PatchCheckpointsRequest) -> Empty:
    """What is left of checkpoints after files were deleted; by their owner or an administrator."""
    async with master.db.transaction() as conn:
        for patched in sorted(body.checkpoints, key=lambda one: one.uuid):
            view = await listings_checkpoints.get(conn, patched.uuid)
            caller.may_change(view.owner_id, f"checkpoint {patched.uuid}")
            if patched.resources is None:
                continue
            gone = set(patched.resources.resources) - set(view.resources)
            if gone:
                raise Forbidden(f"checkpoint {patched.uuid} never had {sorted(gone)[0]!r}: files cannot be added")
            await states.checkpoint_files_left(conn, patched.uuid, dict(patched.resources.resources))
    return Empty()


@routes.get("/api/v1/checkpoints/{checkpoint_uuid}", "GetCheckpoint", allow=Allow.USER)
async def get_checkpoint(master: MasterDep, caller: CallerDep, checkpoint_uuid: str) -> GetCheckpointResponse:
    """One checkpoint."""
    async with master.db.connection() as conn:
        view = await listings_checkpoints.get(conn, checkpoint_uuid)
    return GetCheckpointResponse(checkpoint=checkpoint_message(view, caller))


@routes.delete("/api/v1/checkpoints", "DeleteCheckpoints", allow=Allow.USER)
async def delete_checkpoints(master: MasterDep, caller: CallerDep, body: DeleteCheckpointsRequest) -> Empty:
    """Delete all files of these checkpoints; their records stay."""
    return await _remove(master, caller, body.checkpoint_uuids, EVERYTHING)


@routes.post("/api/v1/checkpoints/rm", "CheckpointsRemoveFiles", allow=Allow.USER)
async def remove_files(master: MasterDep, caller: CallerDep, body: CheckpointsRemoveFilesRequest) -> Empty:
    """Delete files that match any of the patterns."""
    if not body.checkpoint_globs:
        raise InvalidInput("no patterns were given: name the files to delete")
    return await _remove(master, caller, body.checkpoint_uuids, tuple(body.checkpoint_globs))


@routes.get("/checkpoints/{checkpoint_uuid}", "DownloadCheckpoint", allow=Allow.USER, response_class=StreamingResponse)
async def download(master: MasterDep, request: Request, checkpoint_uuid: str) -> StreamingResponse:
    """Its files as a tar archive, compressed if that is what is accepted."""
    accepted = request.headers.get("accept", "*/*")
    media = next((kind for kind in ("application/gzip", "application/x-tar") if kind in accepted), "application/x-tar")
    async with master.db.connection() as conn:
        view = await listings_checkpoints.get(conn, checkpoint_uuid)
    place = view.storage or _configured(view.config)
    directory = await anyio.to_thread.run_sync(directory_of, place, checkpoint_uuid)
    pieces = archive_of(directory, compressed=media == "application/gzip")
    return StreamingResponse(pieces, media_type=media)


async def _remove(master: Master, caller: Caller, uuids: list[str], globs: tuple[str, ...]) -> Empty:
    """Files first, each checkpoint for itself: what was deleted before a failure is recorded."""
    async with master.db.connection() as conn:
        views = [await listings_checkpoints.get(conn, uuid) for uuid in dict.fromkeys(uuids)]
        for view in views:
            caller.may_change(view.owner_id, f"checkpoint {view.uuid}")
            trial = await listings_checkpoints.needed_by(conn, view.uuid)
            if trial is not None:
                raise NotNow(f"trial {trial} still runs and may start from checkpoint {view.uuid}: end it first")
    for view in views:
        place = view.storage or _configured(view.config)
        left = await anyio.to_thread.run_sync(delete_checkpoint, place, view.uuid, globs)
        async with master.db.transaction() as conn:
            await states.checkpoint_files_left(conn, view.uuid, left)
    return Empty()


def _configured(config: JsonObject | None) -> JsonObject:
    storage = (config or {}).get("checkpoint_storage")
    return storage if isinstance(storage, dict) else {}
