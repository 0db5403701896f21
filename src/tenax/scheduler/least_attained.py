"""The least-attained policy: jobs that have held the fewest slot seconds so far come first, and take slots from others.

Rules:
- At one priority jobs stand in bands by what they have held: slots times seconds, all their requests together. The
  first band is for less than `FIRST`, each further one for `WIDER` times as much, the last for all that is above.
- What waits takes slots from jobs of less urgency or of a later band, as the priority policy does with preemption:
  the smallest set that helps is asked to leave. In a band nobody is. What could not be asked itself takes from less
  urgent jobs alone.
- What had to leave for another keeps for `KEPT` what it gets then, except from more urgent jobs and from what has
  waited too long.
- In a band the order is that of the priority policy. Of each job one request at a time that has waited for `MAX_WAIT`
  stands before all bands, and takes from each of them, until it has held `FIRST`, for `KEPT` at least. No stream of
  short jobs puts off a long one for ever.
Nobody has to say how long anything takes: short jobs are done before it shows that others are long.
Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3.2
(two-dimensional attained service, discretized).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from tenax.ids import AllocationId, JobId
from tenax.scheduler.policy import Placer, queue_key
from tenax.scheduler.priority import plan_by_priority
from tenax.scheduler.snapshot import Phase, PoolPlan, PoolSnapshot, SlotRequest

#: Slot seconds: four slot hours.
FIRST = 4 * 3600.0
WIDER = 4.0
BANDS = 4
#: Seconds.
MAX_WAIT = 86400.0
KEPT = 3600.0
#: Of a priority, the most urgent first: what has waited too long, what is kept, the bands.
_OVERDUE, _KEPT_RANK, _FIRST_BAND = 0, 1, 2
_RANKS = _FIRST_BAND + BANDS
#: A little later than a moment, what it changes has changed, whatever is rounded.
_LATER_S = 0.001


class LeastAttained:
    """Those who have held least first."""

    name: ClassVar[str] = "least_attained"
    in_turns: ClassVar[bool] = True
    always_preempts: ClassVar[bool] = True
    counts_attained: ClassVar[bool] = True

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        """One pass over the pool."""
        return plan_by_priority(_ranked(snapshot), ranks=_RANKS)

    def placer(self, snapshot: PoolSnapshot) -> Placer:
        """Plan after plan."""
        return lambda agents: self.plan(replace(snapshot, agents=agents))

    def changes_at(self, snapshot: PoolSnapshot) -> float | None:
        """While something waits: when what runs stands elsewhere by what it held, or what waits has waited too long."""
        if not any(request.phase is Phase.PENDING for request in snapshot.requests):
            return None
        return min((moment for moment in _moments(snapshot) if moment > snapshot.at), default=None)

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        """By priority, band, and then as under the priority policy."""
        ranked = _ranked(snapshot)
        pairs = zip(ranked.requests, snapshot.requests, strict=True)
        return tuple(request for _, request in sorted(pairs, key=lambda pair: queue_key(ranked, pair[0])))


def band_of(attained: float) -> int:
    """0 for those who have held least."""
    if attained < FIRST:
        return 0
    return min(BANDS - 1, 1 + math.floor(math.log(attained / FIRST, WIDER)))


def _moments(snapshot: PoolSnapshot) -> Iterator[float]:
    held: Counter[JobId] = Counter()
    overdue = _overdue(snapshot)
    for request in snapshot.requests:
        if request.phase is Phase.PENDING:
            yield request.requested_at + MAX_WAIT
            continue
        held[request.job_id] += request.slots
        if request.left_before:
            yield _placed_at(request) + KEPT + _LATER_S
        if request.allocation_id in overdue:
            yield _overdue_until(request) + _LATER_S
    for job_id, slots in held.items():
        attained = snapshot.jobs[job_id].attained
        if slots and band_of(attained) < BANDS - 1:
            yield snapshot.at + (FIRST * WIDER ** band_of(attained) - attained) / slots + _LATER_S


def _ranked(snapshot: PoolSnapshot) -> PoolSnapshot:
    """The pool with the rank of each request at its priority."""
    overdue = _overdue(snapshot)
    requests = []
    for request in snapshot.requests:
        job = snapshot.jobs[request.job_id]
        rank = _FIRST_BAND + band_of(job.attained)
        standing = f"priority {job.priority}, {job.attained / 3600:.3g} slot hours so far"
        if request.allocation_id in overdue:
            rank, standing = _OVERDUE, f"priority {job.priority}, waited for a day"
        elif request.left_before and request.phase is Phase.PLACED and snapshot.at - _placed_at(request) < KEPT:
            rank = _KEPT_RANK
        requests.append(replace(request, priority=job.priority * _RANKS + rank, standing=standing))
    return replace(snapshot, requests=tuple(requests), rules=replace(snapshot.rules, preemption=True))


def _overdue(snapshot: PoolSnapshot) -> frozenset[AllocationId]:
    """What stands before all bands: of each job, and of its requests with slots and of those without, one at a time."""
    most = sum(len(agent.slots) for agent in snapshot.agents)
    held = Counter[JobId]()
    for request in snapshot.requests:
        held[request.job_id] += 0 if request.phase is Phase.PENDING else request.slots
    first: dict[tuple[JobId, bool], AllocationId] = {}
    for request in sorted(snapshot.requests, key=lambda each: (each.requested_at, each.allocation_id)):
        if request.phase is not Phase.PENDING:
            counts = request.waited >= MAX_WAIT and snapshot.at < _overdue_until(request)
        else:
            cap = snapshot.jobs[request.job_id].max_slots
            # What its own job's cap holds back has not waited for others, and what is too large waits for nothing.
            is_held_back = request.slots > most or (cap is not None and held[request.job_id] + request.slots > cap)
            counts = snapshot.at - request.requested_at >= MAX_WAIT and not is_held_back
        if counts:
            first.setdefault((request.job_id, request.slots > 0), request.allocation_id)
    return frozenset(first.values())


def _overdue_until(request: SlotRequest) -> float:
    """When what was placed has had what it waited for: as much as the first band is wide, and for a while."""
    return _placed_at(request) + max(KEPT, FIRST / max(1, request.slots))


def _placed_at(request: SlotRequest) -> float:
    return request.requested_at + request.waited
