"""A trace under other rules, other quotas or other machines, from event to event: the real scheduler plans each time.

Rules:
- The same trace and the same scenario give the same outcome.
- Work takes as long as it was recorded to; of what is asked to leave, the slots are free at once, and so many seconds
  of its work are done anew.
- Use of quotas begins with the trace: nobody has used anything before it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tenax.ids import AllocationId, JobId, PoolName, SlotId
from tenax.scheduler.quotas import Association, LimitKey, Quotas, rules_for, with_quotas
from tenax.scheduler.registry import can_preempt, changes_at, counts_attained, plan_all
from tenax.scheduler.simulation.trace import Piece, Trace, TraceAgent, TraceAttempt, pieces_of
from tenax.scheduler.simulation.use import UseOverTime, next_month
from tenax.scheduler.snapshot import (
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolPlan,
    PoolRules,
    PoolSnapshot,
    SlotRequest,
)

#: Seconds that a restart costs, where nobody says otherwise.
RESTART_S = 30.0
_ARRIVES, _PLANS_AGAIN = 0, -1


@dataclass(frozen=True, slots=True)
class NamedQuotas:
    """Quotas, and the numbers that they give to people, workspaces and groups."""

    quotas: Quotas
    users: Mapping[str, int]
    workspaces: Mapping[str, int]
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a trace is replayed under."""

    name: str
    rules: Mapping[PoolName, PoolRules]
    agents: tuple[TraceAgent, ...]
    quotas: NamedQuotas | None = None
    restart_s: float = RESTART_S


@dataclass(frozen=True, slots=True)
class Served:
    """What became of a piece of work."""

    attempt: TraceAttempt
    requested_at: float
    #: When it held its slots, from and until; between two of them it waited again.
    spans: tuple[tuple[float, float], ...]
    #: How often it was asked to leave.
    preemptions: int

    @property
    def ended_at(self) -> float:
        return self.spans[-1][1]

    @property
    def held_s(self) -> float:
        return sum(until - since for since, until in self.spans)

    @property
    def waited_s(self) -> float:
        """In all."""
        return sum(until - since for since, until in self.waits())

    def waits(self) -> list[tuple[float, float]]:
        """When it waited, from and until."""
        ends = [self.requested_at, *(until for _, until in self.spans)]
        return [(end, since) for end, (since, _) in zip(ends, self.spans, strict=False)]


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What became of all."""

    name: str
    slots: int
    served: tuple[Served, ...]
    #: What never ran to its end, and what would have come of it, with the reason that the scheduler gave last.
    unserved: tuple[tuple[TraceAttempt, str], ...] = ()
    #: It is no replay: who was asked to leave is not known.
    happened: bool = False


def recorded(trace: Trace) -> ReplayOutcome:
    """What became of a trace in truth."""
    served = tuple(Served(each, each.requested_at, ((each.started_at, each.ended_at),), 0) for each in trace.attempts)
    return ReplayOutcome("as recorded", sum(agent.slots for agent in trace.agents), served, happened=True)


def replay(trace: Trace, scenario: Scenario, progress: Callable[[int], None] = lambda ended: None) -> ReplayOutcome:
    """What becomes of a trace; ``progress`` hears how many pieces of work have ended, now and then."""
    return _Replay(trace, scenario, progress).run()


class _Life:
    """A piece of work on its way."""

    def __init__(self, requested_at: float, left_s: float) -> None:
        self.requested_at = requested_at
        self.left_s = left_s
        #: Since when it holds what it holds now.
        self.since = 0.0
        self.spans: list[tuple[float, float]] = []


class _Pool:
    """What is in a pool now."""

    def __init__(self, name: PoolName, scenario: Scenario) -> None:
        self.agents = {
            each.id: PoolAgent(
                each.id,
                tuple(SlotId(number) for number in range(each.slots)),
                kind=each.kind,
                labels=each.labels,
                devices={SlotId(number): device for number, device in enumerate(each.devices)},
            )
            for each in scenario.agents
            if each.pool == name
        }
        self.rules = scenario.rules.get(name, PoolRules())
        self.requests: dict[AllocationId, SlotRequest] = {}
        self.jobs: dict[JobId, PoolJob] = {}
        #: Requests of each job.
        self.open: Counter[JobId] = Counter()
        self.waits: dict[AllocationId, str] = {}
        #: When it is looked at next, though nothing comes or ends.
        self.next_pass_at = 0.0


class _Replay:
    def __init__(self, trace: Trace, scenario: Scenario, progress: Callable[[int], None]) -> None:
        self._pieces = pieces_of(trace.attempts)
        self._scenario = scenario
        self._progress = progress
        self._groups = trace.groups
        self._followers: dict[int, list[int]] = {}
        for number, piece in enumerate(self._pieces):
            if piece.follows is not None:
                self._followers.setdefault(piece.follows, []).append(number)
        self._pools = {name: _Pool(name, scenario) for name in {piece.attempt.pool for piece in self._pieces}}
        #: A time, the number of a piece, and which of its starts it is the end of; or that it comes, or had to leave.
        self._events: list[tuple[float, int, int]] = []
        self._starts = [0] * len(self._pieces)
        self._lives: dict[AllocationId, _Life] = {}
        self._first_ask: dict[JobId, float] = {}
        #: Slot seconds of what is over, by job.
        self._attained: dict[JobId, float] = {}
        self._served: list[Served] = []
        self._now = 0.0
        self._use = UseOverTime(scenario.quotas.quotas.half_life_s) if scenario.quotas else None

    def run(self) -> ReplayOutcome:
        self._events = [
            (piece.attempt.requested_at, number, _ARRIVES)
            for number, piece in enumerate(self._pieces)
            if piece.follows is None
        ]
        heapq.heapify(self._events)
        while self._events:
            self._now, number, start = heapq.heappop(self._events)
            touched = self._happens(number, start)
            while self._events and self._events[0][0] == self._now:
                touched |= self._happens(*heapq.heappop(self._events)[1:])
            if touched:
                self._schedule(touched)
        slots = sum(agent.slots for agent in self._scenario.agents)
        return ReplayOutcome(self._scenario.name, slots, tuple(self._served), tuple(self._unserved()))

    def _unserved(self) -> Iterable[tuple[TraceAttempt, str]]:
        left = [(int(name), pool.waits.get(name, "")) for pool in self._pools.values() for name in pool.requests]
        while left:
            number, reason = left.pop(0)
            yield self._pieces[number].attempt, reason
            left += [(each, "what it follows never ran") for each in self._followers.get(number, ())]

    def _happens(self, number: int, start: int) -> set[PoolName]:
        """The pools where something changed."""
        attempt = self._pieces[number].attempt
        if start == _ARRIVES:
            self._arrive(number, self._pieces[number])
        elif start == self._starts[number]:
            self._end(number)
        elif start != _PLANS_AGAIN:
            # It was asked to leave since then.
            return set()
        return {attempt.pool}

    def _arrive(self, number: int, piece: Piece) -> None:
        attempt, name, pool = piece.attempt, AllocationId(str(number)), self._pools[piece.attempt.pool]
        asked_at = self._first_ask.setdefault(attempt.job_id, self._now)
        pool.open[attempt.job_id] += 1
        if attempt.job_id not in pool.jobs:
            pool.jobs[attempt.job_id] = PoolJob(
                attempt.job_id, attempt.priority, asked_at * 1e6, attempt.max_slots, attempt.weight
            )
        has_run = piece.follows is not None and self._pieces[piece.follows].attempt.task_id == attempt.task_id
        again = has_run and attempt.time_limit_s is not None and not can_preempt(pool.rules)
        pool.requests[name] = SlotRequest(
            name,
            attempt.job_id,
            attempt.slots,
            self._now,
            preemptible=attempt.preemptible,
            single_node=attempt.single_node,
            constraints=attempt.constraints,
            time_limit=attempt.time_limit_s,
            again=again,
            has_run=has_run,
        )
        self._lives[name] = _Life(self._now, piece.work_s)

    def _end(self, number: int) -> None:
        attempt, name = self._pieces[number].attempt, AllocationId(str(number))
        pool, life = self._pools[attempt.pool], self._lives[name]
        self._free(pool, name)
        del self._lives[name]
        del pool.requests[name]
        pool.open[attempt.job_id] -= 1
        if not pool.open[attempt.job_id]:
            del pool.jobs[attempt.job_id]
        spans = (*life.spans, (life.since, self._now))
        self._served.append(Served(attempt, life.requested_at, spans, len(life.spans)))
        for follower in self._followers.get(number, ()):
            heapq.heappush(self._events, (self._now + self._pieces[follower].gap_s, follower, _ARRIVES))
        if len(self._served) % 100 == 0:
            self._progress(len(self._served))

    def _schedule(self, touched: set[PoolName]) -> None:
        quotas = self._scenario.quotas
        # Limits and turns are those of all pools.
        names = sorted(self._pools if quotas else touched)
        for snapshot, decided in plan_all(self._bound([self._snapshot(name) for name in names])):
            pool = self._pools[snapshot.pool]
            self._carry_out(pool, decided)
            if decided.waiting:
                self._look_again(pool, snapshot, changes_at(self._snapshot(snapshot.pool)))

    def _look_again(self, pool: _Pool, snapshot: PoolSnapshot, at: float | None) -> None:
        """What waits is looked at when time alone may have changed something: by its policy, or as a month begins."""
        used_up = any(limit.spent and not limit.closed for limit in snapshot.limits.values())
        moments = [moment for moment in (at, next_month(self._now) if used_up else None) if moment is not None]
        waiting = next((name for name, each in pool.requests.items() if each.phase is Phase.PENDING), None)
        if moments and waiting is not None and pool.next_pass_at != min(moments):
            pool.next_pass_at = min(moments)
            heapq.heappush(self._events, (pool.next_pass_at, int(waiting), _PLANS_AGAIN))

    def _snapshot(self, name: PoolName) -> PoolSnapshot:
        pool = self._pools[name]
        jobs = self._with_attained(pool) if counts_attained(pool.rules.policy) else pool.jobs
        return PoolSnapshot(
            name, tuple(pool.agents.values()), jobs, tuple(pool.requests.values()), pool.rules, at=self._now
        )

    def _with_attained(self, pool: _Pool) -> dict[JobId, PoolJob]:
        """Its jobs with what they have held until now."""
        held = {job_id: self._attained.get(job_id, 0.0) for job_id in pool.jobs}
        for name, request in pool.requests.items():
            if request.phase is Phase.PLACED:
                held[request.job_id] += request.slots * (self._now - self._lives[name].since)
        return {job_id: replace(job, attained=held[job_id]) for job_id, job in pool.jobs.items()}

    def _bound(self, snapshots: list[PoolSnapshot]) -> list[PoolSnapshot]:
        named = self._scenario.quotas
        if named is None or self._use is None:
            return snapshots
        self._use.advance(self._now)
        associations = {
            request.job_id: self._association(self._pieces[int(name)].attempt)
            for pool in self._pools.values()
            for name, request in pool.requests.items()
        }
        groups = {
            named.users[user]: frozenset(named.groups[group] for group in groups if group in named.groups)
            for user, groups in self._groups.items()
            if user in named.users
        }
        names = _names(named, set(associations.values()))
        its = rules_for(named.quotas, self._use.used(), associations, groups, names)
        return [with_quotas(snapshot, its) for snapshot in snapshots]

    def _association(self, attempt: TraceAttempt) -> Association:
        named = self._scenario.quotas
        assert named is not None
        return named.users[attempt.user], named.workspaces[attempt.workspace]

    def _carry_out(self, pool: _Pool, decided: PoolPlan) -> None:
        pool.waits = dict(decided.waiting)
        for name in decided.preempt:
            life = self._lives[name]
            self._free(pool, name)
            life.spans.append((life.since, self._now))
            ran_s = self._now - life.since
            life.left_s += min(self._scenario.restart_s, ran_s) - ran_s
            # Its end does not come any more; what it left is somebody's, at once.
            self._starts[int(name)] += 1
            heapq.heappush(self._events, (self._now, int(name), _PLANS_AGAIN))
            request = pool.requests[name]
            pool.requests[name] = replace(
                request, phase=Phase.PENDING, members=(), ends_at=None, requested_at=self._now, left_before=True
            )
        for name, members in decided.placements.items():
            if name not in decided.preempt:
                self._start(pool, name, members)

    def _start(self, pool: _Pool, name: AllocationId, members: tuple[PlacedMember, ...]) -> None:
        number, life, request = int(name), self._lives[name], pool.requests[name]
        ends_at = None if request.time_limit is None else self._now + request.time_limit
        waited = self._now - request.requested_at
        pool.requests[name] = replace(request, phase=Phase.PLACED, members=members, ends_at=ends_at, waited=waited)
        for member in members:
            agent = pool.agents[member.agent_id]
            pool.agents[member.agent_id] = replace(
                agent,
                in_use=agent.in_use | set(member.slots),
                aux_in_use=agent.aux_in_use + (not member.slots),
            )
        if self._use is not None:
            self._use.begin(self._association(self._pieces[number].attempt), request.slots, self._now)
        life.since = self._now
        self._starts[number] += 1
        heapq.heappush(self._events, (self._now + max(0.0, life.left_s), number, self._starts[number]))

    def _free(self, pool: _Pool, name: AllocationId) -> None:
        request = pool.requests[name]
        held = request.slots * (self._now - self._lives[name].since)
        self._attained[request.job_id] = self._attained.get(request.job_id, 0.0) + held
        for member in request.members:
            agent = pool.agents[member.agent_id]
            pool.agents[member.agent_id] = replace(
                agent,
                in_use=agent.in_use - set(member.slots),
                aux_in_use=agent.aux_in_use - (not member.slots),
            )
        if self._use is not None:
            self._use.end(self._association(self._pieces[int(name)].attempt), request.slots, self._now)


def _names(named: NamedQuotas, there: set[Association]) -> dict[LimitKey, str]:
    """Whose each limit is, for reasons."""
    users = {number: name for name, number in named.users.items()}
    workspaces = {number: name for name, number in named.workspaces.items()}
    names: dict[LimitKey, str] = {("group", number, 0): f"the group {name}" for name, number in named.groups.items()}
    for user, workspace in there:
        names["user", user, 0] = f"the user {users[user]}"
        names["workspace", workspace, 0] = f"the workspace {workspaces[workspace]}"
        names["association", user, workspace] = f"{users[user]} in {workspaces[workspace]}"
    return names
