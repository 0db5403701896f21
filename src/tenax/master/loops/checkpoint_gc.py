"""Checkpoint gc: applies the policies of experiments to their checkpoints, and removes the files.

Also while an experiment runs: what its policy keeps no longer goes at once. A policy is applied when one of the
experiment's checkpoints was reported, a trial or the experiment ended, or the policy changed. Uploads that no task can
report any more are found in each pass. A removal is a row before its files go; what the master cannot reach is left to
a task on an agent; a removal that fails waits longer each time.
"""

from __future__ import annotations

import asyncio
import time

import structlog

from tenax.config.master import MasterSettings
from tenax.master.checkpoints import removal_tasks as checkpoint_removal_tasks
from tenax.master.checkpoints.removal import UNFORESEEN_S, carry_out
from tenax.master.checkpoints.roots import checkpoint_roots
from tenax.master.loops.loop import LONG_STEP_S, PassContext, each
from tenax.master.store.checkpoints import gc, removal_tasks
from tenax.master.store.checkpoints.gc import KIND
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments

log = structlog.get_logger("tenax.checkpoint_gc")

#: Policies applied, and removals carried out, in one pass; the next one follows at once.
_AT_ONCE = 200
#: An experiment rests this many times as long as applying its policy took: large ones save all the time.
_REST = 10.0
#: Removals under way at a time: a slow file system holds up few others.
_TOGETHER = 4


class CheckpointGc:
    """Removes what policies do not keep."""

    name = "checkpoint_gc"
    kind = KIND
    step_s = LONG_STEP_S

    def __init__(self, settings: MasterSettings) -> None:
        #: Those of pools may change while it runs.
        self.settings = settings
        #: Until when experiments rest.
        self._rest: dict[int, float] = {}
        self._roots = checkpoint_roots(settings)

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Apply policies where something has changed, then carry out the removals that are due."""
        async with context.reading() as conn:
            marked = await gc.marked(conn, 10 * _AT_ONCE)
        rested, rest_s = self._rested(marked)
        await each(
            [str(number) for number in rested],
            lambda name: self._apply(context, int(name)),
            loop=self.name,
            noun="experiment",
        )
        await self._find_abandoned_uploads(context)
        async with context.reading() as conn:
            due = await gc.due_removals(conn, _AT_ONCE)
        await self._carry_out_all(context, due)
        await self._run_removal_tasks(context)
        if len(rested) == _AT_ONCE or len(due) == _AT_ONCE:
            return 0.0
        async with context.reading() as conn:
            retry_s = await gc.next_retry_s(conn)
        return min((wait for wait in (rest_s, retry_s) if wait is not None), default=None)

    def _rested(self, marked: list[int]) -> tuple[list[int], float | None]:
        """Those that do not rest, and in how many seconds the first of the others has rested."""
        now = time.monotonic()
        self._rest = {number: until for number, until in self._rest.items() if until > now}
        waits = [self._rest[number] - now for number in marked if number in self._rest]
        return [number for number in marked if number not in self._rest], min(waits, default=None)

    async def _apply(self, context: PassContext, experiment_id: int) -> None:
        began = time.monotonic()
        await self._apply_policy(context, experiment_id)
        now = time.monotonic()
        self._rest[experiment_id] = now + _REST * (now - began)

    async def _apply_policy(self, context: PassContext, experiment_id: int) -> None:
        async with context.transaction() as conn:
            mark = await gc.mark_of(conn, experiment_id)
            if mark is None:
                return
            await experiments.lock(conn, experiment_id)
            inputs = await gc.load_inputs(conn, experiment_id)
            fates = await asyncio.to_thread(inputs.fates) if mark.requested or not inputs.unmanaged else ()
            await gc.request_removals(conn, {fate.uuid: fate.reasons[0] for fate in fates if not fate.keep})
            await gc.clear_mark(conn, experiment_id, mark)

    async def _find_abandoned_uploads(self, context: PassContext) -> None:
        async with context.reading() as conn:
            if not await gc.any_upload(conn):
                return
        async with context.transaction() as conn:
            for uuid in await gc.request_abandoned_removals(conn):
                log.info("an upload was never reported", checkpoint=uuid)

    async def _run_removal_tasks(self, context: PassContext) -> None:
        async with context.reading() as conn:
            if not await removal_tasks.any_delegated(conn):
                return
        async with context.transaction() as conn:
            await checkpoint_removal_tasks.take_back(conn)
        # By itself: each holds its removals in their order, the two together would not.
        async with context.transaction() as conn:
            await checkpoint_removal_tasks.launch(conn, self.settings)

    async def _carry_out_all(self, context: PassContext, uuids: list[str]) -> None:
        limit = asyncio.Semaphore(_TOGETHER)

        async def handle(uuid: str) -> None:
            await carry_out(context.transaction, self._roots, uuid)

        async def put_off(uuid: str, why: str) -> None:
            # Else it would be the first of each pass, and enough of them all that there is.
            async with context.transaction() as conn:
                await gc.removal_failed(conn, uuid, why, UNFORESEEN_S, untouched=False)

        async def handle_limited(uuid: str) -> None:
            async with limit:
                await each([uuid], handle, loop=self.name, noun="checkpoint", quarantine=put_off)

        await asyncio.gather(*(handle_limited(uuid) for uuid in uuids))
