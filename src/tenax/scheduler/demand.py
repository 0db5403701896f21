"""How many machines to rent for a pool, and which of those rented to let go: asked of the functions that schedule.

Rules:
- What is being released, or asked to leave, is taken for free; free slots and machines on their way are used first.
- A machine is rented where the planner would use it: for as many requests as it could place with all that may be
  rented, the fewest machines; carried out and asked again, nothing more is wanted.
- Never more machines than the limits say, those counted that are ending: they may still run.
- Only an idle machine is ended, the longest idle first: after the idle period, while more are left than there must be
  at least, and where the planner needs it for nothing that waits. Above the most, one that works takes nothing new.
- Whatever waits and could use a machine is told of the one that comes, or why none does.
- Under Determined's rule so many are rented as the slots of what waits make, whatever is free; all else is the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum

from tenax.display.plural import counted
from tenax.ids import AgentId, AllocationId, JobId, SlotId
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import Phase, PoolAgent, PoolPlan, PoolSnapshot, SlotRequest, applied


class MachineStage(str, Enum):
    """Where a rented machine is, as far as the decision goes."""

    #: Its agent has not said yet what it has.
    COMING = "COMING"
    HERE = "HERE"
    #: It takes nothing new, and is ended once it is idle.
    LEAVING = "LEAVING"
    ENDING = "ENDING"


@dataclass(frozen=True, slots=True)
class RentedMachine:
    """One of the machines that there are, or will be; its agent has the same id."""

    id: AgentId
    stage: MachineStage
    #: When it was planned, in seconds since 1970.
    since: float = 0.0
    #: For how many seconds it has had nothing to do; None: it works.
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class MachineOffer:
    """What may be rented."""

    #: For people: ``g5.12xlarge in us-west-2``.
    name: str
    slots: int
    kind: DeviceKind = DeviceKind.CUDA
    #: Places for requests of zero slots.
    aux_places: int = 100

    def agents(self, count: int) -> tuple[PoolAgent, ...]:
        """The agents of so many machines, with nothing on them."""
        slots = tuple(SlotId(number) for number in range(self.slots))
        return tuple(
            PoolAgent(AgentId(f"a machine ({number})"), slots, aux_places=self.aux_places, kind=self.kind, rented=True)
            for number in range(count)
        )


@dataclass(frozen=True, slots=True)
class ScalingLimits:
    """How many machines there may be, and by which rule."""

    min_instances: int = 0
    max_instances: int = 5
    max_idle_s: float = 1200.0
    #: Determined's rule instead of the planner.
    by_slots: bool = False


@dataclass(frozen=True, slots=True)
class OfferRest:
    """Nothing is rented for a while."""

    #: In seconds since 1970.
    until: float
    why: str


@dataclass(frozen=True, slots=True)
class Scaling:
    """What to do, and why. `wanted_by`: the requests that machines are rented for."""

    launch: int = 0
    wanted_by: tuple[AllocationId, ...] = ()
    #: End these, which are idle; the reason is for people.
    end: Mapping[AgentId, str] = field(default_factory=dict)
    #: Let these take nothing new.
    drain: Mapping[AgentId, str] = field(default_factory=dict)
    #: Which machine comes for a request that waits, as its reason.
    coming_for: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Why none comes, for a request that could use one: what is added to its reason.
    none_for: Mapping[AllocationId, str] = field(default_factory=dict)

    def explained(self, waiting: Mapping[AllocationId, str]) -> dict[AllocationId, str]:
        """The reasons of a plan, with what becomes of machines."""
        return {
            name: self.coming_for.get(name) or (f"{reason}; {self.none_for[name]}" if name in self.none_for else reason)
            for name, reason in waiting.items()
        }


def demand(
    snapshot: PoolSnapshot,
    offer: MachineOffer,
    limits: ScalingLimits,
    machines: Sequence[RentedMachine],
    rest: OfferRest | None = None,
) -> Scaling:
    """What to do now. ``machines``: all of this pool that are not known to be gone; ``rest`` may be over."""
    settled = _settled(snapshot)
    coming = [each for each in machines if each.stage is MachineStage.COMING]
    lasting = sum(each.stage in (MachineStage.COMING, MachineStage.HERE) for each in machines)
    room = max(0, limits.max_instances - len(machines))
    course = _Course(settled, offer, len(coming))
    rests = rest is not None and rest.until > snapshot.at
    if limits.by_slots:
        desired = desired_new(snapshot, offer.slots, offer.aux_places) - len(coming)
    else:
        desired = course.fewest(room) - len(coming)
    count = 0 if rests else launch_count(desired, lasting, len(machines), limits)
    end, drain = retired(machines, limits, course.needed(len(coming) + count))
    coming_for = course.coming_for(coming, count)
    none_for = {} if count else _none_for(course, snapshot, limits, len(machines), coming_for, rest if rests else None)
    new = course.placed(len(coming) + count) - course.placed(len(coming))
    return Scaling(count, tuple(sorted(new)), end, drain, coming_for, none_for)


def launch_count(desired: int, lasting: int, present: int, limits: ScalingLimits) -> int:
    """How many to rent: those that are desired beyond what comes, at least up to the fewest, at most up to the most.

    ``lasting``: machines that are to stay; ``present``: those that are not gone, ending ones counted.
    """
    return max(0, min(max(limits.min_instances - lasting, desired), limits.max_instances - present))


def desired_new(snapshot: PoolSnapshot, slots_per_machine: int, aux_places: int) -> int:
    """How many machines Determined would have for what waits, whatever is free.

    Requests of slots count where one machine has enough, or whole machines make them; those of a job together at most
    its ``max_slots``. Those without slots fill auxiliary places.
    """
    slots: dict[JobId, int] = defaultdict(int)
    without = 0
    for request in snapshot.requests:
        if request.phase is Phase.PENDING:
            without += request.slots == 0
            if slots_per_machine and (request.slots <= slots_per_machine or request.slots % slots_per_machine == 0):
                slots[request.job_id] += request.slots
    caps = {job: snapshot.jobs[job].max_slots for job in slots}
    total = sum(count if (cap := caps[job]) is None else min(cap, count) for job, count in slots.items())
    by_places = math.ceil(without / aux_places) if aux_places else 0
    return max(by_places, math.ceil(total / slots_per_machine) if slots_per_machine else 0)


def is_idle(agent: PoolAgent) -> bool:
    """Whether nothing runs there, nor holds a place."""
    return not agent.in_use and not agent.aux_in_use


def retired(
    machines: Iterable[RentedMachine], limits: ScalingLimits, needed: frozenset[AgentId] = frozenset()
) -> tuple[dict[AgentId, str], dict[AgentId, str]]:
    """Those to end, which are idle, and those that are to take nothing new; each with the reason."""
    here = [each for each in machines if each.stage is MachineStage.HERE]
    left = len(here) + sum(each.stage is MachineStage.COMING for each in machines)
    idle = sorted((each for each in here if each.idle_s is not None), key=lambda each: (-(each.idle_s or 0), each.id))
    end: dict[AgentId, str] = {}
    for each in idle:
        if each.id not in needed and (each.idle_s or 0) >= limits.max_idle_s and left > limits.min_instances:
            end[each.id] = f"idle for {_span(limits.max_idle_s)} (max_idle_agent_period)"
            left -= 1
    drain: dict[AgentId, str] = {}
    above = f"there are more machines than max_instances ({limits.max_instances})"
    busy = sorted((each for each in here if each.idle_s is None), key=lambda each: (-each.since, each.id))
    for each in [*idle, *busy]:
        if left > limits.max_instances and each.id not in end:
            (drain if each.idle_s is None else end)[each.id] = above
            left -= 1
    return end, drain


class _Course:
    """What the planner makes of the pool with so many machines more. Mutable; one call owns it."""

    def __init__(self, snapshot: PoolSnapshot, offer: MachineOffer, coming: int) -> None:
        self.snapshot = snapshot
        self.offer = offer
        self._coming = coming
        self._plans: dict[int, PoolPlan] = {}

    def placed(self, count: int) -> frozenset[AllocationId]:
        """What could start with so many machines."""
        return frozenset(self._plan(count).placements)

    def needed(self, count: int) -> frozenset[AgentId]:
        """Agents on which something is placed with so many machines."""
        return frozenset(each.agent_id for members in self._plan(count).placements.values() for each in members)

    def fewest(self, room: int) -> int:
        """The fewest machines with which all starts that could with those that come and ``room`` more."""
        low, high = self._coming, self._coming + room
        most = self.placed(high)
        if most <= self.placed(low):
            return low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if most <= self.placed(middle) else (middle, high)
        imaginary = {each.id for each in self.offer.agents(high)}
        while (used := len(self.needed(high) & imaginary)) < high:
            high = used
        return high

    def coming_for(self, coming: Sequence[RentedMachine], count: int) -> dict[AllocationId, str]:
        """Of each request that waits for one of these machines, or of ``count`` more."""
        now, with_coming = self.placed(0), self.placed(len(coming))
        since = min((each.since for each in coming), default=0.0)
        reasons = dict.fromkeys(
            sorted(with_coming - now), f"waits for a machine: {self.offer.name}, asked for at {_clock(since)}"
        )
        more = self.placed(len(coming) + count) - with_coming - now
        return reasons | dict.fromkeys(
            sorted(more), f"waits for a machine: {self.offer.name}, which is being asked for"
        )

    def _plan(self, count: int) -> PoolPlan:
        if count not in self._plans:
            agents = (*self.snapshot.agents, *self.offer.agents(count))
            self._plans[count] = plan(replace(self.snapshot, agents=agents))
        return self._plans[count]


def _none_for(
    course: _Course,
    snapshot: PoolSnapshot,
    limits: ScalingLimits,
    present: int,
    coming_for: Mapping[AllocationId, str],
    rest: OfferRest | None,
) -> dict[AllocationId, str]:
    if rest is not None:
        why = f"no machine is rented for it before {_clock(rest.until)}: {rest.why}"
    elif present >= limits.max_instances:
        why = f"no machine is rented for it: there are {present}, and max_instances is {limits.max_instances}"
    else:
        return {}
    rented = replace(snapshot, agents=course.offer.agents(limits.max_instances), prospects=())
    now = course.placed(0)
    return {
        each.allocation_id: why
        for each in snapshot.requests
        if each.phase is Phase.PENDING and each.allocation_id not in now and each.allocation_id not in coming_for
        if _could_run(each, rented)
    }


def _could_run(request: SlotRequest, snapshot: PoolSnapshot) -> bool:
    cap = snapshot.jobs[request.job_id].max_slots
    unmet = can_never_fit(
        request.slots, snapshot, single_node=request.single_node, max_slots=cap, constraints=request.constraints
    )
    return unmet is None


def _settled(snapshot: PoolSnapshot) -> PoolSnapshot:
    """The pool once everything has left that was asked to, or will be."""
    settled = _released(snapshot)
    while leaving := plan(settled).preempt:
        settled = _released(applied(settled, PoolPlan(preempt=leaving)))
    return settled


def _released(snapshot: PoolSnapshot) -> PoolSnapshot:
    slots: dict[AgentId, set[SlotId]] = defaultdict(set)
    places: dict[AgentId, int] = defaultdict(int)
    for request in snapshot.requests:
        if request.phase is Phase.RELEASING:
            for member in request.members:
                slots[member.agent_id].update(member.slots)
                places[member.agent_id] += not member.slots
    agents = tuple(
        replace(each, in_use=each.in_use - slots[each.id], aux_in_use=each.aux_in_use - places[each.id])
        for each in snapshot.agents
    )
    requests = tuple(each for each in snapshot.requests if each.phase is not Phase.RELEASING)
    return replace(snapshot, agents=agents, requests=requests)


def _clock(at: float) -> str:
    """To the same state belong the same words: an instant, and not how long ago it was."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S UTC")


def _span(seconds: float) -> str:
    return counted(round(seconds / 60), "minute") if seconds >= 120 else f"{seconds:g} s"
