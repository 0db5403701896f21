"""Scaling: rents machines for work that waits, follows each until nothing is left of it, and ends those that are idle.

Rules it keeps: a row before a call, and none within a transaction; one machine that cannot be handled costs itself, and
a provider that is away only its own: what failed there is not tried again for another machine in the same pass. What
carries our mark and has no row has one after two looks, and is asked what it holds, where it can be. Where nothing is
rented, a pass asks nobody anything. For a pool that only advises nothing is decided here: what people launch and end is
followed as anywhere, and what fails by itself is ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.config.provider import MonthlyBudgetSettings
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.errors import NotNow, Stale
from tenax.ids import AllocationId, PoolName
from tenax.lifecycle.budget import BudgetState, used_up
from tenax.lifecycle.machine import (
    LOOKED_FOR,
    Dismissal,
    MachineEvent,
    MachineState,
    MachineStep,
    Trouble,
    next_step,
    noted,
    outlived,
)
from tenax.lifecycle.offer import NEVER, RestCause
from tenax.lifecycle.offer_facts import OfferFacts
from tenax.master.access.task_tokens import machine_token, token_hash
from tenax.master.allocations.events import AT_ONCE
from tenax.master.loops.loop import PassContext, each
from tenax.master.observability import counters
from tenax.master.provision.advice import Advice, is_left_alone
from tenax.master.provision.bootstrap import bootstrap_script
from tenax.master.provision.budgets import BudgetWarnings, budget_states
from tenax.master.provision.offers import decided, offer_named, order_of, prospects, with_slots
from tenax.master.provision.orders import adopted, ordered
from tenax.master.provision.port import (
    MachineOrder,
    OrderRefused,
    Provider,
    ProviderAway,
    ProviderPlace,
    SeenMachine,
    shown,
)
from tenax.master.provision.registry import open_provider
from tenax.master.provision.sightings import LOOK_S, TIMES, Sightings, facts_of, place_of, place_of_pool, rows_by_place
from tenax.master.provision.wheel import wheel_if_any
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.wakeups import MAX_WAIT_S, Woken
from tenax.master.store.machines import offer_facts, offer_rests, silences
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import MachineRow, MachineStanding, RentedPool
from tenax.master.store.queue import placements
from tenax.master.store.queue.pools import rules
from tenax.scheduler.demand import OfferLaunch
from tenax.scheduler.snapshot import PoolSnapshot

log = structlog.get_logger("tenax.scaling")

#: Between two passes while a machine is on its way or ending.
BUSY_S = 5.0
_UNDER_WAY = frozenset({MachineState.PLANNED, MachineState.ASKED, MachineState.STARTING, MachineState.ENDING})


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a pass decides on."""

    rows: Sequence[MachineRow]
    standings: Mapping[str, MachineStanding]
    snapshots: Mapping[str, PoolSnapshot]
    pools: Mapping[str, RentedPool]
    #: What holds for each pool.
    budgets: Mapping[str, Sequence[BudgetState]]
    #: What is to leave a machine that a person lets go, and why.
    dismissed: Mapping[AllocationId, str]


class ScalingLoop:
    """Rents, follows and ends machines."""

    name = "scaling"
    #: What waits has changed.
    kind = "queue"

    def __init__(
        self,
        pools: Sequence[PoolSettings],
        cluster_id: str,
        secret: bytes,
        opened: Callable[[ProviderPlace, str], Provider] = open_provider,
        preemption_timeout_s: float = 3600.0,
        overall: MonthlyBudgetSettings | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._secret = secret
        self._open = opened
        self._timeout_s = preemption_timeout_s
        self._providers: dict[ProviderPlace, Provider] = {}
        self._sightings: dict[ProviderPlace, Sightings] = {}
        #: What failed in this pass: a slow provider would cost each machine its time.
        self._failed: set[tuple[ProviderPlace, MachineStep]] = set()
        self._warnings = BudgetWarnings()
        self._advice = Advice()
        self.use_pools(pools, overall)

    def use_pools(self, pools: Sequence[PoolSettings], overall: MonthlyBudgetSettings | None = None) -> None:
        """From the next pass on these are the pools; ``overall``: what may be spent on all of them."""
        self._overall = overall or MonthlyBudgetSettings()
        self._pools = tuple(pools)
        self._renting = {pool.name: pool for pool in pools if pool.provider is not None}
        #: Whether there may be machines of pools that rent nothing any more.
        self._may_be_left = True

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Look, decide for each pool, and go on with each machine."""
        if not self._renting and not self._may_be_left:
            return None
        async with context.reading() as conn:
            rows = await machines.all_of(conn)
            silent = {place_of(each) for each in await silences.all_of(conn)}
        for place in silent - rows_by_place(self._renting.values(), rows).keys():
            await self._note_silence(context, place, "")
        if not self._renting and not rows:
            self._may_be_left = False
            return None
        self._failed.clear()
        await self._look(context, rows, silent)
        loaded = await self._load(context)
        await self._warnings.give(context.transaction, loaded.budgets.values())
        if await self._scale_all(context, loaded):
            loaded = await self._load(context)
        moved = await self._follow(context, loaded)
        if loaded.dismissed:
            await self._move(context, loaded.dismissed)
        return 0.0 if moved else self._due(loaded)

    async def _look(self, context: PassContext, rows: Sequence[MachineRow], silent: Collection[ProviderPlace]) -> None:
        """Ask each provider what there is, where that may have changed; what is ours and has no row gets one.

        ``silent``: those that have not answered last.
        """
        now = time.monotonic()
        by_place = rows_by_place(self._renting.values(), rows)
        by_name = {f"{place.provider} {place.region} {place.endpoint}".strip(): place for place in by_place}

        async def handle(name: str) -> None:
            place = by_name[name]
            of_place, sightings = by_place[place], self._sightings.setdefault(place, Sightings())
            sightings.fresh = False
            under_way = any(row.state in _UNDER_WAY for row in of_place) or bool(sightings.strays)
            every_s = 0.0 if under_way else MAX_WAIT_S / 2 if of_place or place in silent else LOOK_S
            if now - sightings.at < every_s:
                return
            sightings.at = now
            try:
                sightings.note(await self._provider(place).look(), of_place)
            except ProviderAway as away:
                log.warning("a provider does not say which machines there are", region=place.region, reason=str(away))
                for row in of_place:
                    if row.state in LOOKED_FOR:
                        await self._note(context, row, Trouble.UNSEEN, away)
                if place not in silent:
                    await self._note_silence(context, place, shown(str(away)))
                return
            for row in of_place:
                await self._note(context, row, Trouble.UNSEEN)
            if place in silent:
                await self._note_silence(context, place, "")
            for provider_id, times in list(sightings.strays.items()):
                stray = sightings.seen[provider_id]
                if is_left_alone(place, stray, self._renting):
                    self._advice.stray(stray)
                    del sightings.strays[provider_id]
                elif times >= TIMES:
                    await self._adopt(context, place, stray)

        await each(list(by_name), handle, loop=self.name, noun="provider")

    async def _note_silence(self, context: PassContext, place: ProviderPlace, reason: str) -> None:
        """A provider does not answer; without a reason: it does, or is not asked any more."""
        where = place.provider, place.region, place.endpoint
        async with context.transaction() as conn:
            await (silences.begin(conn, *where, reason) if reason else silences.end(conn, *where))

    async def _adopt(self, context: PassContext, place: ProviderPlace, stray: SeenMachine) -> None:
        """Let the agent of a machine without a row join once more, and say what it holds; end what cannot."""
        for row in adopted(place, stray, self._hashed_token):
            async with context.transaction() as conn:
                is_new = await machines.adopt(conn, row, stray.provider_id, stray.zone)
            if is_new:
                log.error("a machine had no row", machine=stray.provider_id, reason=row.story)
                return

    async def _load(self, context: PassContext) -> _Loaded:
        async with context.snapshot() as conn:
            its_rules = {pool.name: rules(pool) for pool in self._pools}
            places = {pool.name: pool.max_aux_containers_per_agent for pool in self._pools}
            rentable = prospects(self._pools, await offer_facts.all_of(conn))
            snapshots = await placements.snapshots(conn, its_rules, places, prospects=rentable)
            rows = await machines.all_of(conn)
            is_dismissed = any(row.dismissal is not Dismissal.NONE for row in rows)
            return _Loaded(
                rows,
                await machines.standings(conn),
                {each.pool: each for each in snapshots},
                await machines.of_pools(conn),
                await budget_states(conn, self._pools, self._overall),
                await machines.leaving_work(conn) if is_dismissed else {},
            )

    async def _scale_all(self, context: PassContext, loaded: _Loaded) -> bool:
        """Decide for each pool; whether anything follows."""
        changed: list[str] = []

        async def handle(name: str) -> None:
            if await self._scale(context, self._renting[name], loaded):
                changed.append(name)

        await each(list(self._renting), handle, loop=self.name, noun="pool")
        return bool(changed)

    async def _scale(self, context: PassContext, pool: PoolSettings, loaded: _Loaded) -> bool:
        """Decide for a pool, and write what follows; whether anything does."""
        provider = _of(pool)
        snapshot = loaded.snapshots.get(pool.name) or PoolSnapshot(PoolName(pool.name), (), {}, (), rules(pool))
        there = loaded.pools.get(pool.name, RentedPool())
        scaling = decided(pool, provider, snapshot, there, loaded.budgets.get(pool.name, ()))
        if provider.advises:
            self._advice.plan(pool.name, scaling)
            scaling = replace(scaling, launches=(), end={}, drain={}, leave={})
        known = frozenset(row.machine_id for row in loaded.rows)
        for launch in scaling.launches:
            known = await self._plan(context, pool, launch, there.facts, known)
        by_id = {row.machine_id: row for row in loaded.rows}
        for name, why in scaling.end.items():
            await self._retire(context, by_id[name], why)
        for name, why in scaling.drain.items():
            await self._drain(context, by_id[name], why)
        movable = {name: why for name, why in there.staying.items() if name in scaling.room_for}
        if movable or scaling.leave:
            await self._move(context, {**scaling.leave, **movable})
        return bool(scaling.launch or scaling.end or scaling.drain)

    async def _move(self, context: PassContext, movable: Mapping[AllocationId, str]) -> None:
        """Ask what runs on machines that may be taken back, or are let go, to save and leave."""
        requests = [LeaveRequest(name, why) for name, why in sorted(movable.items())]
        for first in range(0, len(requests), AT_ONCE):
            async with context.transaction() as conn:
                await allocations.ask_to_leave(conn, requests[first : first + AT_ONCE], self._timeout_s)

    async def _plan(
        self,
        context: PassContext,
        pool: PoolSettings,
        launch: OfferLaunch,
        facts: Mapping[str, OfferFacts],
        known: frozenset[str],
    ) -> frozenset[str]:
        """Write the rows of a launch; the machines then. Raises Stale: there are others than those that are known."""
        why = f"rented for {', '.join(launch.wanted_by[:3])}" if launch.wanted_by else "min_instances asks for it"
        why += f": {launch.why}" if launch.why else ""
        new = ordered(pool, launch, facts, why, self._hashed_token)
        async with context.transaction() as conn:
            await machines.plan(conn, new, known)
        log.info("machines are rented", pool=pool.name, count=len(new), offer=launch.offer, reason=why)
        return known | {each.machine_id for each in new}

    def _hashed_token(self, machine_id: str) -> bytes:
        return token_hash(machine_token(self._secret, machine_id))

    async def _retire(self, context: PassContext, row: MachineRow, why: str) -> None:
        """End an idle machine, unless something was placed there meanwhile: its agent is closed in one transaction."""
        try:
            async with context.transaction() as conn:
                await agents.close_idle(conn, row.machine_id)
                await machines.happen(conn, row, MachineEvent.RETIRE, why)
                await offer_rests.end(conn, row.pool, row.offers, {RestCause.LACKS})
        except Stale:
            log.info("a machine is not ended: it was given work", machine=row.machine_id)

    async def _drain(self, context: PassContext, row: MachineRow, why: str) -> None:
        try:
            async with context.transaction() as conn:
                await agents.set_state(conn, row.machine_id, "DRAINING", why)
                await machines.happen(conn, row, MachineEvent.DRAIN, why)
        except Stale:
            log.info("a machine moved on before it was to take nothing new", machine=row.machine_id)

    async def _dismiss(self, context: PassContext, row: MachineRow) -> None:
        """Let it take nothing new, since a person wants it ended; the next pass asks what runs there to leave."""
        state = "DISABLED" if row.dismissal is Dismissal.NOW else "DRAINING"
        async with context.transaction() as conn:
            await agents.set_state_if_there(conn, row.machine_id, state, row.story)
            await machines.happen(conn, row, MachineEvent.DISMISS)

    async def _outlive(self, context: PassContext, row: MachineRow) -> bool:
        """Let a machine go whose time is nearly over, and at once when it is; whether it is asked for that only now."""
        pool = self._renting.get(row.pool)
        limit_s = _of(pool).max_run if pool is not None and place_of_pool(pool) == place_of(row) else None
        due = outlived(row.state, row.since_planned_s, limit_s, row.dismissal)
        if limit_s is None or due is Dismissal.NONE:
            return False
        at_once = due is Dismissal.NOW
        why = f"its time is {'over' if at_once else 'nearly over'} (max_run is {limit_s:g} s)"
        log.info("a machine is let go", machine=row.machine_id, reason=why)
        async with context.transaction() as conn:
            await agents.set_state_if_there(conn, row.machine_id, "DISABLED" if at_once else "DRAINING", why)
            await machines.dismiss(conn, row, due, why)
        if at_once:
            async with context.transaction() as conn:
                await agents.evict_from_disabled(conn, row.machine_id)
        return True

    async def _follow(self, context: PassContext, loaded: _Loaded) -> bool:
        """Go on with each machine that is not gone; whether any has moved."""
        by_id = {row.machine_id: row for row in loaded.rows if row.machine_id in loaded.standings}
        moved: list[str] = []

        async def handle(name: str) -> None:
            row = by_id[name]
            standing = loaded.standings[name]
            if await self._outlive(context, row):
                moved.append(name)
                return
            is_spent = used_up(loaded.budgets.get(row.pool, ())) is not None
            sighting = self._sightings.get(place_of(row), Sightings()).sighting(row)
            facts = facts_of(row, standing, self._renting.get(row.pool), sighting, is_spent=is_spent)
            step = next_step(facts)
            if step is not MachineStep.WAIT and await self._go_on(context, row, step, standing.notice):
                moved.append(name)

        await each(list(by_id), handle, loop=self.name, noun="machine")
        return bool(moved)

    async def _go_on(self, context: PassContext, row: MachineRow, step: MachineStep, notice: str) -> bool:
        """Do what comes next; whether the machine is in another state then. ``notice``: of its cloud."""
        match step:
            case MachineStep.SEND:
                return await self._send(context, row)
            case MachineStep.END:
                return await self._end(context, row)
            case MachineStep.REMOVE:
                return await self._remove(context, row)
            case MachineStep.RETIRE:
                await self._retire(context, row, row.story)
                return True
            case MachineStep.DRAIN:
                await self._drain(context, row, MachineEvent.WITHDRAW.value)
                return True
            case MachineStep.TAKE:
                seen = self._sightings[place_of(row)].of(row)
                assert seen is not None
                await self._answered(context, row, seen)
                return True
            case MachineStep.DISMISS:
                await self._dismiss(context, row)
                return True
        event = MachineEvent[step.name]
        seen = self._sightings[place_of(row)].of(row) if step is MachineStep.STOPPED else None
        why = notice if event is MachineEvent.NOTICE else (seen.story if seen is not None else "") or event.value
        if row.dismissal is not Dismissal.NONE and event in (MachineEvent.WITHDRAW, MachineEvent.CUT):
            why = row.story
        change = "a machine stays" if event is MachineEvent.STAY else "a machine did not stay"
        log.warning(change, machine=row.machine_id, reason=why)
        cause = RestCause.LACKS if event is MachineEvent.LACKS else None
        if row.state is MachineState.STARTING:
            cause = (seen.cause if seen is not None else None) or RestCause.NEVER_JOINED
        async with context.transaction() as conn:
            await machines.happen(conn, row, event, why)
            if cause is not None:
                await self._rest(conn, row, cause, why)
        if cause is not None:
            _count(row, cause)
        return True

    async def _rest(self, conn: Connection, row: MachineRow, cause: RestCause, story: str) -> None:
        """Nothing of its offer is rented for a while."""
        order = order_of(self._renting.get(row.pool), row, cause)
        if order is not None:
            await offer_rests.begin(conn, order, cause, story, row.planned_at)

    async def _send(self, context: PassContext, row: MachineRow) -> bool:
        if (place_of(row), MachineStep.SEND) in self._failed:
            return False
        offer = offer_named(self._renting[row.pool], row.offer)
        assert offer is not None
        offer = with_slots(offer, row.slots)
        token = machine_token(self._secret, row.machine_id)
        script = bootstrap_script(row.machine_id, row.pool, token, offer, await wheel_if_any())
        async with context.transaction() as conn:
            row = await machines.send(conn, row)
        try:
            seen = await self._provider(place_of(row)).launch(MachineOrder(row.machine_id, row.pool, offer, script))
        except ProviderAway as away:
            log.warning("nobody knows whether a machine was made", machine=row.machine_id, reason=str(away))
            counters.MACHINE_ORDERS.labels(row.pool, counters.UNSURE).inc()
            self._failed.add((place_of(row), MachineStep.SEND))
            await self._note(context, row, Trouble.UNANSWERED, away)
            return False
        except OrderRefused as refused:
            log.warning("the provider refused a machine", machine=row.machine_id, reason=str(refused))
            async with context.transaction() as conn:
                await machines.happen(conn, row, MachineEvent.REFUSED, str(refused))
                await self._rest(conn, row, refused.cause, str(refused))
            _count(row, refused.cause)
            return False
        await self._answered(context, row, seen)
        return True

    async def _answered(self, context: PassContext, row: MachineRow, seen: SeenMachine) -> None:
        story = noted(row.story, Trouble.UNANSWERED)
        async with context.transaction() as conn:
            await machines.happen(conn, row, MachineEvent.ANSWERED, story, seen.provider_id, seen.zone)
            if seen.made:
                await offer_rests.end(conn, row.pool, row.offers, set(RestCause) - NEVER)
        counters.MACHINE_ORDERS.labels(row.pool, counters.ANSWERED).inc()

    async def _end(self, context: PassContext, row: MachineRow) -> bool:
        if (place_of(row), MachineStep.END) in self._failed:
            return False
        async with context.transaction() as conn:
            row = await machines.note_end_sent(conn, row)
        try:
            await self._provider(place_of(row)).end([row.provider_id])
        except ProviderAway as away:
            log.warning("a machine could not be ended; it is tried again", machine=row.machine_id, reason=str(away))
            self._failed.add((place_of(row), MachineStep.END))
            await self._note(context, row, Trouble.UNENDED, away)
            return False
        await self._note(context, row, Trouble.UNENDED)
        return False

    async def _note(
        self, context: PassContext, row: MachineRow, trouble: Trouble, away: ProviderAway | None = None
    ) -> None:
        """Tell whoever looks at the machine what stands in its way, behind why it is as it is; None: nothing more."""
        story = noted(row.story, trouble, shown(str(away)) if away is not None else "")
        if story != row.story:
            try:
                async with context.transaction() as conn:
                    await machines.note(conn, row, story)
            except Stale:
                log.info("a machine moved on before what stands in its way was noted", machine=row.machine_id)

    async def _remove(self, context: PassContext, row: MachineRow) -> bool:
        """The provider says that it has ended: once nothing there counts as running, its agent is forgotten."""
        try:
            async with context.transaction() as conn:
                await agents.remove_if_there(conn, row.machine_id)
                await machines.happen(conn, row, MachineEvent.REMOVED)
        except (NotNow, Stale):
            return False
        log.info("a machine is gone", machine=row.machine_id, reason=row.story)
        return True

    def _provider(self, place: ProviderPlace) -> Provider:
        if place not in self._providers:
            self._providers[place] = self._open(place, self._cluster_id)
        return self._providers[place]

    def _due(self, loaded: _Loaded) -> float | None:
        """Seconds until the next pass: soon while something is under way, else when the first idle period is over."""
        strays = any(sightings.strays for sightings in self._sightings.values())
        if strays or any(row.state in _UNDER_WAY for row in loaded.rows):
            return BUSY_S
        left = [
            _of(self._renting[row.pool]).max_idle_agent_period - idle_s
            for row in loaded.rows
            if row.pool in self._renting and not _of(self._renting[row.pool]).advises
            if row.machine_id in loaded.standings
            if (idle_s := loaded.standings[row.machine_id].idle_s) is not None
        ]
        return max(0.5, min(left)) if left else None


def _count(row: MachineRow, cause: RestCause) -> None:
    """What became of an order; what had no row was never ordered."""
    if row.sent:
        counters.MACHINE_ORDERS.labels(row.pool, counters.failed_as(cause)).inc()


def _of(pool: PoolSettings) -> AnyProviderSettings:
    assert pool.provider is not None
    return pool.provider
