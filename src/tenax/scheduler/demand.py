"""How many machines to rent for a pool, and which of those rented to let go: asked of the functions that schedule.

Rules:
- What is being released, or asked to leave, is taken for free; free slots and machines on their way are used first.
- What leaves a machine that its cloud ends counts as waiting from then on: another is rented while it saves.
- A machine is rented where the planner would use it, for the most urgent work that an offer serves; carried out and
  asked again, nothing more is wanted (`tenax.scheduler.fleets`).
- Never more machines than the limits say, nor for more money, those counted that are ending: they may still run.
- Where the money of a month is spent nothing is rented, and where that stops machines they take nothing new, and what
  can be preempted is asked to leave them.
- Only an idle machine is ended, the longest idle first: after the idle period, while more are left than there must be
  at least, and where the planner needs it for nothing that waits. Above the most, one that works takes nothing new.
- Whatever waits and could use a machine is told of the one that comes, or why none does.
- Where it is only said what would be done, nothing waits for what would be rented: it is told of it.
- Under Determined's rule so many are rented as the slots of what waits make, whatever is free; all else is the same.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from tenax.display.plural import counted
from tenax.ids import AgentId, AllocationId, JobId, SlotId
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.fleets import Course
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits, clock, most_machines, not_used
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
    #: What it was rented by; of one that is none any more, `slots` say how many it has.
    offer: str = ""
    slots: int = 0
    #: What it costs per hour, as far as is known.
    price: float | None = None


@dataclass(frozen=True, slots=True)
class OfferLaunch:
    """Machines of one offer that are to be rented."""

    offer: str
    count: int
    #: The requests that they are rented for; none: there are to be so many at least.
    wanted_by: tuple[AllocationId, ...] = ()
    #: Why of this offer; empty where there is no other.
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What to do, and why."""

    launches: tuple[OfferLaunch, ...] = ()
    #: End these, which are idle; the reason is for people.
    end: Mapping[AgentId, str] = field(default_factory=dict)
    #: Let these take nothing new.
    drain: Mapping[AgentId, str] = field(default_factory=dict)
    #: Which machine comes for a request that waits, as its reason.
    coming_for: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Why none comes, for a request that could use one: what is added to its reason.
    none_for: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Why an offer is not used now, by offer.
    not_used: Mapping[str, str] = field(default_factory=dict)
    #: Ask these to save and leave their machines.
    leave: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Of what is to go on elsewhere that for which there is room now.
    room_for: frozenset[AllocationId] = frozenset()

    @property
    def launch(self) -> int:
        """How many are rented."""
        return sum(each.count for each in self.launches)

    @property
    def wanted_by(self) -> tuple[AllocationId, ...]:
        """The requests that machines are rented for."""
        return tuple(sorted({name for each in self.launches for name in each.wanted_by}))

    def explained(self, waiting: Mapping[AllocationId, str]) -> dict[AllocationId, str]:
        """The reasons of a plan, with what becomes of machines."""
        return {
            name: self.coming_for.get(name) or (f"{reason}; {self.none_for[name]}" if name in self.none_for else reason)
            for name, reason in waiting.items()
        }


def demand(
    snapshot: PoolSnapshot,
    offers: Sequence[MachineOffer],
    limits: ScalingLimits,
    machines: Sequence[RentedMachine],
    rests: Mapping[str, OfferRest] | None = None,
    returning: frozenset[AllocationId] = frozenset(),
) -> Scaling:
    """What to do now. ``machines``: all of this pool that are not known to be gone; ``rests`` of offers may be over.

    ``returning``: what leaves a machine that its cloud ends, or is to, and goes on elsewhere.
    """
    as_it_is = snapshot
    snapshot = _returned(snapshot, returning) if returning else snapshot
    unusable = not_used(offers, rests or {}, snapshot.at)
    usable = [index for index, offer in enumerate(offers) if offer.name not in unusable and not limits.spent]
    shapes, coming = _coming(offers, machines)
    present = sum(each.price or 0.0 for each in machines)
    room = max(0, limits.max_instances - len(machines))
    money = None if limits.max_cost is None else max(0.0, limits.max_cost - present)
    settled = _released(snapshot)
    while (course := Course(settled, shapes, coming, usable, room, money)).leaving:
        settled = _released(applied(settled, PoolPlan(preempt=course.leaving)))
    fleet = _fleet(course, snapshot, shapes, limits, machines)
    end, drain = retired(machines, limits, course.needed(fleet))
    since = [each for each in machines if each.stage is MachineStage.COMING]
    coming_for, new_for = _coming_for(course, shapes, since), _new_for(course, shapes, fleet)
    why_none = _WhyNone(course, snapshot, shapes[: len(offers)], limits, len(machines), present, unusable)
    none_for = why_none.by_request(fleet, frozenset({*coming_for, *new_for}))
    return Scaling(
        _launches(course, shapes, fleet, cheapest=limits.cheapest),
        end,
        drain,
        coming_for if limits.advises else dict(sorted({**coming_for, **_comes(new_for)}.items())),
        {**none_for, **_is_advised(new_for)} if limits.advises else none_for,
        unusable,
        _leaving(as_it_is, limits, machines),
        returning & course.placed(course.none),
    )


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
    if limits.spent and limits.stops:
        end |= {each.id: limits.spent for each in idle if each.id not in end}
        drain |= {each.id: limits.spent for each in busy if each.id not in drain}
    return end, drain


def _leaving(
    snapshot: PoolSnapshot, limits: ScalingLimits, machines: Iterable[RentedMachine]
) -> dict[AllocationId, str]:
    """What runs on rented machines and can be preempted, where the money that is spent stops them."""
    if not limits.spent or not limits.stops:
        return {}
    rented = {each.id for each in machines}
    return {
        each.allocation_id: limits.spent
        for each in snapshot.requests
        if each.phase is Phase.PLACED and each.preemptible and any(it.agent_id in rented for it in each.members)
    }


def _coming(
    offers: Sequence[MachineOffer], machines: Sequence[RentedMachine]
) -> tuple[tuple[MachineOffer, ...], tuple[int, ...]]:
    """The offers, with those behind them by which something comes that are none any more; how many of each come."""
    shapes = {offer.name: offer for offer in offers}
    counts: Counter[str] = Counter()
    for machine in machines:
        if machine.stage is MachineStage.COMING:
            shapes.setdefault(machine.offer, replace(offers[0], name=machine.offer, slots=machine.slots))
            counts[machine.offer] += 1
    return tuple(shapes.values()), tuple(counts[name] for name in shapes)


def _fleet(
    course: Course,
    snapshot: PoolSnapshot,
    shapes: Sequence[MachineOffer],
    limits: ScalingLimits,
    machines: Sequence[RentedMachine],
) -> tuple[int, ...]:
    """What comes and what is to be rented: for what waits, and that there are as many as there must be."""
    fleet = course.coming if limits.by_slots else course.chosen(course.coming, cheapest=limits.cheapest)
    if not course.usable:
        return fleet
    index = course.usable[0]
    if limits.cheapest:
        index = min(course.usable, key=lambda it: shapes[it].price or 0.0)
    lasting = sum(each.stage in (MachineStage.COMING, MachineStage.HERE) for each in machines)
    desired = sum(fleet) - sum(course.coming)
    if limits.by_slots:
        desired = desired_new(snapshot, shapes[index].slots, shapes[index].aux_places) - sum(course.coming)
    more = launch_count(desired, lasting, len(machines), limits) - (sum(fleet) - sum(course.coming))
    more = max(0, min(more, course.most(fleet, index)))
    fleet = (*fleet[:index], fleet[index] + more, *fleet[index + 1 :])
    # With those that there must be in any case the planner may use others.
    return fleet if limits.by_slots or not more else course.chosen(fleet, cheapest=limits.cheapest)


def _launches(
    course: Course, shapes: Sequence[MachineOffer], fleet: tuple[int, ...], *, cheapest: bool
) -> tuple[OfferLaunch, ...]:
    now = course.placed(course.none) | course.placed(course.coming)
    served: dict[int, list[AllocationId]] = defaultdict(list)
    for name, index in course.places(fleet, course.coming).items():
        if name not in now:
            served[index].append(name)
    why = "of what may be rented it costs least" if cheapest else "of what may be rented it is the first that serves"
    return tuple(
        OfferLaunch(
            shapes[index].name, fleet[index] - there, tuple(sorted(served[index])), why if len(shapes) > 1 else ""
        )
        for index, there in enumerate(course.coming)
        if fleet[index] > there
    )


def _coming_for(
    course: Course, shapes: Sequence[MachineOffer], coming: Sequence[RentedMachine]
) -> dict[AllocationId, str]:
    """Of each request that waits for a machine that comes."""
    now = course.placed(course.none)
    since = {each.offer: min(it.since for it in coming if it.offer == each.offer) for each in coming}
    reasons = {}
    for name, index in course.places(course.coming, course.none).items():
        offer = shapes[index].name
        if name not in now:
            reasons[name] = f"waits for a machine: {offer}, asked for at {clock(since[offer])}"
    return dict(sorted(reasons.items()))


def _new_for(course: Course, shapes: Sequence[MachineOffer], fleet: tuple[int, ...]) -> dict[AllocationId, str]:
    """The offer of the machine that is to be rented, by request that it is for."""
    there = course.placed(course.none) | course.placed(course.coming)
    places = course.places(fleet, course.coming)
    return {name: shapes[index].name for name, index in sorted(places.items()) if name not in there}


def _comes(new_for: Mapping[AllocationId, str]) -> dict[AllocationId, str]:
    return {name: f"waits for a machine: {offer}, which is being asked for" for name, offer in new_for.items()}


def _is_advised(new_for: Mapping[AllocationId, str]) -> dict[AllocationId, str]:
    return {
        name: f"no machine is rented for it: one of {offer} would be, and with scaling: advise people rent them"
        for name, offer in new_for.items()
    }


@dataclass(frozen=True, slots=True)
class _WhyNone:
    """Why no machine is rented for what could use one."""

    course: Course
    snapshot: PoolSnapshot
    offers: Sequence[MachineOffer]
    limits: ScalingLimits
    #: Machines that there are, and what they cost per hour.
    present: int
    cost: float
    not_used: Mapping[str, str]

    def by_request(self, fleet: tuple[int, ...], served: frozenset[AllocationId]) -> dict[AllocationId, str]:
        """Of those that wait and get none, which are not ``served``."""
        now = self.course.placed(self.course.none)
        empty = [(each, self._alone(each)) for each in self.offers]
        reasons = {}
        known: dict[tuple[object, ...], str] = {}
        for request in self.snapshot.requests:
            name = request.allocation_id
            if request.phase is Phase.PENDING and name not in now and name not in served:
                kind = *request.kind, self.snapshot.jobs[request.job_id].max_slots
                if kind not in known:
                    known[kind] = self._why([each for each, alone in empty if _could_run(request, alone)], fleet, name)
                if known[kind]:
                    reasons[name] = f"no machine is rented for it: {known[kind]}"
        return reasons

    def _alone(self, offer: MachineOffer) -> PoolSnapshot:
        """The pool with nothing but as many machines of an offer as there may ever be."""
        agents = offer.agents(most_machines(offer, self.limits.max_instances, self.limits.max_cost))
        return replace(self.snapshot, agents=agents, prospects=())

    def _why(self, serving: Sequence[MachineOffer], fleet: tuple[int, ...], name: AllocationId) -> str:
        """For one that these offers could serve."""
        if not serving or self.limits.spent:
            return self.limits.spent if serving else ""
        rest = [self.not_used[each.name] for each in serving if each.name in self.not_used]
        left = [each for each in serving if each.name not in self.not_used]
        there = self.present + sum(fleet) - sum(self.course.coming)
        most, money = self.limits.max_instances, self.limits.max_cost
        if left and there >= most:
            rest.append(f"there are {there}, and max_instances is {most}")
        elif left and money is not None and any(self._cost_with(fleet) + (each.price or 0.0) > money for each in left):
            rest.append(f"there are some for {self._cost_with(fleet):g} per hour, and max_cost_per_hour is {money:g}")
        elif any(name in self._without_limits(fleet, each) for each in left):
            rest.append(f"it takes more than may be added to the {there} that there are: max_instances is {most}")
            if money is not None:
                rest[-1] += f", max_cost_per_hour {money:g}"
        return "; ".join(rest)

    def _cost_with(self, fleet: tuple[int, ...]) -> float:
        new = zip(fleet, self.course.coming, self.course.offers, strict=True)
        return self.cost + sum((count - there) * (offer.price or 0.0) for count, there, offer in new)

    def _without_limits(self, fleet: tuple[int, ...], offer: MachineOffer) -> frozenset[AllocationId]:
        """What could start with as many machines more as there may ever be."""
        index = self.course.offers.index(offer)
        more = fleet[index] + self.limits.max_instances
        return self.course.placed((*fleet[:index], more, *fleet[index + 1 :]))


def _could_run(request: SlotRequest, snapshot: PoolSnapshot) -> bool:
    cap = snapshot.jobs[request.job_id].max_slots
    unmet = can_never_fit(
        request.slots, snapshot, single_node=request.single_node, max_slots=cap, constraints=request.constraints
    )
    return unmet is None


def _returned(snapshot: PoolSnapshot, returning: frozenset[AllocationId]) -> PoolSnapshot:
    """The pool once these have left, and wait."""
    there = [each for each in snapshot.requests if each.allocation_id in returning and each.phase is not Phase.PENDING]
    leaving = {each.allocation_id for each in there}
    requests = tuple(
        replace(each, phase=Phase.RELEASING) if each.allocation_id in leaving else each for each in snapshot.requests
    )
    left = _released(replace(snapshot, requests=requests))
    return replace(left, requests=(*left.requests, *(replace(each, phase=Phase.PENDING, members=()) for each in there)))


def _released(snapshot: PoolSnapshot) -> PoolSnapshot:
    """The pool once everything has left that was asked to."""
    if all(request.phase is not Phase.RELEASING for request in snapshot.requests):
        return snapshot
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


def _span(seconds: float) -> str:
    return counted(round(seconds / 60), "minute") if seconds >= 120 else f"{seconds:g} s"
