"""Schedules: loads requests and slots, asks the scheduler for a plan, writes placements, preemptions and reasons."""

from __future__ import annotations

import time
from collections.abc import Mapping

import structlog
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.ids import AllocationId, JobId, PoolName
from tenax.master.access.task_tokens import allocation_token, task_session_token, token_hash
from tenax.master.allocations.events import AT_ONCE
from tenax.master.loops.loop import PassContext, each
from tenax.master.observability import counters, tracing
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import FREED
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.queue import placements
from tenax.master.store.queue.placements import TaskCredentials
from tenax.master.store.queue.pools import rules
from tenax.scheduler.reasons import NOT_PLANNED
from tenax.scheduler.registry import changes_at, plan, plan_all
from tenax.scheduler.snapshot import Phase, PlacedMember, PoolPlan, PoolSnapshot

log = structlog.get_logger("tenax.scheduling")

#: Each placement changes the reason of all behind it ("n requests are ahead"): reasons are written this often at most.
_WRITE_REASONS_EVERY_S = 1.0
#: Counting what jobs have held takes at most one part in so many of the loop's time.
_COUNT_SELDOM = 20.0


class Scheduling:
    """Places what fits, preempts what must leave, and says why the rest waits."""

    name = "scheduling"
    kind = "scheduling"

    def __init__(self, pools: tuple[PoolSettings, ...], secret: bytes, preemption_timeout_s: float) -> None:
        self._rules = {pool.name: rules(pool) for pool in pools}
        self._aux_places = {pool.name: pool.max_aux_containers_per_agent for pool in pools}
        self._secret = secret
        self._timeout_s = preemption_timeout_s
        self._reasons_written_at = -_WRITE_REASONS_EVERY_S
        self._held: Mapping[JobId, float] = {}
        self._count_at = 0.0

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Plan every pool, and carry the plan out."""
        if woken.ids and all(name.startswith(FREED) for name in woken.ids) and not woken.full:
            # Free slots matter to what waits for some, and as a rule nothing does.
            async with context.reading() as conn:
                if not await placements.any_waits(conn):
                    return None
        async with context.snapshot() as conn:
            snapshots = await placements.snapshots(conn, self._rules, self._aux_places, await self._attained(conn))
            written = await placements.waits(conn)
        waiting: dict[AllocationId, str] = {}
        changes = [moment - each.at for each in snapshots if (moment := changes_at(each)) is not None]
        for snapshot, decided in plan_all(snapshots, self._planned):
            await self._place(context, snapshot.pool, decided.placements)
            await self._preempt(context, snapshot.pool, decided.preempt)
            waiting.update(decided.waiting)
            for placed in decided.placements:
                written.pop(placed, None)
        if waiting != written:
            changes += filter(None, [await self._write_reasons(context, waiting, written)])
        return min(changes, default=None)

    async def _attained(self, conn: Connection) -> Mapping[JobId, float]:
        """What jobs have held, counted anew now and then: a long history takes a while, and hours are what matters."""
        begun = time.monotonic()
        if begun >= self._count_at:
            self._held = await placements.held_so_far(conn, self._rules)
            ended = time.monotonic()
            self._count_at = ended + (ended - begun) * _COUNT_SELDOM
        return self._held

    def _planned(self, snapshot: PoolSnapshot) -> PoolPlan:
        """What is wrong with one pool, all others do not wait for."""
        try:
            with counters.PLAN_SECONDS.labels(snapshot.pool).time(), tracing.span("plan", tenax__pool=snapshot.pool):
                return plan(snapshot)
        except Exception:
            log.exception("pool_not_planned", pool=snapshot.pool)
            pending = (each.allocation_id for each in snapshot.requests if each.phase is Phase.PENDING)
            return PoolPlan(waiting=dict.fromkeys(pending, NOT_PLANNED))

    async def _write_reasons(
        self, context: PassContext, waiting: dict[AllocationId, str], written: Mapping[AllocationId, str]
    ) -> float | None:
        """Write why each waits; seconds until it should be, where only reasons have changed since they were written."""
        left = self._reasons_written_at + _WRITE_REASONS_EVERY_S - time.monotonic()
        if left > 0 and waiting.keys() == written.keys():
            return left
        async with context.transaction() as conn:
            await placements.write_waits(conn, waiting)
        self._reasons_written_at = time.monotonic()
        return None

    async def _place(
        self, context: PassContext, pool: PoolName, decided: Mapping[AllocationId, tuple[PlacedMember, ...]]
    ) -> None:
        async def handle(name: str) -> None:
            credentials = TaskCredentials(
                token_hash(allocation_token(self._secret, name)), token_hash(task_session_token(self._secret, name))
            )
            async with context.transaction() as conn:
                waited_s = await placements.place(conn, AllocationId(name), decided[AllocationId(name)], credentials)
            counters.QUEUE_WAIT_SECONDS.labels(pool).observe(waited_s)
            counters.DECISIONS.labels(pool, counters.PLACED).inc()

        await each(list(decided), handle, loop=self.name, noun="allocation")

    async def _preempt(self, context: PassContext, pool: PoolName, decided: Mapping[AllocationId, str]) -> None:
        requests = [LeaveRequest(name, reason) for name, reason in decided.items()]
        for first in range(0, len(requests), AT_ONCE):
            async with context.transaction() as conn:
                await allocations.ask_to_leave(conn, requests[first : first + AT_ONCE], self._timeout_s)
        counters.DECISIONS.labels(pool, counters.ASKED_TO_LEAVE).inc(len(requests))
