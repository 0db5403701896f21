"""The collecting loop: which checkpoints go by their experiment's policy, and their files.

While an experiment runs, too: what newer ones have superseded goes at once. An experiment is looked at when one of its
checkpoints was reported, a trial or the experiment ended, or its policy changed. Uploads that no task can report any
more are looked for in each pass. Decisions are rows before files go; what the master cannot reach is left to a task on
an agent; a removal that fails waits longer each time.
"""

from __future__ import annotations

import asyncio
import time

import structlog

from tenax.config.master import MasterSettings
from tenax.master.checkpoints import removal_tasks as checkpoint_removal_tasks
from tenax.master.checkpoints.removal import clear
from tenax.master.loops.loop import Desk, each
from tenax.master.store.checkpoints import garbage, removal_tasks
from tenax.master.store.checkpoints.garbage import KIND
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments

log = structlog.get_logger("tenax.collecting")

#: Looked at, or deleted, in one pass; the next one follows at once.
_AT_ONCE = 200
#: How many times as long as it was looked at an experiment is left alone: large ones save all the time.
_REST = 10.0
#: Removals under way at a time: a slow file system holds up few others.
_TOGETHER = 4


class Collecting:
    """Deletes what policies do not keep."""

    name = "collecting"
    kind = KIND

    def __init__(self, settings: MasterSettings) -> None:
        self._settings = settings
        #: Until when experiments are left alone.
        self._rest: dict[int, float] = {}
        self._clusters = settings.checkpoint_storage

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Decide where something has changed, then delete what was decided."""
        async with desk.looking() as conn:
            marked = await garbage.due(conn, 10 * _AT_ONCE)
        rested, rest_s = self._rested(marked)
        await each([str(one) for one in rested], lambda name: self._look(desk, int(name)), loop=self.name)
        await self._find_uploads(desk)
        async with desk.looking() as conn:
            waiting = await garbage.waiting(conn, _AT_ONCE)
        await self._clear_all(desk, waiting)
        await self._send_afar(desk)
        if len(rested) == _AT_ONCE or len(waiting) == _AT_ONCE:
            return 0.0
        async with desk.looking() as conn:
            retry_s = await garbage.next_retry_s(conn)
        return min((wait for wait in (rest_s, retry_s) if wait is not None), default=None)

    def _rested(self, marked: list[int]) -> tuple[list[int], float | None]:
        """Those that may be looked at, and in how many seconds the next of the others may."""
        now = time.monotonic()
        self._rest = {one: until for one, until in self._rest.items() if until > now}
        waits = [self._rest[one] - now for one in marked if one in self._rest]
        return [one for one in marked if one not in self._rest], min(waits, default=None)

    async def _look(self, desk: Desk, experiment_id: int) -> None:
        began = time.monotonic()
        await self._decide(desk, experiment_id)
        now = time.monotonic()
        self._rest[experiment_id] = now + _REST * (now - began)

    async def _decide(self, desk: Desk, experiment_id: int) -> None:
        async with desk.transaction() as conn:
            mark = await garbage.seen(conn, experiment_id)
            if mark is None:
                return
            await experiments.lock(conn, experiment_id)
            now = await garbage.situation(conn, experiment_id)
            fates = await asyncio.to_thread(now.fates) if mark.asked or not now.unmanaged else ()
            await garbage.doom(conn, {fate.uuid: fate.reasons[0] for fate in fates if not fate.keep})
            await garbage.settle(conn, experiment_id, mark)

    async def _find_uploads(self, desk: Desk) -> None:
        async with desk.looking() as conn:
            if not await garbage.any_upload(conn):
                return
        async with desk.transaction() as conn:
            for uuid in await garbage.doom_abandoned(conn):
                log.info("an upload was never reported", checkpoint=uuid)

    async def _send_afar(self, desk: Desk) -> None:
        async with desk.looking() as conn:
            if not await removal_tasks.any_there(conn):
                return
        async with desk.transaction() as conn:
            await checkpoint_removal_tasks.take_back(conn)
            await checkpoint_removal_tasks.launch(conn, self._settings)

    async def _clear_all(self, desk: Desk, uuids: list[str]) -> None:
        room = asyncio.Semaphore(_TOGETHER)

        async def remove(uuid: str) -> None:
            await clear(desk.transaction, self._clusters, uuid)

        async def one(uuid: str) -> None:
            async with room:
                await each([uuid], remove, loop=self.name)

        await asyncio.gather(*(one(uuid) for uuid in uuids))
