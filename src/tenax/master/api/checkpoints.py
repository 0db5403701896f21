"""Checkpoints: reported by tasks, looked at by anyone."""

from __future__ import annotations

from typing import cast

from tenax.errors import Forbidden, InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.master.api.deps import CallerDep, MasterDep, TaskDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import checkpoint_message
from tenax.master.ingest import states
from tenax.master.store import listings_checkpoints
from tenax.master.store.checkpoints import Report
from tenax.wire.api.checkpoints import GetCheckpointResponse, PatchCheckpointsRequest, ReportCheckpointRequest
from tenax.wire.api.message import Empty

routes = Routes("Checkpoints")


@routes.post("/api/v1/checkpoints", "ReportCheckpoint", allow=Allow.TASK)
async def report_checkpoint(master: MasterDep, task: TaskDep, body: ReportCheckpointRequest) -> Empty:
    """A task has written a checkpoint; the attempt is that of its token."""
    if not body.uuid:
        raise InvalidInput("a checkpoint needs a uuid")
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
