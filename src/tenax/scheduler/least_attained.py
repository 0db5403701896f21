"""The least-attained policy: jobs that have held the fewest slot seconds so far come first, and take slots from others.

Rules:
- At one priority jobs stand in bands by what they have held: slots times seconds, all their requests together. The
  first band is for less than `FIRST`, each further one for `WIDER` times as much, the last for all that is above.
- What waits takes slots from jobs of less urgency or of a later band, as the priority policy does with preemption:
  the smallest set that helps is asked to leave. In a band nobody is.
- Nobody is asked twice in a row: what had to leave holds what it gets then until it ends.
- In a band the order is that of the priority policy. A job that has waited for `MAX_WAIT` stands in the first one, as
  long as it holds what it got then: no stream of short jobs puts off a long one for ever.
Nobody has to say how long anything takes: short jobs are done before it shows that others are long.
Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3.2
(two-dimensional attained service, discretized).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import ClassVar

from tenax.ids import JobId
from tenax.scheduler.policy import queue_key
from tenax.scheduler.priority import plan_by_priority
from tenax.scheduler.snapshot import Phase, PoolJob, PoolPlan, PoolSnapshot, SlotRequest

#: Slot seconds: four slot hours.
FIRST = 4 * 3600.0
WIDER = 4.0
BANDS = 4
#: Seconds.
MAX_WAIT = 86400.0


class LeastAttained:
    """Those who have held least first."""

    name: ClassVar[str] = "least_attained"
    in_turns: ClassVar[bool] = True
    always_preempts: ClassVar[bool] = True
    counts_attained: ClassVar[bool] = True

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        """One pass over the pool."""
        return plan_by_priority(_in_bands(snapshot), among_equals=False)

    def changes_at(self, snapshot: PoolSnapshot) -> float | None:
        """While something waits: when a job that runs reaches the next band, or one that waits has waited too long."""
        if not any(request.phase is Phase.PENDING for request in snapshot.requests):
            return None
        held: Counter[JobId] = Counter()
        moments = []
        for request in snapshot.requests:
            if request.phase is Phase.PENDING:
                moments.append(request.requested_at + MAX_WAIT)
            else:
                held[request.job_id] += request.slots
        for job_id, slots in held.items():
            attained = snapshot.jobs[job_id].attained
            edge = FIRST * WIDER ** band_of(attained)
            if slots and band_of(attained) < BANDS - 1:
                # A little later: it has reached it then, whatever is rounded.
                moments.append(snapshot.at + (edge - attained) / slots + 0.001)
        return min((moment for moment in moments if moment > snapshot.at), default=None)

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        """By priority, band, and then as under the priority policy."""
        banded = _in_bands(snapshot)
        return tuple(sorted(snapshot.requests, key=lambda request: queue_key(banded, request)))


def band_of(attained: float) -> int:
    """0 for those who have held least."""
    if attained < FIRST:
        return 0
    return min(BANDS - 1, 1 + math.floor(math.log(attained / FIRST, WIDER)))


def _in_bands(snapshot: PoolSnapshot) -> PoolSnapshot:
    """The pool with the band of each job as a part of its priority."""
    overdue = {request.job_id for request in snapshot.requests if _waited(snapshot, request) >= MAX_WAIT}
    jobs = {name: _banded(job, 0 if name in overdue else band_of(job.attained)) for name, job in snapshot.jobs.items()}
    requests = tuple(
        replace(request, preemptible=False) if request.left_before and request.preemptible else request
        for request in snapshot.requests
    )
    return replace(snapshot, jobs=jobs, requests=requests, rules=replace(snapshot.rules, preemption=True))


def _waited(snapshot: PoolSnapshot, request: SlotRequest) -> float:
    return snapshot.at - request.requested_at if request.phase is Phase.PENDING else request.waited


def _banded(job: PoolJob, band: int) -> PoolJob:
    standing = f"priority {job.priority}, {job.attained / 3600:.3g} slot hours so far"
    return replace(job, priority=job.priority * BANDS + band, standing=standing)
