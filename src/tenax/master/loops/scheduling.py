"""The scheduling loop: requests and slots, the scheduler's plan, placements and requests to leave."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tenax.config.master import PoolSettings
from tenax.ids import AllocationId
from tenax.master.access.task_tokens import allocation_token, task_session_token, token_hash
from tenax.master.loops.loop import Desk, each
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import FREED
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.queue import placements
from tenax.master.store.queue.placements import Credentials
from tenax.master.store.queue.pools import rules
from tenax.scheduler.plan import plan
from tenax.scheduler.snapshot import PlacedMember

#: Each placement changes the words of all behind it ("n requests are ahead"): they are written this often at most.
_TELL_EVERY_S = 1.0


class Scheduling:
    """Places what fits, asks what must leave, and says why the rest waits."""

    name = "scheduling"
    kind = "scheduling"

    def __init__(self, pools: tuple[PoolSettings, ...], secret: bytes, preemption_timeout_s: float) -> None:
        self._rules = {pool.name: rules(pool) for pool in pools}
        self._aux_places = {pool.name: pool.max_aux_containers_per_agent for pool in pools}
        self._secret = secret
        self._timeout_s = preemption_timeout_s
        self._told_at = -_TELL_EVERY_S

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Plan every pool, and carry the plan out."""
        if woken.ids == {FREED} and not woken.full:
            # Free slots matter to what waits for some, and as a rule nothing does.
            async with desk.looking() as conn:
                if not await placements.any_waits(conn):
                    return None
        async with desk.snapshot() as conn:
            snapshots = await placements.snapshots(conn, self._rules, self._aux_places)
            told = await placements.waits(conn)
        waiting: dict[AllocationId, str] = {}
        for snapshot in snapshots:
            decided = plan(snapshot)
            await self._place(desk, decided.placements)
            await self._ask(desk, decided.preempt)
            waiting.update(decided.waiting)
            for placed in decided.placements:
                told.pop(placed, None)
        return None if waiting == told else await self._tell(desk, waiting, told)

    async def _tell(
        self, desk: Desk, waiting: dict[AllocationId, str], told: Mapping[AllocationId, str]
    ) -> float | None:
        """Say why each waits; seconds until it should be said, where only the words have changed since just now."""
        left = self._told_at + _TELL_EVERY_S - time.monotonic()
        if left > 0 and waiting.keys() == told.keys():
            return left
        async with desk.transaction() as conn:
            await placements.write_waits(conn, waiting)
        self._told_at = time.monotonic()
        return None

    async def _place(self, desk: Desk, decided: Mapping[AllocationId, tuple[PlacedMember, ...]]) -> None:
        async def handle(name: str) -> None:
            credentials = Credentials(
                token_hash(allocation_token(self._secret, name)), token_hash(task_session_token(self._secret, name))
            )
            async with desk.transaction() as conn:
                await placements.place(conn, AllocationId(name), decided[AllocationId(name)], credentials)

        await each(list(decided), handle, loop=self.name)

    async def _ask(self, desk: Desk, decided: Mapping[AllocationId, str]) -> None:
        async def handle(name: str) -> None:
            async with desk.transaction() as conn:
                await allocations.preempt(conn, name, decided[AllocationId(name)], self._timeout_s)

        await each(list(decided), handle, loop=self.name)
