"""Checkpoints: reported by tasks, shown to anyone; trimmed, deleted and downloaded where the master reaches them.

Rules it keeps: what is registered, or what a live trial would start from, is not deleted; files go first, then the
record; a deletion that fails is retried, and the checkpoint says why it failed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import anyio.to_thread
from asyncpg import Connection
from fastapi import HTTPException, Query, Request
from fastapi.responses import StreamingResponse

from tenax.errors import Forbidden, InvalidInput, NotNow
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.checkpoints import messages
from tenax.master.api.checkpoints.lists import with_metrics
from tenax.master.api.checkpoints.rendering import checkpoint_message
from tenax.master.api.http import callers
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.metrics.routes import reports_of
from tenax.master.api.models.messages import MetricsReport, MetricsResponse, TrialSourceKind
from tenax.master.checkpoints.archive import NotAcceptable, form_of, packed, packed_objects
from tenax.master.checkpoints.files import CheckpointPlace, files_of
from tenax.master.checkpoints.removal import carry_out, configured_place
from tenax.master.context import Master
from tenax.master.ingest import states
from tenax.master.store.checkpoints import gc
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.lists import CheckpointView
from tenax.master.store.checkpoints.rows import CheckpointReport
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.users import rows as users
from tenax.master.store.users.rows import FileOwner
from tenax.storage.globs import check_globs
from tenax.storage.port import EVERYTHING, checked_id
from tenax.wire.message import Empty

routes = Routes("Checkpoints")

#: For so long the loop leaves a deletion to the request that asked for it, if it is of no more than so many.
_OWN_S, _AT_ONCE = 60.0, 20
#: Checkpoints of one request.
_MAX_AT_ONCE = 10_000


@routes.post("/api/v1/checkpoints", "ReportCheckpoint", allow=Allow.REPORTER)
async def report_checkpoint(master: MasterDep, caller: CallerDep, body: messages.ReportCheckpointRequest) -> Empty:
    """A task has written a checkpoint; the attempt is that of its token."""
    checked_id(body.uuid)
    report = CheckpointReport(
        uuid=body.uuid,
        steps_completed=_steps(body.metadata.get("steps_completed", 0)),
        resources=dict(body.resources),
        metadata=body.metadata,
        storage_id=body.storage_id,
        state=body.state,
    )
    async with master.db.transaction() as conn:
        task = await callers.for_task(conn, caller, body.task_id or "")
        await states.checkpoint_reported(conn, task, report)
    return Empty()


@routes.patch("/api/v1/checkpoints", "PatchCheckpoints", allow=Allow.USER)
async def patch_checkpoints(master: MasterDep, caller: CallerDep, body: messages.PatchCheckpointsRequest) -> Empty:
    """What is left of checkpoints after files were deleted; by their owner or an administrator."""
    async with master.db.transaction() as conn:
        for patched in sorted(body.checkpoints, key=lambda checkpoint: checkpoint.uuid):
            view = await checkpoint_lists.get(conn, patched.uuid)
            caller.may_change(view.owner_id, f"checkpoint {patched.uuid}")
            if patched.resources is None:
                continue
            gone = set(patched.resources.resources) - set(view.resources)
            if gone:
                raise Forbidden(f"checkpoint {patched.uuid} never had {sorted(gone)[0]!r}: files cannot be added")
            await states.checkpoint_files_left(conn, patched.uuid, dict(patched.resources.resources))
    return Empty()


@routes.get("/api/v1/checkpoints/{checkpoint_uuid}", "GetCheckpoint", allow=Allow.USER)
async def get_checkpoint(master: MasterDep, caller: CallerDep, checkpoint_uuid: str) -> messages.GetCheckpointResponse:
    """One checkpoint, named by its uuid or by enough of the beginning of that."""
    async with master.db.snapshot() as conn:
        uuid = await checkpoint_lists.whole_uuid(conn, checkpoint_uuid)
        (whole,) = await with_metrics(master, conn, [await checkpoint_lists.get(conn, uuid)])
    return messages.GetCheckpointResponse(checkpoint=await master.readers.run(checkpoint_message, whole, caller))


@routes.post("/api/v1/checkpoints/{checkpoint_uuid}/metadata", "PostCheckpointMetadata", allow=Allow.USER)
async def post_metadata(
    master: MasterDep, caller: CallerDep, checkpoint_uuid: str, body: messages.PostCheckpointMetadataRequest
) -> messages.PostCheckpointMetadataResponse:
    """Replace its metadata. The steps at which it was saved are a fact, and stay."""
    if body.checkpoint is None:
        raise InvalidInput("checkpoint.metadata is missing: give all that is to be said about the checkpoint")
    metadata = dict(body.checkpoint.metadata)
    async with master.db.transaction() as conn:
        view = await checkpoint_lists.get(conn, checkpoint_uuid)
        caller.may_change(view.owner_id, f"checkpoint {checkpoint_uuid}")
        if metadata.setdefault("steps_completed", view.steps_completed) != view.steps_completed:
            raise InvalidInput(f"steps_completed is {view.steps_completed}, and cannot become anything else")
        await checkpoints.set_metadata(conn, checkpoint_uuid, metadata)
        (after,) = await with_metrics(master, conn, [await checkpoint_lists.get(conn, checkpoint_uuid)])
    return messages.PostCheckpointMetadataResponse(
        checkpoint=await master.readers.run(checkpoint_message, after, caller)
    )


@routes.get("/api/v1/checkpoints/{checkpoint_uuid}/metrics", "GetTrialMetricsByCheckpoint", allow=Allow.USER)
async def get_metrics(
    master: MasterDep,
    checkpoint_uuid: str,
    metric_group: Annotated[str, Query()] = "",
    trial_source_info_type: Annotated[TrialSourceKind, Query()] = TrialSourceKind.UNSPECIFIED,
) -> MetricsResponse:
    """Metrics of the trials that use it: of one group or all, for one kind of use or any."""
    kind = None if trial_source_info_type is TrialSourceKind.UNSPECIFIED else trial_source_info_type.name
    async with master.db.snapshot() as conn:
        await checkpoint_lists.get(conn, checkpoint_uuid)
        trials = await checkpoints.trials_using(conn, checkpoint_uuid, kind)
    reports = await reports_of(master, trials, metric_group)
    return MetricsResponse(metrics=[MetricsReport.model_validate(report) for report in reports])


@routes.delete("/api/v1/checkpoints", "DeleteCheckpoints", allow=Allow.USER)
async def delete_checkpoints(master: MasterDep, caller: CallerDep, body: messages.DeleteCheckpointsRequest) -> Empty:
    """Delete all files of these checkpoints; their records stay."""
    return await _remove(master, caller, body.checkpoint_uuids, EVERYTHING)


@routes.post("/api/v1/checkpoints/rm", "CheckpointsRemoveFiles", allow=Allow.USER)
async def remove_files(master: MasterDep, caller: CallerDep, body: messages.CheckpointsRemoveFilesRequest) -> Empty:
    """Delete files that match any of the patterns; without a pattern, look at what is there and record it."""
    check_globs(body.checkpoint_globs)
    if body.checkpoint_globs:
        return await _remove(master, caller, body.checkpoint_uuids, tuple(body.checkpoint_globs))
    return await _refresh(master, caller, body.checkpoint_uuids)


@routes.stream("/checkpoints/{checkpoint_uuid}", "DownloadCheckpoint", allow=Allow.USER)
async def download(master: MasterDep, request: Request, checkpoint_uuid: str) -> StreamingResponse:
    """Its files as one archive: tar, tar compressed with gzip, or zip, as the ``Accept`` header likes best."""
    try:
        form = form_of(request.headers.get("accept", "*/*"))
    except NotAcceptable as error:
        raise HTTPException(415, str(error)) from None
    async with master.db.connection() as conn:
        view = await checkpoint_lists.get(conn, checkpoint_uuid)
        owner = await users.file_owner(conn, view.owner_id, elsewhere=view.allocation_id is None)
    headers = {"Content-Disposition": f'attachment; filename="{view.uuid}.{form.suffix}"'}
    # Files are asked for first: once pieces are on their way there is no other way to say that they are not there.
    store = master.checkpoint_roots.store_of(view.storage, configured_place(view.config))
    if store is not None:
        files = await master.stores.run(store.list_files, view.uuid)
        content = _in_turn(master, packed_objects(store, view.uuid, files, form))
        return StreamingResponse(content, media_type=form.value, headers=headers)
    place = await anyio.to_thread.run_sync(_place, master, view, owner)
    await anyio.to_thread.run_sync(files_of, place, view.uuid)
    return StreamingResponse(packed(place, view.uuid, form), media_type=form.value, headers=headers)


async def _in_turn(master: Master, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces that wait for a store of objects, each in a thread that nobody else needs; a few archives a user."""
    async with master.downloads.turn():
        while piece := await master.stores.run(next, pieces, b""):
            yield piece


async def _remove(master: Master, caller: Caller, uuids: list[str], globs: tuple[str, ...]) -> Empty:
    """Decided for all of them or for none, then done one by one."""
    async with master.db.transaction() as conn:
        chosen = await _to_change(conn, caller, uuids)
        await checkpoints.check_none_registered(conn, chosen)
        needed = await checkpoint_lists.needed_by(conn, chosen)
        if needed is not None:
            uuid, trial = needed
            raise NotNow(f"trial {trial} still runs and may start from checkpoint {uuid}: end it first")
        reasons = dict.fromkeys(chosen, f"deleted by {caller.person.username}")
        own = len(chosen) <= _AT_ONCE
        removals = await gc.request_removals(conn, reasons, globs=globs, wait_s=_OWN_S if own else 0.0)
    outcomes = (
        [await carry_out(master.db.transaction, master.checkpoint_roots, uuid) for uuid in removals] if own else []
    )
    failures = [outcome.failure for outcome in outcomes if outcome.failure and not outcome.delegated]
    if failures:
        raise NotNow(f"{len(failures)} of {len(chosen)} could not be deleted yet, and are tried again: {failures[0]}")
    return Empty()


async def _refresh(master: Master, caller: Caller, uuids: list[str]) -> Empty:
    async with master.db.connection() as conn:
        chosen = await _to_change(conn, caller, uuids)
    for uuid in chosen:
        async with master.db.connection() as conn:
            view = await checkpoint_lists.get(conn, uuid)
            owner = await users.file_owner(conn, view.owner_id, elsewhere=view.allocation_id is None)
        place = await anyio.to_thread.run_sync(_place, master, view, owner)
        files = await anyio.to_thread.run_sync(files_of, place, uuid)
        async with master.db.transaction() as conn:
            await states.checkpoint_files_left(conn, uuid, files)
    return Empty()


async def _to_change(conn: Connection, caller: Caller, uuids: list[str]) -> list[str]:
    """These, each once, if the caller may change all of them; their experiments locked in a transaction."""
    if not uuids:
        raise InvalidInput("checkpointUuids is empty: name at least one checkpoint")
    if len(uuids) > _MAX_AT_ONCE:
        raise InvalidInput(f"at most {_MAX_AT_ONCE} checkpoints are taken at once")
    owned = await checkpoint_lists.owners(conn, list(dict.fromkeys(uuids)))
    for checkpoint in owned:
        caller.may_change(checkpoint.owner_id, f"checkpoint {checkpoint.uuid}")
    for experiment_id in sorted({each.experiment_id for each in owned if each.experiment_id is not None}):
        await experiments.lock(conn, experiment_id)
    return [checkpoint.uuid for checkpoint in owned]


def _place(master: Master, view: CheckpointView, owner: FileOwner) -> CheckpointPlace:
    return master.checkpoint_roots.place_of(view.storage, configured_place(view.config), owner)


def _steps(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"metadata.steps_completed is {value!r}, and must be a whole number of at least 0")
    return value
