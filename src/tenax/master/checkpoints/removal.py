"""Carries out a removal: deletes the files first, then updates the checkpoint's row.

Killed at any instant it is found again, begun or not, and carried out again: what is gone already is no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

import structlog
from asyncpg import Connection

from tenax.backoff import Backoff
from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.checkpoints.files import delete_checkpoint, is_empty
from tenax.master.checkpoints.roots import CheckpointRoots
from tenax.master.store.checkpoints import gc, removal_tasks
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.gc import RemovalRow
from tenax.master.store.logs import rows as logs
from tenax.master.store.users import rows as users
from tenax.master.store.users.rows import FileOwner
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_reachable_by_agents

log = structlog.get_logger("tenax.checkpoint_gc")

#: Until a removal that failed is tried again.
_BACKOFF = Backoff(first=5.0, ceiling=3600.0)
#: The same of one that failed for a reason that nobody foresaw.
UNFORESEEN_S = 3600.0

Transaction = Callable[[], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class RemovalOutcome:
    """How a removal went; without a failure the files are gone."""

    #: Why it failed; it is tried again.
    failure: str = ""
    #: It is left to a task on an agent.
    delegated: bool = False


async def carry_out(transaction: Transaction, roots: CheckpointRoots, uuid: str) -> RemovalOutcome:
    """Carry out a removal, below these roots or by a task on an agent. Raises TryAgain."""
    async with transaction() as conn:
        removal = await gc.begin_removal(conn, uuid)
        if removal is None:
            return RemovalOutcome()
        owner = await users.file_owner(conn, removal.owner_id, elsewhere=removal.elsewhere)
    try:
        left = await asyncio.to_thread(_delete, removal, roots, owner)
    except (NotNow, StorageFailed) as error:
        return await _delegate_or_retry(transaction, removal, str(error), untouched=isinstance(error, NotNow))
    # Its experiment may have been deleted meanwhile, and its record with it.
    with suppress(NotFound):
        async with transaction() as conn:
            ours = await gc.finish_removal(conn, removal.uuid, unreported=removal.unreported, globs=removal.globs)
            if not removal.unreported:
                note = checkpoints.set_files if ours else checkpoints.keep_files
                await note(conn, removal.uuid, left)
    log.info("deleted files of a checkpoint", checkpoint=uuid, reason=removal.reason, files_left=len(left))
    return RemovalOutcome()


def configured_place(config: JsonObject | None) -> JsonObject | None:
    """The ``checkpoint_storage`` of an experiment."""
    storage = (config or {}).get("checkpoint_storage")
    return storage if isinstance(storage, dict) else None


def wait_s(tries: int) -> float:
    """Seconds until a removal that has failed so often before is tried again."""
    return _BACKOFF.after(tries + 1)


def _delete(removal: RemovalRow, roots: CheckpointRoots, owner: FileOwner) -> dict[str, int]:
    place = roots.place_of(removal.storage, configured_place(removal.config), owner)
    left = delete_checkpoint(place, removal.uuid, removal.globs)
    if left is None and removal.fresh and is_empty(place):
        raise NotNow(f"{place} is empty on the master's machine, as if its file system were not mounted: mount it")
    return left or {}


async def _delegate_or_retry(
    transaction: Transaction, removal: RemovalRow, failure: str, *, untouched: bool
) -> RemovalOutcome:
    """Delegate it to a task on an agent, which may reach what the master does not; else report it, and try again."""
    place = removal.storage or configured_place(removal.config) or {}
    if is_reachable_by_agents(place) and removal.owner_id is not None:
        log.info("files of a checkpoint are left to a task", checkpoint=removal.uuid, reason=failure)
        async with transaction() as conn:
            await removal_tasks.delegate(conn, removal.uuid, failure, untouched=untouched)
        return RemovalOutcome(failure, delegated=True)
    retry_s = wait_s(removal.tries)
    log.warning(
        "files of a checkpoint could not be deleted", checkpoint=removal.uuid, reason=failure, again_in_s=retry_s
    )
    async with transaction() as conn:
        await gc.removal_failed(conn, removal.uuid, failure, retry_s, untouched=untouched)
        if failure != removal.failure:
            text = f"checkpoint {removal.uuid} could not be deleted and is tried again ({removal.reason}): {failure}"
            await logs.append_system_line(conn, removal.task_id, text, "WARNING")
    return RemovalOutcome(failure)
