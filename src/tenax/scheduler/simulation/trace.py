"""What a cluster did, as values: its machines, its rules, and what each attempt asked for and held.

Rules:
- Times are seconds since 1970. An attempt that was never placed, or has not ended, is in no trace: nobody knows how
  long it takes.
- A task runs its attempts one after the other. Work of one job that was asked for as something else of it ended (the
  next trial of a search, the rest of a trial that was preempted) comes of that end: the sooner, where that is sooner.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass, field

from tenax.ids import AgentId, JobId, PoolName
from tenax.scheduler.devices import DeviceKind, SlotDevice
from tenax.scheduler.snapshot import DEFAULT_PRIORITY, Constraints, PoolRules

#: What is asked for within so many seconds of another's end came of it.
FOLLOWS_WITHIN_S = 60.0
#: Greater than that of any attempt.
_NO_NUMBER = 1 << 62


@dataclass(frozen=True, slots=True)
class TraceAgent:
    """A machine with the slots that it has for work."""

    id: AgentId
    pool: PoolName
    slots: int
    kind: DeviceKind = DeviceKind.CPU
    labels: Mapping[str, str] = field(default_factory=dict)
    #: What its slots are, in their order; those behind are not known.
    devices: tuple[SlotDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceAttempt:
    """What an attempt asked for, and when it had it."""

    task_id: str
    job_id: JobId
    user: str
    workspace: str
    pool: PoolName
    slots: int
    requested_at: float
    started_at: float
    ended_at: float
    priority: int = DEFAULT_PRIORITY
    weight: float = 1.0
    max_slots: int | None = None
    single_node: bool = False
    preemptible: bool = True
    time_limit_s: float | None = None
    constraints: Constraints | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What a cluster did in a time."""

    rules: Mapping[PoolName, PoolRules]
    agents: tuple[TraceAgent, ...]
    #: In the order in which they were asked for.
    attempts: tuple[TraceAttempt, ...]
    #: The groups of each user who is in one.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """What an attempt did, apart from when it could."""

    attempt: TraceAttempt
    work_s: float
    #: The number of the piece whose end it comes of; None: it came by itself, when it was asked for.
    follows: int | None
    #: Seconds between that end and the request.
    gap_s: float


def pieces_of(attempts: tuple[TraceAttempt, ...]) -> list[Piece]:
    """The work of attempts, in the order in which they were asked for; what a piece follows stands before it."""
    last_of_task: dict[str, int] = {}
    #: Of each job: when its attempts ended, in that order, with their numbers.
    ends: dict[JobId, list[tuple[float, int]]] = {}
    pieces: list[Piece] = []
    for number, attempt in enumerate(attempts):
        work_s = max(0.0, attempt.ended_at - attempt.started_at)
        before = last_of_task.get(attempt.task_id)
        of_job = ends.setdefault(attempt.job_id, [])
        if before is None:
            before = _latest(of_job, attempt.requested_at)
        gap_s = 0.0 if before is None else max(0.0, attempt.requested_at - attempts[before].ended_at)
        pieces.append(Piece(attempt, work_s, before, gap_s))
        last_of_task[attempt.task_id] = number
        insort(of_job, (attempt.ended_at, number))
    return pieces


def _latest(ends: list[tuple[float, int]], at: float) -> int | None:
    """The number of what ended last until then, where that was just before."""
    place = bisect_right(ends, (at, _NO_NUMBER))
    if not place or at - ends[place - 1][0] > FOLLOWS_WITHIN_S:
        return None
    return ends[place - 1][1]
