"""The priority policy: more urgent requests first, and what they may take from others.

Rules:
- Requests with slots and those without compete apart: neither blocks the other.
- The order is priority (1 first), then the turn that quotas give its owner, then the queue position of the job, then
  the time of asking.
- A request that does not fit leaves those of its own priority their chance. Less urgent ones start behind it only
  where it can take their place back: in a pool with preemption, and if they can be preempted; or on machines that it
  could not use, by its constraints.
- With preemption, running requests that are less urgent, or equally urgent and of the same turn with a job behind in
  the queue, are asked to leave: the smallest set that helps, and none when what is being released suffices.
- In a pool with ``reservation`` and without preemption, the first request with slots that does not fit has places
  reserved where it is to start, and smaller ones behind it start beside these: if everything that runs ends, everything
  starts that fits the pool. Where time limits say when it starts at the latest, those start in its places as well, of
  less urgency, too, who are gone by then. Elsewhere a stream of small requests may put off a large one for ever.
- What would not fit with nothing running, on the agents that take work now, waits and blocks nobody.
- ``max_slots`` of a job binds: what would exceed it, as soon as the job has what it gets, waits and blocks nobody;
  where it was lowered below what the job holds, the newest of its requests that can be are asked to leave. So do the
  limits of quotas, for which nobody is asked to leave; what waits for one keeps its part of it from less urgent
  requests, and with ``reservation`` from all behind it.
- Requests that wait one behind the other and are alike (twins) are judged once: they are of one job, and differ in
  their names, in when they asked and in whether they ran before, at most. Who shares a limit has none: what waits for
  it keeps its part of it from the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar

from tenax.ids import AgentId, AllocationId, JobId, SlotId
from tenax.scheduler import reasons, victims
from tenax.scheduler.holdings import Holdings
from tenax.scheduler.places import Places
from tenax.scheduler.policy import Placer, in_order, planned, priority_of
from tenax.scheduler.snapshot import (
    Constraints,
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolPlan,
    PoolSnapshot,
    SlotRequest,
    place_of,
)

#: Constraints of requests that wait, beside which others are placed; more are as if they could use everything.
_MAX_KEPT = 16
#: What waits for one of these has neither got nor kept anything, unless places were reserved for it.
_CHANGES_NOTHING = (reasons.DoesNotFit, reasons.Behind, reasons.Capped)


class Priority:
    """More urgent requests first."""

    name: ClassVar[str] = "priority"
    in_turns: ClassVar[bool] = True
    always_preempts: ClassVar[bool] = False
    counts_attained: ClassVar[bool] = False

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        """One pass over the pool."""
        return plan_by_priority(snapshot)

    def placer(self, snapshot: PoolSnapshot) -> Placer:
        """The order of what waits is the same whatever the agents."""
        alike = _pending(snapshot)

        def placed(agents: tuple[PoolAgent, ...]) -> PoolPlan:
            turn = _served(replace(snapshot, agents=agents), alike)
            return PoolPlan(turn.placements, turn.preempt)

        return placed

    def changes_at(self, snapshot: PoolSnapshot) -> float | None:
        """Never."""
        return None

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        """By priority, the turn that quotas give, queue position and time of asking."""
        return tuple(in_order(snapshot, snapshot.requests))


def plan_by_priority(snapshot: PoolSnapshot, *, ranks: int = 1) -> PoolPlan:
    """One pass over a pool; ``ranks``: into so many the policy has split each priority, one number after the other.

    Where there are several, nobody of a rank is asked to leave for its like, nor anybody of a priority for what could
    not be asked itself.
    """
    alike = _pending(snapshot)
    return _served(snapshot, alike, ranks).plan(alike)


def _pending(snapshot: PoolSnapshot) -> list[list[SlotRequest]]:
    """What waits, in its order, twins together."""
    pending = in_order(snapshot, [request for request in snapshot.requests if request.phase is Phase.PENDING])
    return twins(pending, snapshot.jobs)


def _served(snapshot: PoolSnapshot, alike: Sequence[Sequence[SlotRequest]], ranks: int = 1) -> _Pass:
    """A pass over a pool that has served all that waits."""
    turn = _Pass(snapshot, ranks)
    turn.keep_to_caps()
    turn.serve([those for those in alike if those[0].slots > 0])
    turn.serve([those for those in alike if those[0].slots == 0])
    return turn


class _Pass:
    """What one pass has decided so far."""

    def __init__(self, snapshot: PoolSnapshot, ranks: int) -> None:
        self.snapshot = snapshot
        self._ranks = ranks
        self.places = Places(snapshot)
        self.placements: dict[AllocationId, tuple[PlacedMember, ...]] = {}
        self.preempt: dict[AllocationId, str] = {}
        self.causes: dict[AllocationId, reasons.Cause] = {}
        self.holdings = Holdings(snapshot)
        #: Of the priority that is served: what waits for a limit.
        self._limited: list[SlotRequest] = []
        self._leavers: dict[bool, victims.Leavers] = {}
        #: Needs for which no set of victims helped; less important requests have fewer to choose from.
        self._helpless: set[tuple[int, bool, Constraints | None, int, bool]] = set()
        #: What waits of more urgent priorities could use: all that meets one of these; None: everything.
        self._kept_for_others: frozenset[Constraints] | None = frozenset()
        self._kept_slots: frozenset[tuple[AgentId, SlotId]] = frozenset()
        self._kept_agents: frozenset[AgentId] = frozenset()
        #: For whom places are reserved.
        self.reserved: reasons.Reserved | None = None

    def keep_to_caps(self) -> None:
        """Ask the newest requests of a job to leave while it holds more slots than its cap allows."""
        excess = {
            job: held - cap
            for job, held in self.holdings.of_job.items()
            if (cap := self.snapshot.jobs[job].max_slots) is not None and held > cap
        }
        if not excess:
            return
        for request in self.snapshot.requests:
            if request.phase is Phase.RELEASING and request.job_id in excess:
                excess[request.job_id] -= request.slots
        for request in [r for r in self._candidates() if r.slots > 0 and excess.get(r.job_id, 0) > 0]:
            if excess[request.job_id] > 0:
                excess[request.job_id] -= request.slots
                cap = self.snapshot.jobs[request.job_id].max_slots
                self._ask_to_leave(request, f"its job holds more slots than its max_slots of {cap}")

    def serve(self, alike: Iterable[Sequence[SlotRequest]]) -> None:
        """Serve requests, twins together, in order, priority by priority."""
        blocker: SlotRequest | None = None
        self._kept_for_others = frozenset()
        self._kept_slots, self._kept_agents = frozenset(), frozenset()
        for _, group in groupby(alike, key=lambda those: priority_of(self.snapshot, those[0])):
            self._limited.clear()
            unplaced = [waiting for those in group for waiting in self._place_or_wait_all(those, blocker)]
            for request in self._limited:
                cause = self.holdings.obstacle(request)
                # What its job got since then may be all that its own cap allows.
                if isinstance(cause, reasons.BeyondLimit):
                    self.holdings.claim(request)
                elif cause is not None:
                    self.causes[request.allocation_id] = cause
            # A job has one priority: what its cap leaves is known by now.
            for request, *others in unplaced:
                if not self._is_capped(request):
                    # What it may have of a quota is not for less urgent ones.
                    self.holdings.claim(request)
                    self._keep_for(request)
                    # Whoever passes the one with reserved places would put off another.
                    blocker = request if blocker is None or self._is_reserved(blocker) else blocker
                else:
                    self._say_the_same(others, self.causes[request.allocation_id])

    def plan(self, alike: Iterable[Sequence[SlotRequest]]) -> PoolPlan:
        """What was decided, with a reason for each that waits; ``alike``: all that was pending, in order."""
        left = [[each for each in those if each.allocation_id not in self.placements] for those in alike]
        waiting: dict[AllocationId, str] = {}
        # In most passes nobody is left: a writer looks at every agent.
        writer = reasons.ReasonWriter(self.snapshot, self.places.now, self.reserved) if any(left) else None
        for those in left:
            # One after the other where something was done for some of them.
            names = [each.allocation_id for each in those]
            if writer is not None and names and self.causes[names[0]] is self.causes[names[-1]]:
                waiting.update(zip(names, writer.of_twins(those, self.causes[names[0]]), strict=True))
            elif writer is not None:
                waiting.update((each.allocation_id, writer.of(each, self.causes[each.allocation_id])) for each in those)
        return planned(self.placements, self.preempt, waiting, self.causes, self.holdings, self.reserved)

    def _place_or_wait_all(
        self, those: Sequence[SlotRequest], blocker: SlotRequest | None
    ) -> Iterator[Sequence[SlotRequest]]:
        """Place twins or note why they wait; those behind which others may not go on, together where all is the same
        for them.

        Where one waits and nothing was taken, kept or asked for it, the next finds what it has found.
        """
        for index, request in enumerate(those):
            before = self.reserved
            may_go_on = self._place_or_wait(request, blocker)
            cause = self.causes.get(request.allocation_id)
            if isinstance(cause, _CHANGES_NOTHING) and self.reserved is before:
                self._say_the_same(those[index + 1 :], cause)
                if not may_go_on:
                    yield those[index:]
                return
            if not may_go_on:
                yield [request]

    def _say_the_same(self, others: Iterable[SlotRequest], cause: reasons.Cause) -> None:
        self.causes.update(dict.fromkeys((request.allocation_id for request in others), cause))

    def _place_or_wait(self, request: SlotRequest, blocker: SlotRequest | None) -> bool:
        """Place a request or note why it waits; whether those behind it may go on as if it were not there."""
        name = request.allocation_id
        if self._is_capped(request):
            return True
        if not self.places.could_start(request):
            self.causes[name] = reasons.DoesNotFit()
            return True
        asking = request
        if blocker is not None and not self._may_pass(request, blocker):
            beside = self._beside(request)
            if beside is None or (not self.places.fits_now(beside) and self.places.fits_now(request)):
                self.causes[name] = reasons.Behind(blocker)
                return False
            asking = beside
        members = self.places.take_now(asking)
        if members is not None:
            self.placements[name] = members
            self.holdings.count(request)
            return True
        if self.places.keep_later(asking):
            self.causes[name] = reasons.Releasing()
            self.holdings.count(request)
            return False
        self.causes[name] = self._make_room(asking) or reasons.DoesNotFit()
        self._reserve(asking)
        return False

    def _may_pass(self, request: SlotRequest, blocker: SlotRequest) -> bool:
        """Whether it may start before a more urgent one that does not fit: where its place can be taken back, or it is
        gone before the places that are reserved for the other are all free."""
        if self.snapshot.rules.preemption and request.preemptible:
            return True
        return self._is_reserved(blocker) and self.places.is_gone_in_time(request)

    def _keep_for(self, request: SlotRequest) -> None:
        """Less urgent requests do not take what it could use."""
        if self._kept_for_others is None:
            return
        if request.constraints is None:
            self._kept_for_others = None
            return
        own = request.constraints.of_each()
        slots = self.places.slots_for(own)
        agents = self.places.usable(own)
        if not (slots <= self._kept_slots and agents <= self._kept_agents):
            self._kept_slots |= slots
            self._kept_agents |= agents
            kept = self._kept_for_others | {own}
            # Who asks for something else each time gets no others past them.
            self._kept_for_others = kept if len(kept) <= _MAX_KEPT else None

    def _beside(self, request: SlotRequest) -> SlotRequest | None:
        """The request where it may only have what nothing more urgent that waits could use, by its constraints; None:
        there is no such place."""
        if self._kept_for_others is None:
            return None
        kept = tuple(sorted(self._kept_for_others, key=repr))
        if request.slots:
            own = request.constraints or Constraints()
            request = replace(request, constraints=replace(own, beside=kept))
        else:
            request = replace(request, blocked_agents=request.blocked_agents | self._kept_agents)
        return request if self.places.could_start(request) else None

    def _is_reserved(self, request: SlotRequest) -> bool:
        return self.reserved is not None and self.reserved.request.allocation_id == request.allocation_id

    def _is_capped(self, request: SlotRequest) -> bool:
        """Whether its job may have no more beside what it holds and was promised; that is why it waits, then."""
        cause = self.holdings.obstacle(request)
        if cause is None:
            return False
        self.causes[request.allocation_id] = cause
        if isinstance(cause, reasons.BeyondLimit) and self.holdings.could_ever(request):
            if self.snapshot.rules.reservation:
                self.holdings.claim(request)
            else:
                self._limited.append(request)
        return True

    def _reserve(self, request: SlotRequest) -> None:
        """For the first that does not fit, unless this pool takes places back."""
        rules = self.snapshot.rules
        if request.slots == 0 or self.reserved is not None or rules.preemption or not rules.reservation:
            return
        kept = self.places.reserve(request)
        if kept is not None:
            self.reserved = reasons.Reserved(request, kept.free, kept.starts_at)
            self.holdings.count(request)

    def _make_room(self, request: SlotRequest) -> reasons.Cause | None:
        """Ask others to leave for a request; None where nobody's leaving would help."""
        job = self.snapshot.jobs[request.job_id]
        priority = priority_of(self.snapshot, request)
        if not request.preemptible:
            priority = priority // self._ranks * self._ranks + self._ranks - 1
        need = (*request.kind, job.turn, request.preemptible)
        if not self.snapshot.rules.preemption or need in self._helpless:
            return None
        place = place_of(self.snapshot, request)
        chosen = self._who_may_leave(request.slots > 0).choose(request, priority, place, job.turn)
        if not chosen:
            if not request.blocked_agents:
                self._helpless.add(need)
            return None
        for victim in chosen:
            self._ask_to_leave(victim, reasons.why_preempted(self.snapshot, victim, request))
        self.places.keep_later(request)
        self.holdings.count(request)
        return reasons.MakingRoom(len(chosen))

    def _candidates(self) -> list[SlotRequest]:
        """Running requests that may be asked to leave, least important first, newest first."""
        running = (r for r in self.snapshot.requests if r.phase is Phase.PLACED and r.preemptible)
        return in_order(self.snapshot, running)[::-1]

    def _who_may_leave(self, slotted: bool) -> victims.Leavers:
        """Those who may be asked, made when first needed: most passes ask nobody."""
        if slotted not in self._leavers:
            candidates: list[victims.Candidate] = []
            for request in self._candidates():
                if (request.slots > 0) == slotted and request.allocation_id not in self.preempt:
                    job = self.snapshot.jobs[request.job_id]
                    place = place_of(self.snapshot, request) if self._ranks == 1 else -math.inf
                    candidates.append(victims.Candidate(request, priority_of(self.snapshot, request), place, job.turn))
            self._leavers[slotted] = victims.Leavers(self.places.later, candidates, self.snapshot.rules)
        return self._leavers[slotted]

    def _ask_to_leave(self, request: SlotRequest, reason: str) -> None:
        self.preempt[request.allocation_id] = reason
        for leavers in self._leavers.values():
            leavers.remove(request)
        self.places.give_later(request)


def twins(ordered: Iterable[SlotRequest], jobs: Mapping[JobId, PoolJob]) -> list[list[SlotRequest]]:
    """Pending requests in the same order, those that are alike together."""
    groups: list[list[SlotRequest]] = []
    last: SlotRequest | None = None
    for request in ordered:
        if last is not None and _are_twins(last, request) and not jobs[request.job_id].limits:
            groups[-1].append(request)
        else:
            groups.append([request])
        last = request
    return groups


def _are_twins(first: SlotRequest, second: SlotRequest) -> bool:
    return (
        first.job_id == second.job_id
        and first.slots == second.slots
        and first.single_node == second.single_node
        and first.preemptible == second.preemptible
        and first.blocked_agents == second.blocked_agents
        and first.constraints == second.constraints
        and first.time_limit == second.time_limit
        and first.priority == second.priority
        and first.standing == second.standing
        # Each has a place of its own in the queue.
        and not (first.again or second.again)
    )
