"""When a request that waits is likely to start: the pool is played on, by how long runs take.

Rules:
- It is played with the functions that schedule: what ends gives its slots back, and the next plan is carried out.
- How long a run takes is what is best known of it: its own progress, else how long those of its job took or take,
  else what is usual in the pool, else, of one that runs, that it is half way. None takes longer than its time limit.
- An answer is as sure as the least that it stands on; nothing is decided by it. What limits promise is no guess, and
  `PoolPlan.starts_by` says it.
- A search asks for its next trial when one has ended: what is to come of the jobs ahead is waited for, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from tenax.ids import AllocationId, JobId
from tenax.scheduler.reasons import WaitClass, class_of
from tenax.scheduler.registry import changes_at, counts_attained, plan
from tenax.scheduler.snapshot import Phase, PoolJob, PoolSnapshot, SlotRequest, applied

#: Seconds in which what was asked to leave is gone, as a rule.
_LEAVING_S = 30.0
#: What has run for less says nothing of how long it takes.
_TELLS_S = 60.0
#: Ends that are looked at; further ahead nobody can say anything.
MAX_ENDS = 400
#: Requests that are planned in all, as a plan is of all requests of the pool.
_MAX_PLANNED = 200_000


class Sureness(str, Enum):
    """What an answer stands on."""

    #: On the progress of what runs, or on how long runs of the same jobs took.
    LIKELY = "LIKELY"
    #: On what is usual in the pool, or on how long something has run already.
    GUESS = "GUESS"


@dataclass(frozen=True, slots=True)
class Spans:
    """How long runs take, in seconds, as far as it is known."""

    #: For how long those that run have held their slots.
    held: Mapping[AllocationId, float] = field(default_factory=dict)
    #: What is left of those that run, by their progress.
    left: Mapping[AllocationId, float] = field(default_factory=dict)
    #: The median of those of a job that have ended.
    of_job: Mapping[JobId, float] = field(default_factory=dict)
    #: The median of the pool.
    usual: float | None = None
    #: How many requests a job will make when those that it has made have ended.
    to_come: Mapping[JobId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LikelyStart:
    """When a request starts, as it looks."""

    #: In seconds, as `PoolSnapshot.at`.
    at: float
    sureness: Sureness


def likely_start(snapshot: PoolSnapshot, name: AllocationId, spans: Spans) -> LikelyStart | None:
    """None: it never starts as things are, or nobody can say."""
    course = _Course(snapshot, spans)
    for _ in range(min(MAX_ENDS, _MAX_PLANNED // len(snapshot.requests))):
        decided = plan(course.snapshot)
        if name in decided.placements:
            return LikelyStart(course.snapshot.at, course.sureness)
        if class_of(decided.waiting.get(name, "")) is not WaitClass.WAIT:
            return None
        course.carry_out(applied(course.snapshot, decided))
        if not course.go_on():
            return None
    return None


class _Course:
    """A pool that is played on. Mutable; one answer owns one."""

    def __init__(self, snapshot: PoolSnapshot, spans: Spans) -> None:
        self.snapshot = snapshot
        self.sureness = Sureness.LIKELY
        self._spans = spans
        self._to_come = Counter(spans.to_come)
        #: Of a job of which nothing has ended: as long as that of it which runs takes by its progress.
        self._of_job = {
            request.job_id: spans.left[request.allocation_id] + spans.held.get(request.allocation_id, 0.0)
            for request in snapshot.requests
            if request.allocation_id in spans.left
        } | dict(spans.of_job)
        self._made = 0
        #: When each that holds slots is gone.
        self._ends: dict[AllocationId, float] = {}
        #: Those that were asked to leave for others: they come back.
        self._come_back: set[AllocationId] = set()
        for request in snapshot.requests:
            if request.phase is not Phase.PENDING:
                self._ends[request.allocation_id] = self._end_of(request)

    def carry_out(self, after: PoolSnapshot) -> None:
        """What was placed runs, what was asked to leave is leaving."""
        before = {request.allocation_id: request.phase for request in self.snapshot.requests}
        for request in after.requests:
            name = request.allocation_id
            if request.phase is Phase.RELEASING and before[name] is not Phase.RELEASING:
                self._ends[name] = min(self._ends[name], after.at + _LEAVING_S)
                self._come_back.add(name)
            elif request.phase is Phase.PLACED and before[name] is Phase.PENDING:
                self._ends[name] = self._end_of(request)
        self.snapshot = after

    def go_on(self) -> bool:
        """To the next end; False: nothing ends."""
        known = [at for at in self._ends.values() if at != float("inf")]
        if not known:
            return False
        at = max(self.snapshot.at, min(known))
        changes = changes_at(self.snapshot)
        if changes is not None and self.snapshot.at < changes < at:
            at = changes
        jobs = self._jobs_at(at)
        gone = {name for name, end in self._ends.items() if end <= at}
        requests: list[SlotRequest] = []
        for request in self.snapshot.requests:
            if request.allocation_id not in gone:
                requests.append(request)
            elif request.allocation_id in self._come_back:
                self._come_back.discard(request.allocation_id)
                requests.append(replace(_anew(request, request.allocation_id, at), left_before=True))
            elif self._to_come[request.job_id] > 0:
                self._to_come[request.job_id] -= 1
                self._made += 1
                requests.append(_anew(request, AllocationId(f"to come {self._made}"), at))
        left = [request for request in self.snapshot.requests if request.allocation_id in gone]
        for name in gone:
            del self._ends[name]
        self.snapshot = replace(_without(self.snapshot, left), jobs=jobs, requests=tuple(requests), at=at)
        return True

    def _jobs_at(self, at: float) -> Mapping[JobId, PoolJob]:
        """The jobs with what they will have held by then."""
        if not counts_attained(self.snapshot.rules.policy):
            return self.snapshot.jobs
        held = Counter[JobId]()
        for request in self.snapshot.requests:
            held[request.job_id] += 0 if request.phase is Phase.PENDING else request.slots
        more = at - self.snapshot.at
        return {
            name: replace(job, attained=job.attained + held[name] * more) if held[name] else job
            for name, job in self.snapshot.jobs.items()
        }

    def _end_of(self, request: SlotRequest) -> float:
        at = self.snapshot.at
        most = float("inf") if request.ends_at is None else max(at, request.ends_at)
        if request.phase is Phase.RELEASING:
            return min(most, at + _LEAVING_S)
        span = self._spans.left.get(request.allocation_id)
        if span is not None:
            return min(most, at + span)
        held = self._spans.held.get(request.allocation_id, 0.0)
        of_job = self._of_job.get(request.job_id)
        if of_job is not None and of_job > held:
            return min(most, at + of_job - held)
        if most > at + (self._spans.usual or 0.0):
            self.sureness = Sureness.GUESS
        if self._spans.usual is not None and self._spans.usual > held:
            return min(most, at + self._spans.usual - held)
        return min(most, at + held) if held >= _TELLS_S else most


def _anew(request: SlotRequest, name: AllocationId, at: float) -> SlotRequest:
    return replace(
        request,
        allocation_id=name,
        phase=Phase.PENDING,
        members=(),
        requested_at=at,
        charged=None,
        ends_at=None,
        left_before=False,
        waited=0.0,
    )


def _without(snapshot: PoolSnapshot, left: Iterable[SlotRequest]) -> PoolSnapshot:
    """The pool without what these held."""
    free: dict[str, set[int]] = {}
    auxiliary: Counter[str] = Counter()
    for request in left:
        for member in request.members:
            free.setdefault(member.agent_id, set()).update(member.slots)
            auxiliary[member.agent_id] += not member.slots
    agents = (
        replace(agent, in_use=agent.in_use - free[agent.id], aux_in_use=agent.aux_in_use - auxiliary[agent.id])
        if agent.id in free
        else agent
        for agent in snapshot.agents
    )
    return replace(snapshot, agents=tuple(agents))
