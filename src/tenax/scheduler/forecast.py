"""What would become of a job that is submitted now: asked of the functions that schedule.

Rules:
- It is what the next pass over the pool would do, were the job in the queue; nothing is changed.
- What would happen without it is not laid to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tenax.ids import AllocationId
from tenax.scheduler.outlook import LikelyStart, Spans, likely_start
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import PoolJob, PoolSnapshot, SlotRequest


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the next pass would do with the first requests of a job."""

    requests: int
    #: So many of them would start at once.
    starting: int
    #: Running requests that would be asked to leave for it.
    leaving: tuple[AllocationId, ...] = ()
    #: Why the first of those that do not start waits; empty: all start.
    reason: str = ""
    #: When that one is likely to start; None: all start at once, or nobody can say.
    likely: LikelyStart | None = None


def forecast(
    snapshot: PoolSnapshot, job: PoolJob, requests: Sequence[SlotRequest], spans: Spans | None = None
) -> Forecast:
    """``requests``: what the job asks for in the beginning, in that order; ``spans``: how long runs take."""
    jobs = {**snapshot.jobs, job.id: job}
    with_it = replace(snapshot, jobs=jobs, requests=(*snapshot.requests, *requests))
    decided = plan(with_it)
    leaving = decided.preempt.keys() - plan(snapshot).preempt.keys() if decided.preempt else set[AllocationId]()
    names = [request.allocation_id for request in requests]
    waits = next((name for name in names if name in decided.waiting), None)
    return Forecast(
        requests=len(names),
        starting=sum(name in decided.placements for name in names),
        leaving=tuple(sorted(leaving)),
        reason="" if waits is None else decided.waiting[waits],
        likely=None if waits is None or spans is None else likely_start(with_it, waits, spans),
    )
