"""A master that rents, in virtual time: the real decisions (scheduler, demand, life of a machine, sightings, rests).

Rows are values, and clouds fail. A master that dies forgets what is in no row.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from functools import partial

from tenax.ids import AgentId, AllocationId
from tenax.lifecycle.machine import (
    ENDED,
    MachineEvent,
    MachineFacts,
    MachineState,
    MachineStep,
    after,
    next_step,
)
from tenax.lifecycle.machine_cost import MachineUse, PaidMachine
from tenax.lifecycle.offer import NEVER, RestCause, rest_s
from tenax.master.provision.port import OrderRefused, ProviderAway
from tenax.master.provision.sightings import Sightings
from tenax.scheduler.demand import MachineStage, OfferLaunch, RentedMachine, demand
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits
from tenax.scheduler.snapshot import AgentState, Phase, PoolRules
from tests.kits.builders.pool import agent
from tests.simulate.clouds import DAY_S, HOUR_S, NOTICE_S, Cloud, CloudMachine, CloudOffer
from tests.simulate.cluster import Cluster

#: Between two passes while something is under way, and until a machine that is silent is given up with what ran there.
PASS_S, SILENT_S = 15.0, 25.0
#: How long a machine may take to join.
STARTING_S = 1200.0
#: Work that is lost with a machine that nobody announced: since the last save.
SAVES_S = 600.0
_STAGES = {MachineState.JOINED: MachineStage.HERE, MachineState.LEAVING: MachineStage.LEAVING}
_STAGES[MachineState.ENDING] = MachineStage.ENDING


@dataclass
class Row:
    """As `tenax.master.store.machines.rows.MachineRow`, as far as it decides anything."""

    machine_id: str
    cloud: str
    offer: CloudOffer
    price: float
    planned_at: float
    changed_at: float
    state: MachineState = MachineState.PLANNED
    provider_id: str = ""
    sent: int = 0
    end_sent: int = 0
    rented_at: float | None = None
    ended_at: float | None = None
    idle_since: float = 0.0
    notice: bool = False
    #: Its agent was heard last; None: it is connected, or never was.
    lost_at: float | None = None
    uses: list[MachineUse] = field(default_factory=list)


@dataclass
class _Rest:
    cause: RestCause
    failures: int
    since: float
    until: float


class RentingCluster(Cluster):
    """A cluster without a machine of its own."""

    def __init__(self, offers: dict[str, list[CloudOffer]], limits: ScalingLimits, seed: int, until: float) -> None:
        """``offers`` by cloud, in their order."""
        super().__init__([], PoolRules(), saving=30.0)
        self._limits = limits
        self._chance = random.Random(f"master {seed}")
        self.clouds = {name: Cloud(name, seed, until, lambda: self.now, partial(self._made, name)) for name in offers}
        self._offers = {offer.name: (cloud, offer) for cloud, its in offers.items() for offer in its}
        self.rows: dict[str, Row] = {}
        self._sightings = {name: Sightings() for name in offers}
        self._rests: dict[str, _Rest] = {}
        self._failed: set[tuple[str, MachineStep]] = set()
        #: The master is up again then.
        self._dead_until = 0.0
        self._next_pass = math.inf
        #: What leaves a machine that its cloud takes back.
        self._returning: set[AllocationId] = set()
        self.most = 0
        self.passes = 0
        now = 0.0
        while (now := now + self._chance.expovariate(1 / DAY_S)) < until:
            self.at(now, self._die)

    # -- what happens -------------------------------------------------------------------------------------------

    def _die(self) -> None:
        self._sightings = {name: Sightings() for name in self.clouds}
        self._dead_until = self.now + self._chance.uniform(1, 300)
        self.at(self._dead_until, lambda: None)

    def _made(self, _cloud: str, machine: CloudMachine) -> None:
        if machine.up_at is not None:
            self.at(machine.up_at, partial(self._join, machine))
        if machine.taken_at is not None:
            if machine.has_notice:
                self.at(machine.taken_at - NOTICE_S, partial(self._announce, machine))
            self.at(machine.taken_at, partial(self._take, machine))

    def _runs(self, machine: CloudMachine) -> bool:
        return machine.ended is None or machine.ended > self.now

    def _join(self, machine: CloudMachine) -> None:
        row = self.rows[machine.machine_id]
        if not self._runs(machine) or row.provider_id not in ("", machine.id):
            return
        if self.now < self._dead_until or row.state in (MachineState.PLANNED, MachineState.ASKED):
            self.at(self.now + 5, partial(self._join, machine))
        elif row.state is MachineState.STARTING:
            self._happen(row, MachineEvent.JOIN)
            row.idle_since = self.now
            name = AgentId(row.machine_id)
            self.pool.agents[name] = agent(name, row.offer.slots, kind=DeviceKind.CUDA, rented=True)

    def _announce(self, machine: CloudMachine) -> None:
        row = self.rows[machine.machine_id]
        if self._runs(machine) and row.state is MachineState.JOINED and row.provider_id == machine.id:
            row.notice = True
            self._set_state(row, AgentState.DRAINING)
            for name in self._there(row):
                if self.pool.requests[name].phase is Phase.PLACED:
                    self._returning.add(name)
                    self.pool.requests[name] = replace(self.pool.requests[name], phase=Phase.RELEASING)
                    self._interrupt(name, "its machine is taken back")

    def _take(self, machine: CloudMachine) -> None:
        if not self._runs(machine):
            return
        machine.ended = self.now
        row = self.rows[machine.machine_id]
        if row.provider_id == machine.id and AgentId(row.machine_id) in self.pool.agents:
            row.lost_at = self.now
            self._set_state(row, AgentState.AWAY)
            self.at(self.now + SILENT_S, partial(self._lose, row))

    def _lose(self, row: Row) -> None:
        """What ran there begins again where it saved last."""
        for name in self._there(row):
            work = self.work[name]
            if self.pool.requests[name].phase is Phase.PLACED:
                held = self.now - work.since
                self._interrupt(name, "its machine is gone")
                work.left += min(held, held % SAVES_S + SILENT_S)
            self._requeue(name)

    # -- the books ------------------------------------------------------------------------------------------------

    def _let_go(self, name: AllocationId) -> None:
        super()._let_go(name)
        since, until = round(self.work[name].since * 1e6), round(self.now * 1e6)
        for member in self.pool.requests[name].members:
            self.rows[member.agent_id].uses.append(MachineUse(name, len(member.slots), since, until))

    def _finish(self, name: AllocationId) -> None:
        members = self.pool.requests[name].members
        super()._finish(name)
        self._note_idle([member.agent_id for member in members])

    def _requeue(self, name: AllocationId) -> None:
        members = self.pool.requests[name].members
        self.work[name].epoch += 1
        self._returning.discard(name)
        super()._requeue(name)
        self._note_idle([member.agent_id for member in members])

    def _note_idle(self, names: list[AgentId]) -> None:
        for name in names:
            if not self.pool.agents[name].in_use:
                self.rows[name].idle_since = self.now

    def paid(self, row: Row) -> PaidMachine | None:
        """None: nothing was paid for it."""
        if row.rented_at is None:
            return None
        ends = self.now if row.ended_at is None else row.ended_at
        return PaidMachine("default", row.offer.slots, row.price, round(row.rented_at * 1e6), round(ends * 1e6))

    # -- a pass ---------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self.now < self._dead_until:
            return
        super()._schedule()
        self._make_pass()
        super()._schedule()
        self.most = max(self.most, sum(row.state not in ENDED for row in self.rows.values()))

    def _make_pass(self) -> None:
        self.passes += 1
        self._failed.clear()
        self._look()
        self._decide()
        while [row for row in self._open() if self._go_on(row)]:
            pass
        due = self._due()
        if due is not None and not self.now < self._next_pass <= self.now + due:
            self._next_pass = self.now + due
            self.at(self._next_pass, lambda: None)

    def _open(self) -> list[Row]:
        return [row for row in self.rows.values() if row.state not in ENDED]

    def _look(self) -> None:
        by_cloud: dict[str, list[Row]] = {name: [] for name in self.clouds}
        for row in self._open():
            by_cloud[row.cloud].append(row)
        for name, rows in by_cloud.items():
            self._sightings[name].fresh = False
            if rows:
                try:
                    self._sightings[name].note(self.clouds[name].look(), rows)  # type: ignore[arg-type]
                except ProviderAway:
                    continue
                assert not self._sightings[name].strays, "a machine without a row"

    def _decide(self) -> None:
        offers = [
            MachineOffer(offer.name, offer.slots, price=offer.price.at(self.now)) for _, offer in self._offers.values()
        ]
        rests = {name: OfferRest(rest.until, rest.cause.value) for name, rest in self._rests.items()}
        machines = [self._rented(row) for row in self._open()]
        self.pool.at = self.now
        scaling = demand(self.pool.snapshot, offers, self._limits, machines, rests, frozenset(self._returning))
        for launch in scaling.launches:
            self._plan(launch)
        for name in scaling.end:
            row = self.rows[name]
            assert not self.pool.agents[name].in_use, "a machine with work was ended"
            self._set_state(row, AgentState.DRAINING)
            self._happen(row, MachineEvent.RETIRE)
        assert not scaling.drain

    def _plan(self, launch: OfferLaunch) -> None:
        cloud, offer = self._offers[launch.offer]
        for _ in range(launch.count):
            name = f"m-{len(self.rows)}"
            self.rows[name] = Row(name, cloud, offer, offer.price.at(self.now), self.now, self.now)

    def _rented(self, row: Row) -> RentedMachine:
        stage = MachineStage.LEAVING if row.notice else _STAGES.get(row.state, MachineStage.COMING)
        if row.state is MachineState.ENDING:
            stage = MachineStage.ENDING
        idle_s = self.now - row.idle_since if self._is_idle(row) else None
        return RentedMachine(
            AgentId(row.machine_id), stage, row.planned_at, idle_s, row.offer.name, row.offer.slots, row.price
        )

    def _due(self) -> float | None:
        rows = self._open()
        if any(row.state not in (MachineState.JOINED, MachineState.LEAVING) for row in rows):
            return PASS_S
        idle = [row.idle_since + self._limits.max_idle_s - self.now for row in rows if self._is_idle(row)]
        waits = any(each.phase is Phase.PENDING for each in self.pool.requests.values())
        rests = [rest.until - self.now for rest in self._rests.values() if rest.until > self.now] if waits else []
        lost = [60.0] if any(row.lost_at is not None for row in rows) else []
        return max(0.5, min([*idle, *rests, *lost])) if idle or rests or lost else None

    # -- a machine ------------------------------------------------------------------------------------------------

    def _there(self, row: Row) -> list[AllocationId]:
        """What has a part there."""
        return [
            name
            for name, request in self.pool.requests.items()
            if any(member.agent_id == row.machine_id for member in request.members)
        ]

    def _is_idle(self, row: Row) -> bool:
        there = self.pool.agents.get(AgentId(row.machine_id))
        return there is not None and row.lost_at is None and not there.in_use

    def _set_state(self, row: Row, state: AgentState) -> None:
        name = AgentId(row.machine_id)
        if name in self.pool.agents:
            self.pool.agents[name] = replace(self.pool.agents[name], state=state)

    def _happen(self, row: Row, event: MachineEvent) -> None:
        row.state, row.changed_at = after(row.state, event), self.now
        if row.state in ENDED:
            row.ended_at = self.now

    def _go_on(self, row: Row) -> bool:
        """Whether it is in another state then."""
        there = self.pool.agents.get(AgentId(row.machine_id))
        facts = MachineFacts(
            row.state,
            self._sightings[row.cloud].sighting(row),  # type: ignore[arg-type]
            self.now - row.changed_at,
            self.now - row.planned_at,
            STARTING_S,
            0.0 if row.lost_at is None else self.now - row.lost_at,
            there is not None and row.lost_at is None,
            self._is_idle(row),
            sent=row.sent,
            new=row.end_sent == 0,
            noticed=row.notice,
            takes_work=there is not None and there.state is AgentState.ENABLED,
        )
        step = next_step(facts)
        match step:
            case MachineStep.WAIT:
                return False
            case MachineStep.SEND:
                return self._send(row)
            case MachineStep.END:
                return self._end(row)
            case MachineStep.REMOVE:
                return self._remove(row)
            case MachineStep.TAKE:
                seen = self._sightings[row.cloud].of(row)  # type: ignore[arg-type]
                assert seen is not None
                return self._answered(row, seen.provider_id)
        was_starting = row.state is MachineState.STARTING
        self._happen(row, MachineEvent[step.name])
        if was_starting:
            self._rest(row, RestCause.NEVER_JOINED)
        return True

    def _send(self, row: Row) -> bool:
        if (row.cloud, MachineStep.SEND) in self._failed:
            return False
        if row.state is MachineState.PLANNED:
            self._happen(row, MachineEvent.SEND)
        row.sent, row.changed_at = row.sent + 1, self.now
        try:
            seen = self.clouds[row.cloud].launch(row.machine_id, row.offer)
        except ProviderAway:
            self._failed.add((row.cloud, MachineStep.SEND))
            return False
        except OrderRefused as refusal:
            self._happen(row, MachineEvent.REFUSED)
            self._rest(row, refusal.cause)
            return True
        # Now and then the master dies with the answer in its hands.
        if self._chance.random() < 0.01:
            self._die()
            return False
        return self._answered(row, seen.provider_id)

    def _answered(self, row: Row, provider_id: str) -> bool:
        self._happen(row, MachineEvent.ANSWERED)
        row.provider_id, row.rented_at = provider_id, self.now
        if row.offer.name in self._rests and self._rests[row.offer.name].cause not in NEVER:
            del self._rests[row.offer.name]
        return True

    def _end(self, row: Row) -> bool:
        if (row.cloud, MachineStep.END) in self._failed:
            return False
        row.end_sent, row.changed_at = row.end_sent + 1, self.now
        try:
            self.clouds[row.cloud].end(row.provider_id)
        except ProviderAway:
            self._failed.add((row.cloud, MachineStep.END))
        return False

    def _remove(self, row: Row) -> bool:
        if self._there(row):
            return False
        self.pool.agents.pop(AgentId(row.machine_id), None)
        self._happen(row, MachineEvent.REMOVED)
        return True

    def _rest(self, row: Row, cause: RestCause) -> None:
        known = self._rests.get(row.offer.name)
        failures = known.failures if known is not None and known.cause is cause else 0
        if known is not None and failures and cause not in NEVER and row.planned_at < known.since:
            return
        seconds = rest_s(cause, failures + 1)
        until = math.inf if seconds is None else self.now + seconds
        self._rests[row.offer.name] = _Rest(cause, failures + 1, self.now, until)
        if seconds is None:
            # Whoever runs the cluster looks after it.
            self.at(self.now + 6 * HOUR_S, lambda: self._rests.pop(row.offer.name, None) and None)
