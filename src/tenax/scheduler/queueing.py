"""The queue as people see it and change it: where each job stands, and what a place before or behind another means.

Rules:
- A job stands where the first of its requests does; it is scheduled as soon as one of them has its place.
- A job that runs although more urgent requests of its kind wait for room was backfilled: they did not fit, and it can
  leave, as nothing can in a pool without preemption. What its job's cap holds back waits for no room.
- A move changes as few places as it can: one, unless the numbers left no room between two neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tenax.ids import JobId
from tenax.scheduler.policy import jobs_ahead
from tenax.scheduler.registry import queue
from tenax.scheduler.snapshot import Phase, PoolSnapshot, SlotRequest

#: Between neighbours that are numbered anew: a second, in the microseconds of submissions.
SPACE = 1_000_000.0


class JobStanding(str, Enum):
    """What has become of a job's requests."""

    QUEUED = "QUEUED"
    SCHEDULED = "SCHEDULED"
    SCHEDULED_BACKFILLED = "SCHEDULED_BACKFILLED"


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A job in the queue."""

    job_id: JobId
    standing: JobStanding
    #: How many jobs come to their turn before it.
    ahead: int
    requested_slots: int
    allocated_slots: int
    preemptible: bool


def lines(snapshot: PoolSnapshot) -> tuple[QueueLine, ...]:
    """The jobs of a pool in the order in which they come to their turn."""
    ordered = queue(snapshot)
    of_job: dict[JobId, list[SlotRequest]] = {}
    for request in ordered:
        of_job.setdefault(request.job_id, []).append(request)
    urgent = _most_urgent_waiting(snapshot) if snapshot.rules.preemption else {}
    return tuple(
        QueueLine(
            job,
            _standing(of_job[job], snapshot.jobs[job].priority, urgent),
            ahead,
            sum(request.slots for request in of_job[job]),
            sum(request.slots for request in of_job[job] if request.phase is not Phase.PENDING),
            all(request.preemptible for request in of_job[job]),
        )
        for job, ahead in jobs_ahead(ordered).items()
    )


def with_held(queue: tuple[QueueLine, ...], held: Mapping[JobId, int]) -> tuple[QueueLine, ...]:
    """The queue and, behind it, the jobs that wait without a request; ``held``: by the slots that they will ask for."""
    there = {line.job_id for line in queue}
    absent = [(job, slots) for job, slots in held.items() if job not in there]
    behind = (
        QueueLine(job, JobStanding.QUEUED, len(queue) + place, slots, 0, preemptible=True)
        for place, (job, slots) in enumerate(absent)
    )
    return (*queue, *behind)


def _most_urgent_waiting(snapshot: PoolSnapshot) -> dict[bool, int]:
    """The priority of the most urgent request that waits for room, of those with slots and of those without."""
    held: dict[JobId, int] = {}
    for request in snapshot.requests:
        if request.phase is not Phase.PENDING:
            held[request.job_id] = held.get(request.job_id, 0) + request.slots
    urgent: dict[bool, int] = {}
    for request in snapshot.requests:
        cap = snapshot.jobs[request.job_id].max_slots
        capped = cap is not None and held.get(request.job_id, 0) + request.slots > cap
        if request.phase is Phase.PENDING and not capped:
            priority = snapshot.jobs[request.job_id].priority
            kind = request.slots > 0
            urgent[kind] = min(priority, urgent.get(kind, priority))
    return urgent


def _standing(requests: Sequence[SlotRequest], priority: int, urgent: Mapping[bool, int]) -> JobStanding:
    placed = [request for request in requests if request.phase is not Phase.PENDING]
    if not placed:
        return JobStanding.QUEUED
    if all(request.preemptible and urgent.get(request.slots > 0, priority) < priority for request in placed):
        return JobStanding.SCHEDULED_BACKFILLED
    return JobStanding.SCHEDULED


def moved(order: Sequence[tuple[JobId, float]], job: JobId, anchor: JobId, *, behind: bool) -> dict[JobId, float]:
    """New positions that put ``job`` just before ``anchor``, or just behind it.

    ``order``: jobs of one priority with their positions, lower first, ``anchor`` among them; ``job`` may be. Only what
    changes is in the answer.
    """
    others = [(name, position) for name, position in order if name != job]
    place = next(index for index, (name, _) in enumerate(others) if name == anchor) + behind
    before = others[place - 1][1] if place > 0 else None
    after = others[place][1] if place < len(others) else None
    if before is None:
        assert after is not None, "the anchor is on one side"
        between = after - SPACE
    elif after is None:
        between = before + SPACE
    else:
        between = (before + after) / 2
    if (before is None or before < between) and (after is None or between < after):
        return {job: between}
    names = [*(name for name, _ in others[:place]), job, *(name for name, _ in others[place:])]
    last = max(position for _, position in others)
    numbered = {name: last - SPACE * (len(names) - 1 - index) for index, name in enumerate(names)}
    known = dict(order)
    return {name: position for name, position in numbered.items() if known.get(name) != position}
