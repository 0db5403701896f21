"""A cluster in virtual time: the real scheduler and the real search, everything around them as values.

Time goes from event to event. A run works for a while, and is over; one that is asked to leave saves first, and what it
has done so far is kept. Slots that are given twice fail at once (``Pool.place``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tenax.ids import AllocationId, JobId
from tenax.scheduler.snapshot import Phase, PoolAgent, PoolRules
from tests.kits.builders.pool import Pool


@dataclass
class Work:
    """What a request has to do before it is over, in units of virtual time."""

    left: float
    since: float = 0.0
    starts: int = 0
    preemptions: int = 0
    #: For how long it held its slots each time before it was asked to leave, and why it was.
    held_before: list[tuple[float, str]] = field(default_factory=list)
    ended_at: float | None = None
    #: For how long it has waited for slots, in all.
    waited: float = 0.0
    #: Raised with each placement and release, so that events of an earlier placement are recognised as stale.
    epoch: int = 0


class Cluster:
    """Events, a pool, and the work of each request."""

    def __init__(self, agents: list[PoolAgent], rules: PoolRules, saving: float = 1.0) -> None:
        self.pool = Pool(agents, rules)
        self.now = 0.0
        self.saving = saving
        self.work: dict[AllocationId, Work] = {}
        self.busy = 0.0
        #: By job, of what is over.
        self.attained: dict[JobId, float] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, time: float, do: Callable[[], None]) -> None:
        """Do something at a time."""
        self._number += 1
        heapq.heappush(self._events, (time, self._number, do))

    def submit(self, time: float, name: str, slots: int, duration: float, job: str, **changes: object) -> None:
        """A request that comes at a time and has ``duration`` to work."""

        def arrive() -> None:
            self.pool.ask(name, slots, job, requested_at=self.now, **changes)
            self.work[AllocationId(name)] = Work(duration)

        self.at(time, arrive)

    def run(self, limit: int = 100_000) -> None:
        """Live until nothing happens any more; more than ``limit`` events are a loop."""
        for _ in range(limit):
            if not self._events:
                return
            time, _, do = heapq.heappop(self._events)
            self.now = time
            do()
            while self._events and self._events[0][0] == time:
                heapq.heappop(self._events)[2]()
            self._schedule()
        raise AssertionError(f"no end after {limit} events at time {self.now}")

    def _schedule(self) -> None:
        self.pool.at = self.now
        self._count_attained()
        decided = self.pool.plan()
        self.pool.apply(decided)
        for name, reason in decided.preempt.items():
            self._interrupt(name, reason)
        for name in decided.placements:
            self._begin(name)

    def _count_attained(self) -> None:
        """What each job has held until now."""
        held = dict(self.attained)
        for name, request in self.pool.requests.items():
            if request.phase is Phase.PLACED:
                held[request.job_id] = held.get(request.job_id, 0.0) + self._held(name)
        for job_id, job in self.pool.jobs.items():
            self.pool.jobs[job_id] = replace(job, attained=held.get(job_id, 0.0))

    def _held(self, name: AllocationId) -> float:
        """Slot units of time that a request has held since it began."""
        return (self.now - self.work[name].since) * self.pool.requests[name].slots

    def _let_go(self, name: AllocationId) -> None:
        """It is over, or leaves: what it held counts."""
        job_id, held = self.pool.requests[name].job_id, self._held(name)
        self.busy += held
        self.attained[job_id] = self.attained.get(job_id, 0.0) + held

    def _begin(self, name: AllocationId) -> None:
        work = self.work[name]
        work.since = self.now
        work.starts += 1
        work.waited += self.pool.requests[name].waited
        work.epoch += 1
        self.at(self.now + work.left, self._once(work, lambda: self._finish(name)))

    def _finish(self, name: AllocationId) -> None:
        work = self.work[name]
        self._let_go(name)
        work.left, work.ended_at = 0.0, self.now
        self.pool.end(name)

    def _interrupt(self, name: AllocationId, reason: str) -> None:
        work = self.work[name]
        work.left -= self.now - work.since
        work.preemptions += 1
        work.held_before.append((self.now - work.since, reason))
        work.epoch += 1
        self._let_go(name)
        self.at(self.now + self.saving, self._once(work, lambda: self._requeue(name)))

    def _requeue(self, name: AllocationId) -> None:
        ended = self.pool.end(name)
        self.pool.requests[name] = replace(
            ended, phase=Phase.PENDING, members=(), requested_at=self.now, waited=0.0, left_before=True, has_run=True
        )

    def _once(self, work: Work, do: Callable[[], None]) -> Callable[[], None]:
        """Only while the work is where it was when this was asked for."""
        epoch = work.epoch

        def guarded() -> None:
            if work.epoch == epoch:
                do()

        return guarded
