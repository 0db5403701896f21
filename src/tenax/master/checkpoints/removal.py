"""One removal, from its beginning to its record: the files first, then what the checkpoint says about them.

Killed at any instant it is found again, begun or not, and done again: what is gone already is no error.
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
from tenax.master.checkpoints.files import delete_checkpoint, is_empty, place_of
from tenax.master.store.checkpoints import garbage
from tenax.master.store.checkpoints import removal_tasks as afar
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.garbage import Removal
from tenax.master.store.logs import rows as logs
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_reachable_by_agents

log = structlog.get_logger("tenax.collecting")

#: Until a removal that failed is tried again.
_BACKOFF = Backoff(first=5.0, ceiling=3600.0)

Transaction = Callable[[], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a removal went; without a failure the files are gone."""

    #: Why it did not work, in words; it is tried again.
    failure: str = ""
    #: It is left to a task on an agent.
    afar: bool = False


async def clear(transaction: Transaction, clusters: JsonObject | None, uuid: str) -> Outcome:
    """Carry out a removal. ``clusters``: the storage that the administrator has set. Raises TryAgain."""
    async with transaction() as conn:
        removal = await garbage.begin(conn, uuid)
    if removal is None:
        return Outcome()
    try:
        left = await asyncio.to_thread(_delete, removal, clusters)
    except (NotNow, StorageFailed) as error:
        return await _give_up(transaction, removal, str(error), untouched=isinstance(error, NotNow))
    # Its experiment may have been deleted meanwhile, and its record with it.
    with suppress(NotFound):
        async with transaction() as conn:
            if not removal.unreported:
                await checkpoints.set_files(conn, removal.uuid, left)
            await garbage.finish(conn, removal.uuid, unreported=removal.unreported)
    log.info("deleted files of a checkpoint", checkpoint=uuid, reason=removal.reason, files_left=len(left))
    return Outcome()


def configured_place(config: JsonObject | None) -> JsonObject | None:
    """The ``checkpoint_storage`` of an experiment."""
    storage = (config or {}).get("checkpoint_storage")
    return storage if isinstance(storage, dict) else None


def wait_s(tries: int) -> float:
    """Seconds until a removal that has failed so often before is tried again."""
    return _BACKOFF.after(tries + 1)


def _delete(removal: Removal, clusters: JsonObject | None) -> dict[str, int]:
    place = place_of(removal.storage, configured_place(removal.config), clusters)
    left = delete_checkpoint(place, removal.uuid, removal.globs)
    if left is None and removal.fresh and is_empty(place):
        raise NotNow(f"{place} is empty on the master's machine, as if its file system were not mounted: mount it")
    return left or {}


async def _give_up(transaction: Transaction, removal: Removal, failure: str, *, untouched: bool) -> Outcome:
    """Leave it to a task on an agent, which may reach what we do not; else tell it, and try again in a while."""
    place = removal.storage or configured_place(removal.config) or {}
    if is_reachable_by_agents(place) and removal.owner_id is not None:
        log.info("files of a checkpoint are left to a task", checkpoint=removal.uuid, reason=failure)
        async with transaction() as conn:
            await afar.send(conn, removal.uuid, failure, untouched=untouched)
        return Outcome(failure, afar=True)
    again = wait_s(removal.tries)
    log.warning("files of a checkpoint could not be deleted", checkpoint=removal.uuid, reason=failure, again_in_s=again)
    async with transaction() as conn:
        await garbage.failed(conn, removal.uuid, failure, again, untouched=untouched)
        if failure != removal.failure:
            text = f"checkpoint {removal.uuid} could not be deleted and is tried again ({removal.reason}): {failure}"
            await logs.append_system_line(conn, removal.task_id, text, "WARNING")
    return Outcome(failure)
