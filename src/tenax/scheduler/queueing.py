"""The queue as people see it and change it: where each job stands, and what a place before or behind another means.

Rules:
- A job stands where the first of its requests does; it is scheduled as soon as one of them has its place.
- A job that runs although more urgent requests of its kind wait for room was backfilled: they did not fit, and it can
  leave, as nothing can in a pool without preemption. What its job's cap or a quota holds back waits for no room.
- Room in another pool is told where nothing of the kind waits: there it would start at once, if it were moved.
- Where jobs share the slots of a pool, nobody is ahead of anybody (`SHARED`), and nothing is backfilled.
- A move changes as few places as it can: one, unless the numbers left no room between two neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tenax.ids import JobId, PoolName
from tenax.scheduler import fitting
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.holdings import Holdings
from tenax.scheduler.policy import jobs_ahead
from tenax.scheduler.reasons import BeyondLimit
from tenax.scheduler.registry import in_turns, queue
from tenax.scheduler.snapshot import Constraints, Phase, PoolSnapshot, SlotRequest

#: Between neighbours that are numbered anew: a second, in the microseconds of submissions.
SPACE = 1_000_000.0
#: How many are ahead of a job that takes no turns.
SHARED = -1


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
    #: How many jobs come to their turn before it, or `SHARED`.
    ahead: int
    requested_slots: int
    allocated_slots: int
    preemptible: bool
    #: The first of its requests that waits.
    waiting: SlotRequest | None = None


def lines(snapshot: PoolSnapshot) -> tuple[QueueLine, ...]:
    """The jobs of a pool in the order in which they come to their turn."""
    ordered = queue(snapshot)
    of_job: dict[JobId, list[SlotRequest]] = {}
    for request in ordered:
        of_job.setdefault(request.job_id, []).append(request)
    takes_turns = in_turns(snapshot.rules.policy)
    urgent = _most_urgent_waiting(snapshot) if snapshot.rules.preemption and takes_turns else {}
    return tuple(
        QueueLine(
            job,
            _standing(of_job[job], snapshot.jobs[job].priority, urgent),
            ahead if takes_turns else SHARED,
            sum(request.slots for request in of_job[job]),
            sum(request.slots for request in of_job[job] if request.phase is not Phase.PENDING),
            all(request.preemptible for request in of_job[job]),
            next((request for request in of_job[job] if request.phase is Phase.PENDING), None),
        )
        for job, ahead in jobs_ahead(ordered).items()
    )


def with_held(
    queue: tuple[QueueLine, ...], held: Mapping[JobId, int], *, in_turns: bool = True
) -> tuple[QueueLine, ...]:
    """The queue and, behind it, the jobs that wait without a request; ``held``: by the slots that they will ask for."""
    there = {line.job_id for line in queue}
    absent = [(job, slots) for job, slots in held.items() if job not in there]
    behind = (
        QueueLine(job, JobStanding.QUEUED, len(queue) + place if in_turns else SHARED, slots, 0, preemptible=True)
        for place, (job, slots) in enumerate(absent)
    )
    return (*queue, *behind)


def holders(queue: Sequence[QueueLine]) -> tuple[QueueLine, ...]:
    """The jobs that hold slots, those with the most first."""
    return tuple(sorted((line for line in queue if line.allocated_slots), key=lambda line: -line.allocated_slots))


class Rooms:
    """Where else a request that waits would start at once. Of one instant; mutable: it remembers what it found."""

    def __init__(self, snapshots: Mapping[str, PoolSnapshot]) -> None:
        self._snapshots = snapshots
        self._free: dict[str, FreeSlots] = {}
        self._holdings: dict[str, Holdings] = {}
        self._fits_in: dict[tuple[int, bool, Constraints | None], tuple[str, ...]] = {}
        #: Pools and kinds of which something waits.
        self._waits = {
            (snapshot.pool, request.slots > 0)
            for snapshot in snapshots.values()
            for request in snapshot.requests
            if request.phase is Phase.PENDING
        }

    def elsewhere(self, pool: str, request: SlotRequest) -> tuple[str, ...]:
        """The names of the other pools with room for it."""
        if pool not in self._holdings:
            self._holdings[pool] = Holdings(self._snapshots[pool])
        # A limit of quotas goes with it.
        if isinstance(self._holdings[pool].obstacle(request), BeyondLimit):
            return ()
        kind = request.kind
        if kind not in self._fits_in:
            self._fits_in[kind] = tuple(name for name in sorted(self._snapshots) if self._fits(name, request))
        return tuple(name for name in self._fits_in[kind] if name != pool)

    def _fits(self, name: str, request: SlotRequest) -> bool:
        if (PoolName(name), request.slots > 0) in self._waits:
            return False
        snapshot = self._snapshots[name]
        if name not in self._free:
            self._free[name] = FreeSlots(snapshot.agents)
        # What is blocked for it are agents of its own pool.
        return fitting.find(replace(request, blocked_agents=frozenset()), self._free[name], snapshot.rules) is not None


def _most_urgent_waiting(snapshot: PoolSnapshot) -> dict[bool, int]:
    """The priority of the most urgent request that waits for room, of those with slots and of those without."""
    holdings = Holdings(snapshot)
    urgent: dict[bool, int] = {}
    for request in snapshot.requests:
        if request.phase is Phase.PENDING and holdings.obstacle(request) is None:
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
