"""Schedules: keeps requests and slots in memory, asks the scheduler for plans, writes placements and reasons.

Rules:
- A pass takes over the rows that changed since the last one (`tenax.master.store.queue.cluster_cache`), and plans the
  pools whose plan may be another now. What it was woken for does not matter.
- All is read anew with a new lease, a new connection of the listener, other settings, and after whatever went wrong;
  and by the audit, now and then, which tells what was not as the rows say.
- What takes a while in a large cluster is done in a thread: the event loop is the API's as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import structlog
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.config.provider import MonthlyBudgetSettings
from tenax.ids import AllocationId, JobId, PoolName
from tenax.lifecycle.budget import BudgetState
from tenax.master.access.task_tokens import allocation_token, task_session_token, token_hash
from tenax.master.allocations.events import AT_ONCE
from tenax.master.concurrency.threads import run_beside
from tenax.master.loops.cluster_memory import ClusterMemory
from tenax.master.loops.loop import PassContext, each
from tenax.master.loops.wait_reasons import WaitReasons
from tenax.master.observability import counters, tracing
from tenax.master.provision.budgets import budget_states
from tenax.master.provision.offers import decided, prospects
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import FREED
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.machines import offer_facts
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import RentedPool
from tenax.master.store.queue import placements
from tenax.master.store.queue.placements import TaskCredentials
from tenax.master.store.queue.pools import rules
from tenax.scheduler.reasons import NOT_PLANNED
from tenax.scheduler.registry import changes_at, plan, plan_all
from tenax.scheduler.snapshot import Phase, PlacedMember, PoolPlan, PoolSnapshot

log = structlog.get_logger("tenax.scheduling")

#: Counting what jobs have held takes at most one part in so many of the loop's time.
_COUNT_SELDOM = 20.0
#: For so long what is spent of budgets is not read anew.
_SPENT_S = 10.0


class Scheduling:
    """Places what fits, preempts what must leave, and says why the rest waits."""

    name = "scheduling"
    kind = "scheduling"

    def __init__(
        self,
        pools: Sequence[PoolSettings],
        secret: bytes,
        preemption_timeout_s: float,
        overall: MonthlyBudgetSettings | None = None,
    ) -> None:
        self.use_pools(pools, overall)
        self._secret = secret
        self._timeout_s = preemption_timeout_s
        self._held: Mapping[JobId, float] = {}
        self._reasons = WaitReasons()
        self._memory: ClusterMemory | None = None

    def use_pools(self, pools: Sequence[PoolSettings], overall: MonthlyBudgetSettings | None = None) -> None:
        """From the next pass on these are the pools; ``overall``: what may be spent on machines of all of them."""
        self._overall = overall or MonthlyBudgetSettings()
        #: What is spent, and until when that is not read anew. Cache: for reasons alone; the loop `scaling` decides.
        self._budgets: Mapping[str, tuple[BudgetState, ...]] = {}
        self._spent_until = 0.0
        self._rules = {pool.name: rules(pool) for pool in pools}
        self._aux_places = {pool.name: pool.max_aux_containers_per_agent for pool in pools}
        self._renting = {pool.name: pool for pool in pools if pool.provider is not None}
        self._pools = tuple(pools)
        self._prospects = prospects(pools, {})
        self._count_at = 0.0

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Plan every pool whose plan may be another, and carry the plans out."""
        if woken.ids and all(name.startswith(FREED) for name in woken.ids) and not woken.full:
            # Free slots matter to what waits for some, and as a rule nothing does.
            async with context.reading() as conn:
                if not await placements.any_waits(conn):
                    return None
        memory, self._memory = self._memory, None
        has_other_prospects = await self._read_prospects(context)
        if memory is None or has_other_prospects or woken.full or not memory.is_for(self._rules):
            memory = ClusterMemory(self._rules, self._aux_places, self._prospects)
        covers_all = not woken.ids
        snapshots = await memory.read(context, self._reasons, self._attained, covers_all=covers_all)
        changes = await self._carry_out(context, memory, snapshots)
        self._reasons.keep_to({snapshot.pool for snapshot in snapshots})
        changes.append(await self._reasons.write(context))
        if covers_all:
            await memory.forget_changes(context)
        self._memory = memory
        return min((seconds for seconds in changes if seconds is not None), default=None)

    async def _read_prospects(self, context: PassContext) -> bool:
        """By what providers have said of offers: whether other machines may be rented than before."""
        if not self._renting:
            return False
        async with context.reading() as conn:
            rentable = prospects(self._pools, await offer_facts.all_of(conn))
        is_other, self._prospects = rentable != self._prospects, rentable
        return is_other

    async def _carry_out(
        self, context: PassContext, memory: ClusterMemory, snapshots: Sequence[PoolSnapshot]
    ) -> list[float | None]:
        """Plan what may be planned otherwise than before; seconds until plans change by the time alone."""
        due = memory.unsettled(snapshots)
        rented, budgets = await self._rented(context)
        plans, size = (
            plan_all(due, self._planned),
            max((len(each.requests) + len(each.agents) for each in due), default=0),
        )
        changes: list[float | None] = []
        while (planned := await run_beside(size, _next, plans)) is not None:
            snapshot, its_plan, changes_then = planned
            await self._place(context, snapshot.pool, its_plan.placements)
            await self._preempt(context, snapshot.pool, its_plan.preempt)
            self._reasons.say(snapshot.pool, self._with_machines(snapshot, its_plan.waiting, rented, budgets))
            memory.settle(snapshot, its_plan, changes_then)
            changes.append(None if changes_then is None else changes_then - snapshot.at)
        changes += [memory.next_change(snapshot.at) for snapshot in snapshots[:1]]
        return changes

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

    async def _rented(
        self, context: PassContext
    ) -> tuple[Mapping[str, RentedPool], Mapping[str, tuple[BudgetState, ...]]]:
        """The machines of each pool for which some may be rented, and what is spent of its budgets."""
        if not self._renting:
            return {}, {}
        async with context.reading() as conn:
            if time.monotonic() >= self._spent_until:
                self._budgets = await budget_states(conn, tuple(self._renting.values()), self._overall)
                self._spent_until = time.monotonic() + _SPENT_S
            return await machines.of_pools(conn), self._budgets

    def _with_machines(
        self,
        snapshot: PoolSnapshot,
        waiting: Mapping[AllocationId, str],
        rented: Mapping[str, RentedPool],
        budgets: Mapping[str, tuple[BudgetState, ...]],
    ) -> Mapping[AllocationId, str]:
        """The reasons of a pool, with what becomes of machines where some are rented for it."""
        pool = self._renting.get(snapshot.pool)
        if pool is None or not waiting or pool.provider is None:
            return waiting
        its_budgets = budgets.get(snapshot.pool, ())
        return decided(pool, pool.provider, snapshot, rented.get(snapshot.pool), its_budgets).explained(waiting)

    async def _place(
        self, context: PassContext, pool: PoolName, decided: Mapping[AllocationId, tuple[PlacedMember, ...]]
    ) -> None:
        async def handle(name: str) -> None:
            credentials = TaskCredentials(
                token_hash(allocation_token(self._secret, name)), token_hash(task_session_token(self._secret, name))
            )
            async with context.transaction() as conn:
                waited_s = await placements.place(conn, AllocationId(name), decided[AllocationId(name)], credentials)
            self._reasons.placed(pool, AllocationId(name))
            counters.QUEUE_WAIT_SECONDS.labels(pool).observe(waited_s)
            counters.DECISIONS.labels(pool, counters.PLACED).inc()

        await each(list(decided), handle, loop=self.name, noun="allocation")

    async def _preempt(self, context: PassContext, pool: PoolName, decided: Mapping[AllocationId, str]) -> None:
        requests = [LeaveRequest(name, reason) for name, reason in decided.items()]
        for first in range(0, len(requests), AT_ONCE):
            async with context.transaction() as conn:
                await allocations.ask_to_leave(conn, requests[first : first + AT_ONCE], self._timeout_s)
        counters.DECISIONS.labels(pool, counters.ASKED_TO_LEAVE).inc(len(requests))


def _next(plans: Iterator[tuple[PoolSnapshot, PoolPlan]]) -> tuple[PoolSnapshot, PoolPlan, float | None] | None:
    """The next pool that is planned, and when that changes by the time alone."""
    snapshot, decided = next(plans, (None, None))
    return None if snapshot is None or decided is None else (snapshot, decided, changes_at(snapshot))
