"""Why a job waits, who is before it, and what would help: asked of the functions that schedule.

Rules:
- What would help is tried on the pool as it is, one change at a time, the least one of each kind: a change helps if the
  next pass would start the request, or ask others to leave for it.
- Nothing is changed, and nobody's word is taken for it: what is said to help does, if it is done now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tenax.ids import AllocationId, JobId
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.constraints import without_each
from tenax.scheduler.queueing import Rooms
from tenax.scheduler.reasons import WaitClass, class_of
from tenax.scheduler.registry import in_turns, plan, queue
from tenax.scheduler.snapshot import Phase, PoolJob, PoolPlan, PoolSnapshot, SlotRequest

#: Seconds that somebody takes to follow an advice.
_MARGIN_S = 30.0
#: Weights that are tried, times its own.
_TIMES = (2.0, 4.0, 8.0)


class RemedyKind(str, Enum):
    """What is changed."""

    #: Fewer slots for each of its requests.
    SLOTS = "SLOTS"
    PRIORITY = "PRIORITY"
    WEIGHT = "WEIGHT"
    MAX_SLOTS = "MAX_SLOTS"
    POOL = "POOL"
    #: At most so long for each of its runs, as in '55m': it would use what is kept for another one until then.
    TIME_LIMIT = "TIME_LIMIT"
    #: Without one of its constraints, as `tenax.scheduler.constraints` describes it.
    CONSTRAINT = "CONSTRAINT"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which the request would start."""

    kind: RemedyKind
    #: To this; a pool by its name.
    value: str
    #: So many running requests would be asked to leave first; 0: it would start at once.
    leaving: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of the first request of a job that waits."""

    request: SlotRequest
    reason: str
    #: Jobs with a request that waits and comes to its turn before it, in that order; none where slots are shared.
    ahead: tuple[JobId, ...]
    remedies: tuple[Remedy, ...]
    #: When it starts, at the latest, where time limits say so; in seconds since 1970.
    starts_by: float | None = None


def explain(job_id: JobId, pool: str, snapshots: Mapping[str, PoolSnapshot]) -> Explanation | None:
    """``snapshots``: all pools, by name. None: nothing of the job waits in that pool."""
    snapshot = snapshots[pool]
    decided = plan(snapshot)
    ordered = queue(snapshot)
    request = next((each for each in ordered if each.job_id == job_id and each.allocation_id in decided.waiting), None)
    if request is None:
        return None
    return Explanation(
        request,
        decided.waiting[request.allocation_id],
        _ahead(ordered, request, decided) if in_turns(snapshot.rules.policy) else (),
        tuple(_remedies(snapshot, request, decided, Rooms(snapshots).elsewhere(pool, request))),
        decided.starts_by.get(request.allocation_id),
    )


def _ahead(ordered: Iterable[SlotRequest], request: SlotRequest, decided: PoolPlan) -> tuple[JobId, ...]:
    """Those without slots compete apart; what waits for no room is ahead of nobody."""
    ahead: dict[JobId, None] = {}
    for other in ordered:
        if other is request:
            break
        alike = (other.slots > 0) == (request.slots > 0) and other.job_id != request.job_id
        reason = decided.waiting.get(other.allocation_id, "")
        for_room = class_of(reason) is WaitClass.WAIT and other.allocation_id not in decided.held_back
        if alike and for_room:
            ahead[other.job_id] = None
    return tuple(ahead)


def _remedies(
    snapshot: PoolSnapshot, request: SlotRequest, decided: PoolPlan, pools: Iterable[str]
) -> Iterator[Remedy]:
    yield from (Remedy(RemedyKind.POOL, name) for name in pools)
    changes = (
        (RemedyKind.TIME_LIMIT, _time_limits(snapshot, request, decided)),
        (RemedyKind.CONSTRAINT, _fewer_constraints(snapshot, request)),
        (RemedyKind.SLOTS, _fewer(snapshot, request)),
        (RemedyKind.MAX_SLOTS, _caps(snapshot, request)),
        (RemedyKind.PRIORITY, _priorities(snapshot, request)),
        (RemedyKind.WEIGHT, _weights(snapshot, request)),
    )
    for kind, tries in changes:
        for value, changed in tries:
            leaving = _leaving(changed, request.allocation_id, decided)
            if leaving is not None:
                yield Remedy(kind, value, leaving)
                break


def _leaving(changed: PoolSnapshot, name: AllocationId, before: PoolPlan) -> int | None:
    """How many leave for a request in a pool that was changed; None: it would not start."""
    after = plan(changed)
    if name in after.placements:
        return 0
    more = len(after.preempt.keys() - before.preempt.keys())
    return more if more and after.waiting[name] != before.waiting.get(name) else None


def _fewer_constraints(snapshot: PoolSnapshot, request: SlotRequest) -> Iterator[tuple[str, PoolSnapshot]]:
    if request.constraints is not None:
        for dropped, left in without_each(request.constraints):
            yield dropped, _with_request(snapshot, replace(request, constraints=left))


def _fewer(snapshot: PoolSnapshot, request: SlotRequest) -> Iterator[tuple[str, PoolSnapshot]]:
    """The most first."""
    free = FreeSlots(snapshot.agents).narrowed(request.constraints)
    blocks = {len(free.free_slots(agent)) for agent in free.agents}
    sizes = {*blocks, sum(len(free.free_slots(agent)) for agent in free.agents), request.slots // 2, 4, 2, 1}
    for slots in sorted((size for size in sizes if 0 < size < request.slots), reverse=True):
        yield str(slots), _with_request(snapshot, replace(request, slots=slots))


def _time_limits(snapshot: PoolSnapshot, request: SlotRequest, decided: PoolPlan) -> Iterator[tuple[str, PoolSnapshot]]:
    """In whole minutes, until the one for which places are reserved starts."""
    for starts_at in decided.starts_by.values():
        minutes = int((starts_at - snapshot.at - _MARGIN_S) // 60)
        if minutes and (request.time_limit is None or minutes * 60 < request.time_limit):
            yield f"{minutes}m", _with_request(snapshot, replace(request, time_limit=minutes * 60.0))


def _caps(snapshot: PoolSnapshot, request: SlotRequest) -> Iterator[tuple[str, PoolSnapshot]]:
    """To what the job holds and this one."""
    job = snapshot.jobs[request.job_id]
    if job.max_slots is not None:
        of_job = (each for each in snapshot.requests if each.job_id == job.id and each.phase is not Phase.PENDING)
        cap = sum(each.slots for each in of_job) + request.slots
        if cap > job.max_slots:
            yield str(cap), _with_job(snapshot, replace(job, max_slots=cap))


def _priorities(snapshot: PoolSnapshot, request: SlotRequest) -> Iterator[tuple[str, PoolSnapshot]]:
    """The least urgent first: just before each that there is."""
    job = snapshot.jobs[request.job_id]
    if in_turns(snapshot.rules.policy):
        most = job.most_urgent
        there = {other.priority - 1 for other in snapshot.jobs.values()}
        for priority in sorted((each for each in there if most <= each < job.priority), reverse=True):
            yield str(priority), _with_job(snapshot, replace(job, priority=priority))


def _weights(snapshot: PoolSnapshot, request: SlotRequest) -> Iterator[tuple[str, PoolSnapshot]]:
    job = snapshot.jobs[request.job_id]
    if not in_turns(snapshot.rules.policy):
        for times in _TIMES:
            yield f"{job.weight * times:g}", _with_job(snapshot, replace(job, weight=job.weight * times))


def _with_job(snapshot: PoolSnapshot, job: PoolJob) -> PoolSnapshot:
    return replace(snapshot, jobs={**snapshot.jobs, job.id: job})


def _with_request(snapshot: PoolSnapshot, request: SlotRequest) -> PoolSnapshot:
    changed = (request if each.allocation_id == request.allocation_id else each for each in snapshot.requests)
    return replace(snapshot, requests=tuple(changed))
