"""The deleting loop: experiments that are to go, first their checkpoint files, then their rows.

Files go first: a row without files can be deleted again, files without a row are found by nobody. What cannot be done
makes the experiment DELETE_FAILED, with the reason; it can be asked for again.
"""

from __future__ import annotations

import asyncio

import structlog

from tenax.errors import NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.loops.loop import Desk, each
from tenax.master.reach import delete_checkpoint
from tenax.master.store import deletion, experiments
from tenax.master.store.deletion import Remains
from tenax.master.store.wakeups import Woken
from tenax.storage.port import CheckpointMissing, StorageFailed

log = structlog.get_logger("tenax.deleting")

#: How soon one is looked at again whose containers are still on a machine.
_AGAIN_S = 1.0


class Deleting:
    """Deletes what was asked to be deleted."""

    name = "deleting"
    kind = "deletion"

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Delete what can be; what is still on a machine is looked at again soon."""
        async with desk.looking() as conn:
            asked = await deletion.asked(conn)
        held: list[int] = []

        async def handle(name: str) -> None:
            if not await self._delete(desk, int(name)):
                held.append(int(name))

        await each([str(one) for one in asked], handle, loop=self.name)
        return _AGAIN_S if held else None

    async def _delete(self, desk: Desk, experiment_id: int) -> bool:
        """False: not yet."""
        async with desk.transaction() as conn:
            left = await deletion.remains(conn, experiment_id)
        if left is None:
            return True
        if left.held:
            return False
        failure = left.obstacle or await asyncio.to_thread(_delete_files, left)
        async with desk.transaction() as conn:
            if failure is None:
                await deletion.delete_rows(conn, experiment_id)
                log.info("experiment deleted", experiment=experiment_id, checkpoints=len(left.checkpoints))
            else:
                await experiments.ask(conn, experiment_id, ExperimentEvent.DELETE_FAILED, failure)
        return True


def _delete_files(left: Remains) -> str | None:
    """Delete the files of all checkpoints; the first reason why one cannot be, in words."""
    for checkpoint in left.checkpoints:
        place = checkpoint.storage or _configured(left.config)
        try:
            delete_checkpoint(place, checkpoint.uuid)
        except CheckpointMissing:
            continue
        except (NotNow, StorageFailed) as error:
            return f"checkpoint {checkpoint.uuid} could not be deleted: {error}"
    return None


def _configured(config: JsonObject) -> JsonObject:
    storage = config.get("checkpoint_storage")
    return storage if isinstance(storage, dict) else {}
