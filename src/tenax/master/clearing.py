"""One removal, from its beginning to its record: the files first, then what the checkpoint says about them.

Killed at any instant it is found again, begun or not, and done again: what is gone already is no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

import structlog
from asyncpg import Connection

from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.reach import delete_checkpoint, is_empty, place_of
from tenax.master.store import checkpoints, garbage, logs
from tenax.master.store.garbage import Removal
from tenax.storage.port import StorageFailed

log = structlog.get_logger("tenax.collecting")

#: Seconds until a removal that failed is tried again, doubled each time up to the longest.
_FIRST_S, _LONGEST_S = 5.0, 3600.0

Transaction = Callable[[], AbstractAsyncContextManager[Connection]]


async def clear(transaction: Transaction, clusters: JsonObject | None, uuid: str) -> str | None:
    """Carry out a removal; why it failed, in words. ``clusters``: the storage that the administrator has set.

    One that failed is tried again later. Raises TryAgain.
    """
    async with transaction() as conn:
        removal = await garbage.begin(conn, uuid)
    if removal is None:
        return None
    try:
        left = await asyncio.to_thread(_delete, removal, clusters)
    except (NotNow, StorageFailed) as error:
        await _tell(transaction, removal, str(error), untouched=isinstance(error, NotNow))
        return str(error)
    # Its experiment may have been deleted meanwhile, and its record with it.
    with suppress(NotFound):
        async with transaction() as conn:
            if not removal.unreported:
                await checkpoints.set_files(conn, removal.uuid, left)
            await garbage.finish(conn, removal)
    log.info("deleted files of a checkpoint", checkpoint=uuid, reason=removal.reason, files_left=len(left))
    return None


def configured_place(config: JsonObject | None) -> JsonObject | None:
    """The ``checkpoint_storage`` of an experiment."""
    storage = (config or {}).get("checkpoint_storage")
    return storage if isinstance(storage, dict) else None


def _delete(removal: Removal, clusters: JsonObject | None) -> dict[str, int]:
    place = place_of(removal.storage, configured_place(removal.config), clusters)
    left = delete_checkpoint(place, removal.uuid, removal.globs)
    if left is None and removal.fresh and is_empty(place):
        raise NotNow(f"{place} is empty on the master's machine, as if its file system were not mounted: mount it")
    return left or {}


async def _tell(transaction: Transaction, removal: Removal, failure: str, *, untouched: bool) -> None:
    """In the log of the task that wrote it, each new reason once; on the removal each time."""
    wait_s = min(_LONGEST_S, _FIRST_S * 2 ** min(removal.tries, 20))
    log.warning(
        "files of a checkpoint could not be deleted", checkpoint=removal.uuid, reason=failure, again_in_s=wait_s
    )
    async with transaction() as conn:
        await garbage.failed(conn, removal, failure, wait_s, untouched=untouched)
        if failure != removal.failure:
            text = f"checkpoint {removal.uuid} could not be deleted and is tried again ({removal.reason}): {failure}"
            await logs.append_system_line(conn, removal.task_id, text, "WARNING")
