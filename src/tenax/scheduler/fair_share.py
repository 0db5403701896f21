"""The fair-share policy: the slots of a pool are divided among its jobs, by weight.

Rules:
- What a job asks for is the sum of its requests, up to its ``max_slots``. A request that would not fit the pool with
  nothing running counts for nothing, and stands in nobody's way.
- Slots are dealt out in rounds, to those who ask for least first, then in the order of the queue: of what a round began
  with each gets the part that its weight is of the weights of those who want more, at least one.
- What is left of a share when its requests are taken from it, in their order, goes to others that can use it: a request
  for each that could start none, then one for each in turn, in the order of the queue. A job that can start nothing
  even so changes nothing between the others.
- Jobs that are bound to some of the machines, by their constraints, share these first: more counts for none. Where
  somebody waits for them, who holds them leaves first.
- What limits of quotas leave goes to the jobs that share them in the order of the queue.
- A job never gets less than what it holds and cannot be asked to give back.
- What holds more than its share is asked to leave, the earliest of its requests first, until it does not. What waits
  starts in the order of asking, as far as it is within the share of its job.
- Requests without slots start in the order of the queue, apart from all this.
- With ``reservation`` places are kept for the first request within its share that does not fit, as elsewhere.
Shares depend on what is asked for, not on who was there first: what was asked to leave and asks again gets no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tenax.ids import AgentId, AllocationId, JobId, SlotId
from tenax.scheduler import reasons
from tenax.scheduler.holdings import Holdings
from tenax.scheduler.places import Places
from tenax.scheduler.policy import Placer, arrival_key, planned
from tenax.scheduler.snapshot import AgentState, Constraints, Phase, PlacedMember, PoolPlan, PoolSnapshot, SlotRequest

#: So many claims that keep more than their share are looked at alone; each costs a division of all.
_ONE_BY_ONE = 50


class FairShare:
    """To each job its share."""

    name: ClassVar[str] = "fair_share"
    in_turns: ClassVar[bool] = False
    always_preempts: ClassVar[bool] = True
    counts_attained: ClassVar[bool] = False

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        """One pass over the pool."""
        return _Pass(snapshot, self.order(snapshot)).plan()

    def placer(self, snapshot: PoolSnapshot) -> Placer:
        """Plan after plan."""
        return lambda agents: self.plan(replace(snapshot, agents=agents))

    def changes_at(self, snapshot: PoolSnapshot) -> float | None:
        """Never."""
        return None

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        """By the turn that quotas give, queue position and time of asking."""
        return tuple(sorted(snapshot.requests, key=lambda request: arrival_key(snapshot, request)))


@dataclass(frozen=True, slots=True)
class Claim:
    """What one job asks of the slots there are."""

    job: JobId
    weight: float
    #: The slots of its requests, in their order.
    sizes: tuple[int, ...]
    #: The most that it may have.
    cap: int | None = None
    #: Slots that it cannot be asked to give back; and of its requests the sizes that they are made of.
    kept: int = 0
    kept_sizes: tuple[int, ...] = ()

    @property
    def demand(self) -> int:
        """Slots that it could use."""
        return min(sum(self.sizes), self.cap) if self.cap is not None else sum(self.sizes)


def divide(claims: Iterable[Claim], capacity: int) -> dict[JobId, int]:
    """The share of each claim, in slots; they come in the order of the queue."""
    queue = whole = list(claims)
    fixed: dict[JobId, int] = {}
    while True:
        shares = _natural(queue, capacity)
        short = [claim for claim in queue if shares[claim.job] < claim.kept]
        if not short:
            apart = [claim for claim in whole if claim.job in fixed]
            return {**_with_left(apart, fixed, capacity - sum(shares.values())), **shares}
        # One by one, first those that no share would do for: with what is left the others may have enough.
        short.sort(key=lambda claim: claim.demand - claim.kept)
        set_apart = {claim.job: claim.kept for claim in (short if len(fixed) > _ONE_BY_ONE else short[:1])}
        fixed.update(set_apart)
        capacity = max(0, capacity - sum(set_apart.values()))
        queue = [claim for claim in queue if claim.job not in set_apart]


def _with_left(apart: Iterable[Claim], fixed: Mapping[JobId, int], spare: int) -> dict[JobId, int]:
    """What those have who were set apart, and what they can use beside it of what nobody else can."""
    shares = dict(fixed)
    for claim in apart:
        beyond = Counter(claim.sizes) - Counter(claim.kept_sizes)
        for size in claim.sizes:
            if beyond[size] and size <= spare and (claim.cap is None or shares[claim.job] + size <= claim.cap):
                beyond[size] -= 1
                shares[claim.job] += size
                spare -= size
    return shares


def _natural(queue: list[Claim], capacity: int) -> dict[JobId, int]:
    """The shares if everything could be taken back."""
    shares: dict[JobId, int] = {claim.job: 0 for claim in queue}
    served = [claim for claim in queue if claim.demand > 0]
    while True:
        shares.update(_handed_on(served, *_dealt(served, capacity)))
        empty = [claim for claim in served if shares[claim.job] == 0]
        if not empty:
            break
        # Dealt out anew without those: who could start nothing changes nothing between the others.
        served = [claim for claim in served if shares[claim.job] > 0]
    spare = capacity - sum(shares.values())
    for claim in queue:
        size = claim.sizes[0] if claim.sizes else 0
        if shares[claim.job] == 0 and 0 < size <= spare and (claim.cap is None or size <= claim.cap):
            shares[claim.job] = size
            spare -= size
    return shares


def _dealt(queue: list[Claim], capacity: int) -> tuple[dict[JobId, int], int]:
    """What each gets until nothing is left or nobody wants more; and what is left."""
    shares = {claim.job: 0 for claim in queue}
    demands = {claim.job: claim.demand for claim in queue}
    wanting = sorted((claim for claim in queue if demands[claim.job] > 0), key=lambda claim: demands[claim.job])
    # However large weights are, their sum is a number.
    greatest = max((claim.weight for claim in queue), default=0.0) or 1.0
    parts = {claim.job: claim.weight / greatest for claim in queue}
    while capacity > 0 and wanting:
        whole = sum(parts[claim.job] for claim in wanting)
        begun = capacity
        for claim in wanting:
            part = int(begun * (parts[claim.job] / whole)) if whole > 0 else 1
            given = min(max(1, part), demands[claim.job] - shares[claim.job], capacity)
            shares[claim.job] += given
            capacity -= given
            if capacity == 0:
                break
        wanting = [claim for claim in wanting if shares[claim.job] < demands[claim.job]]
    return shares, capacity


def _handed_on(queue: list[Claim], dealt: Mapping[JobId, int], spare: int) -> dict[JobId, int]:
    """The shares after what is of no use to one was given to others."""
    shares: dict[JobId, int] = {}
    others: list[tuple[Claim, list[int]]] = []
    for claim in queue:
        used, beyond = 0, list[int]()
        for size in claim.sizes:
            if used + size <= dealt[claim.job]:
                used += size
            else:
                beyond.append(size)
        spare += dealt[claim.job] - used
        shares[claim.job] = used
        if beyond:
            others.append((claim, beyond[::-1]))
    # Those that could start nothing, before all; a stable order keeps that of the queue.
    others.sort(key=lambda other: shares[other[0].job] > 0)
    while others and spare > 0:
        for claim, beyond in others:
            size = beyond.pop()
            if size <= spare and (claim.cap is None or shares[claim.job] + size <= claim.cap):
                shares[claim.job] += size
                spare -= size
        others = [(claim, beyond) for claim, beyond in others if beyond]
    return shares


class _Pass:
    """What one pass has decided so far."""

    def __init__(self, snapshot: PoolSnapshot, order: tuple[SlotRequest, ...]) -> None:
        self.snapshot = snapshot
        self.order = order
        self.places = Places(snapshot)
        self.placements: dict[AllocationId, tuple[PlacedMember, ...]] = {}
        self.preempt: dict[AllocationId, str] = {}
        self.causes: dict[AllocationId, reasons.Cause] = {}
        self.reserved: reasons.Reserved | None = None
        self.holdings = Holdings(snapshot)
        self.capacity = _capacity(snapshot)
        #: What waits for slots and could start if nothing ran.
        self.possible = {
            request.allocation_id
            for request in order
            if request.phase is Phase.PENDING and request.slots > 0 and self._is_possible(request)
        }
        #: Slots that those are bound to who wait within their share, by their constraints; and whether all of them are.
        self.bound_to = frozenset[tuple[AgentId, SlotId]]()
        self.all_bound = False
        self.of_job: dict[JobId, list[SlotRequest]] = {}
        for request in order:
            if request.slots > 0:
                self.of_job.setdefault(request.job_id, []).append(request)

    def plan(self) -> PoolPlan:
        caps = self._caps()
        claims = [self._claim(job, requests, caps[job]) for job, requests in self.of_job.items()]
        shares = divide(claims, self.capacity)
        kinds = set(self._kinds_within(shares))
        self.bound_to, self.all_bound = self._slots_for(kinds), bool(kinds) and None not in kinds
        # Who leaves makes room for whoever starts: all of them first.
        for job, requests in self.of_job.items():
            self._take_back(requests, shares[job], caps[job])
        self._start(shares)
        for request in self.order:
            if request.slots == 0 and request.phase is Phase.PENDING and not self._place(request):
                self.causes[request.allocation_id] = reasons.DoesNotFit()
        writer = reasons.ReasonWriter(self.snapshot, self.places.now, self.reserved, in_turns=False)
        left = [
            request
            for request in self.order
            if request.phase is Phase.PENDING and request.allocation_id not in self.placements
        ]
        waiting = {each.allocation_id: writer.of(each, self.causes[each.allocation_id]) for each in left}
        return planned(self.placements, self.preempt, waiting, self.causes, self.holdings, self.reserved)

    def _kinds_within(self, shares: Mapping[JobId, int]) -> Iterator[Constraints | None]:
        """What those ask of machines who wait, and whom the share of their job would let start."""
        for job, requests in self.of_job.items():
            left = shares[job] - self.holdings.of_job[job]
            for request in requests:
                waits = request.allocation_id in self.possible and self.holdings.obstacle(request) is None
                if waits and request.slots <= left:
                    left -= request.slots
                    yield request.constraints

    def _is_possible(self, request: SlotRequest) -> bool:
        cap = self.snapshot.jobs[request.job_id].max_slots
        return (cap is None or request.slots <= cap) and self.places.could_start(request)

    def _caps(self) -> dict[JobId, int | None]:
        """The most that each job may have: by its own cap, and what limits leave, in the order of the queue."""
        held = {job: self.holdings.of_job[job] for job in self.of_job}
        left: dict[str, int] = {}
        for name, limit in self.snapshot.limits.items():
            if limit.spent:
                left[name] = 0
            elif limit.max_slots is not None:
                left[name] = limit.max_slots - self.holdings.of_limit[name]
        caps: dict[JobId, int | None] = {}
        for job, requests in self.of_job.items():
            cap = self.snapshot.jobs[job].max_slots
            binding = [name for name in self.snapshot.jobs[job].limits if name in left]
            if binding:
                more = max(0, min(left[name] for name in binding))
                demand = sum(each.slots for each in requests if each.allocation_id in self.possible)
                for name in binding:
                    left[name] -= min(more, demand)
                cap = held[job] + more if cap is None else min(cap, held[job] + more)
            caps[job] = cap
        return {**caps, **self._caps_by_machines(caps)}

    def _caps_by_machines(self, caps: Mapping[JobId, int | None]) -> dict[JobId, int | None]:
        """The most of jobs that are bound to some of the machines: of these, what each would get among those that are
        bound to them or to a part of them; ``caps``: the most of each otherwise."""
        bound: dict[JobId, frozenset[tuple[AgentId, SlotId]]] = {}
        for job, requests in self.of_job.items():
            kinds = {each.constraints for each in requests}
            if None not in kinds:
                bound[job] = self._slots_for(kinds)
        most: dict[JobId, int | None] = {job: caps[job] for job in bound}
        # Smaller parts first: what can be had of these is all that counts in a larger one.
        for slots in sorted(set(bound.values()), key=lambda part: (len(part), sorted(part))):
            jobs = [job for job, its in bound.items() if its <= slots]
            shares = divide(
                [self._claim(job, self.of_job[job], most[job]) for job in jobs],
                len(slots) - self._held_for_good(slots, jobs) + self._held_outside(slots, jobs),
            )
            most |= {job: _least(share, most[job]) for job, share in shares.items()}
        return most

    def _slots_for(self, kinds: Iterable[Constraints | None]) -> frozenset[tuple[AgentId, SlotId]]:
        return frozenset[tuple[AgentId, SlotId]]().union(*(self.places.slots_for(each) for each in kinds if each))

    def _held_for_good(self, slots: frozenset[tuple[AgentId, SlotId]], jobs: Collection[JobId]) -> int:
        """How many of these slots others hold who cannot be asked to leave."""
        return sum(
            (member.agent_id, slot) in slots
            for request in self.snapshot.requests
            if request.phase is Phase.PLACED and not request.preemptible and request.job_id not in jobs
            for member in request.members
            for slot in member.slots
        )

    def _held_outside(self, slots: frozenset[tuple[AgentId, SlotId]], jobs: Collection[JobId]) -> int:
        """How many slots these jobs hold elsewhere: on agents that take no work, or say something else by now."""
        return sum(
            (member.agent_id, slot) not in slots
            for job in jobs
            for request in self.of_job[job]
            for member in request.members
            for slot in member.slots
        )

    def _claim(self, job: JobId, requests: list[SlotRequest], cap: int | None) -> Claim:
        counted = (each for each in requests if each.phase is not Phase.PENDING or each.allocation_id in self.possible)
        kept = tuple(each.slots for each in requests if each.phase is Phase.PLACED and not each.preemptible)
        return Claim(job, self.snapshot.jobs[job].weight, tuple(each.slots for each in counted), cap, sum(kept), kept)

    def _take_back(self, requests: list[SlotRequest], share: int, cap: int | None) -> None:
        running = [request for request in requests if request.phase is Phase.PLACED]
        held = sum(request.slots for request in running)
        reason = reasons.why_taken_back(self.snapshot, share, held, self.capacity)
        useful = [request for request in running if self._is_useful(request)]
        for request in [*useful, *(request for request in running if request not in useful)]:
            if held <= share:
                return
            for_nobody = self.all_bound and request not in useful and (cap is None or held <= cap)
            if request.preemptible and not for_nobody:
                self.preempt[request.allocation_id] = reason
                self.places.give_later(request)
                held -= request.slots

    def _is_useful(self, request: SlotRequest) -> bool:
        """Whether somebody who waits is bound to slots of it."""
        held = ((member.agent_id, slot) for member in request.members for slot in member.slots)
        return not self.bound_to.isdisjoint(held)

    def _start(self, shares: Mapping[JobId, int]) -> None:
        """Those that wait, as far as the share of their job goes; what is being released still counts for it."""
        pending = (each for each in self.order if each.slots > 0 and each.phase is Phase.PENDING)
        for request in sorted(pending, key=lambda each: each.requested_at):
            cause = self._started(request, shares[request.job_id])
            if cause is not None:
                self.causes[request.allocation_id] = cause
            reserved = self.reserved is not None and self.reserved.request is request
            if cause is None or isinstance(cause, reasons.Releasing) or reserved:
                self.holdings.count(request)

    def _started(self, request: SlotRequest, share: int) -> reasons.Cause | None:
        """Start a request as far as the share of its job goes; else why it waits."""
        held = self.holdings.of_job[request.job_id]
        if request.allocation_id not in self.possible:
            return reasons.DoesNotFit()
        obstacle = self.holdings.obstacle(request)
        if obstacle is not None:
            return obstacle
        if held + request.slots > share:
            return reasons.BeyondShare(share, held, self.capacity)
        if self._place(request):
            return None
        if self.places.keep_later(request):
            return reasons.Releasing()
        self._reserve(request)
        return reasons.DoesNotFit()

    def _place(self, request: SlotRequest) -> bool:
        members = self.places.take_now(request)
        if members is not None:
            self.placements[request.allocation_id] = members
        return members is not None

    def _reserve(self, request: SlotRequest) -> None:
        if self.snapshot.rules.reservation and self.reserved is None:
            kept = self.places.reserve(request)
            if kept is not None:
                self.reserved = reasons.Reserved(request, kept.free, kept.starts_at)


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


def _capacity(snapshot: PoolSnapshot) -> int:
    """Slots of agents that take work, and those that requests still hold elsewhere."""
    open_agents = {agent.id for agent in snapshot.agents if agent.state is AgentState.ENABLED}
    elsewhere = sum(
        len(member.slots)
        for request in snapshot.requests
        for member in request.members
        if member.agent_id not in open_agents
    )
    return sum(len(agent.slots) for agent in snapshot.agents if agent.id in open_agents) + elsewhere
