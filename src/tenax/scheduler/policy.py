"""What a policy is: the rule by which the requests of a pool compete.

Rules:
- A policy is a function of the snapshot, deterministic, and changes nothing.
- What it answers keeps to ``PoolPlan``: placements fit all at once, a gang whole or not at all; only preemptible
  requests are asked to leave; every other pending request has a reason.
- It uses the one fitting there is (``fitting``), so that what is placed never depends on who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Protocol

from tenax.ids import AllocationId, JobId
from tenax.scheduler import reasons
from tenax.scheduler.holdings import Holdings
from tenax.scheduler.snapshot import Phase, PlacedMember, PoolAgent, PoolPlan, PoolSnapshot, SlotRequest, place_of

#: Given the agents that a pool has: its plan, without reasons.
Placer = Callable[[tuple[PoolAgent, ...]], PoolPlan]


class SchedulingPolicy(Protocol):
    """One way to share a pool."""

    #: As the settings of a pool spell it.
    name: ClassVar[str]
    #: Whether jobs come one after the other, by priority: its pools have a usual one, and may take slots from less
    #: urgent jobs. Else they share the slots by weight, and nobody is ahead of anybody.
    in_turns: ClassVar[bool]
    #: Whether it asks running requests to leave whatever ``PoolRules.preemption`` says.
    always_preempts: ClassVar[bool]
    #: Whether it looks at what jobs have held so far (``PoolJob.attained``).
    counts_attained: ClassVar[bool]

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        """What to place, whom to ask to leave, and why the rest waits."""

    def placer(self, snapshot: PoolSnapshot) -> Placer:
        """What `plan` places and whom it asks to leave, were the pool's agents others; why the rest waits is left out.

        What hangs on no agent is looked at once.
        """

    def changes_at(self, snapshot: PoolSnapshot) -> float | None:
        """When the plan would be another by the time alone, as ``PoolSnapshot.at``; None: never."""

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        """All requests in the order in which they come to their turn; for the queue that people see."""


def arrival_key(snapshot: PoolSnapshot, request: SlotRequest) -> tuple[int, float, bool, float, str]:
    """The place of a request where priorities do not count: its owner's turn, its place, time of asking, its name.

    What goes on, or tries again, comes before what its job has not begun: it ends sooner, or is known to fail.
    """
    return (snapshot.jobs[request.job_id].turn, place_of(snapshot, request), *_key_at_place(request))


def _key_at_place(request: SlotRequest) -> tuple[bool, float, str]:
    """The order of those who have the same place."""
    return (
        request.phase is Phase.PENDING and not request.has_run,
        request.requested_at,
        request.allocation_id,
    )


def queue_key(snapshot: PoolSnapshot, request: SlotRequest) -> tuple[int, int, float, bool, float, str]:
    """The order of a request: priority, and its `arrival_key`."""
    return (priority_of(snapshot, request), *arrival_key(snapshot, request))


def in_order(snapshot: PoolSnapshot, requests: Iterable[SlotRequest]) -> list[SlotRequest]:
    """Sorted by their `queue_key`; its first part is made once for all of a job that share it."""
    of_job: dict[object, list[SlotRequest]] = {}
    for request in requests:
        plain = request.priority is None and not request.again
        same = request.job_id if plain else (request.priority, request.allocation_id)
        of_job.setdefault(same, []).append(request)
    by_place: dict[tuple[int, int, float], list[SlotRequest]] = {}
    for those in of_job.values():
        first = those[0]
        place = priority_of(snapshot, first), snapshot.jobs[first.job_id].turn, place_of(snapshot, first)
        by_place.setdefault(place, []).extend(those)
    return [request for place in sorted(by_place) for request in sorted(by_place[place], key=_key_at_place)]


def priority_of(snapshot: PoolSnapshot, request: SlotRequest) -> int:
    """That of its job, or what its policy gives it instead."""
    return snapshot.jobs[request.job_id].priority if request.priority is None else request.priority


def planned(
    placements: Mapping[AllocationId, tuple[PlacedMember, ...]],
    preempt: Mapping[AllocationId, str],
    waiting: Mapping[AllocationId, str],
    causes: Mapping[AllocationId, reasons.Cause],
    holdings: Holdings,
    reserved: reasons.Reserved | None,
) -> PoolPlan:
    """A plan, with what the causes say of those that wait; promised is what ``holdings`` has counted of them."""
    kinds = [(name, type(causes[name])) for name in waiting]
    return PoolPlan(
        placements,
        preempt,
        waiting,
        frozenset(name for name, kind in kinds if kind is reasons.Releasing),
        holdings.counted_of(waiting.keys()),
        frozenset(name for name, kind in kinds if kind is reasons.Capped or kind is reasons.BeyondLimit),
        {reserved.request.allocation_id: reserved.starts_at} if reserved and reserved.starts_at is not None else {},
    )


def jobs_ahead(order: tuple[SlotRequest, ...]) -> dict[JobId, int]:
    """For each job, how many others have a request before its first one."""
    ahead: dict[JobId, int] = {}
    for request in order:
        ahead.setdefault(request.job_id, len(ahead))
    return ahead
