"""The cluster as the scheduler sees it, kept in memory: loaded from rows, then kept current by the rows that changed.

Rules:
- Memory that took all changes is what a fresh load gives; the order of requests alone may be another.
- Rows say themselves that they changed: triggers note it in ``cluster_changes``, whoever wrote them. A reader asks for
  what its last transaction did not see and this one does, by transaction ids: what began earlier and was committed
  later is not skipped, and no wake-up has to arrive.
- What was read once is removed by the one who keeps memory: whoever takes over begins with a load.
- Memory is advice. A placement that rests on a row of yesterday breaks a key of the database (`placements.place`).

Not for several threads at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from asyncpg import Connection, Record

from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.master.store.database.queries import load
from tenax.scheduler.constraints import constraints_of
from tenax.scheduler.devices import DeviceKind, SlotDevice
from tenax.scheduler.reasons import is_for_another
from tenax.scheduler.registry import can_preempt, counts_attained
from tenax.scheduler.snapshot import (
    AgentState,
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolRules,
    PoolSnapshot,
    SlotRequest,
)

_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value", PoolAgent, SlotRequest, PoolJob)

Q = load("allocations")
_AGENTS = load("agents")


@dataclass(frozen=True, slots=True)
class ReadAt:
    """What a transaction sees."""

    #: Which transactions: a ``pg_snapshot``.
    snapshot: str
    #: Its time, in seconds since 1970.
    at: float


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """Rows of the cluster, as one transaction sees them. What was asked for and has no row is not there any more."""

    read: ReadAt
    #: Asked for; of attempts what they hold, and what they ask for. None: all there are, for a cache without any.
    of_agents: Collection[str] | None
    of_allocations: Collection[str] | None
    agents: Sequence[Record]
    held: Sequence[Record]
    requests: Sequence[Record]
    #: Whether rows said of something that it changed, whether it is of the cluster or not.
    were_noted: bool = True

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.agents) + len(self.held) + len(self.requests)


async def read_all(conn: Connection) -> ClusterRows:
    """All there is. All that is read in one transaction that sees one state."""
    read = ReadAt(**await conn.fetchrow(Q.seen))
    held = await conn.fetch(Q.placements)
    agents = await conn.fetch(_AGENTS.for_scheduling)
    requests = await conn.fetch(Q.open_requests)
    return ClusterRows(read, None, None, agents, held, requests)


async def read_changes(conn: Connection, since: ReadAt) -> ClusterRows:
    """What ``since`` did not see, and this transaction does."""
    read = ReadAt(**await conn.fetchrow(Q.seen))
    changed: dict[str, list[str]] = {"allocation": [], "job": [], "agent": []}
    for row in await conn.fetch(Q.cluster_changes, since.snapshot):
        changed[row["kind"]].append(row["id"])
    names = set(changed["allocation"])
    if names or changed["job"]:
        rows = await conn.fetch(Q.changed_requests, changed["allocation"], changed["job"])
        names.update(row["allocation_id"] for row in rows)
    named = list(names)
    return ClusterRows(
        read,
        changed["agent"],
        names,
        await conn.fetch(_AGENTS.for_scheduling_of, changed["agent"]) if changed["agent"] else (),
        await conn.fetch(Q.placements_of, named) if named else (),
        await conn.fetch(Q.requests_of, named) if named else (),
        were_noted=any(changed.values()),
    )


async def forget_changes(conn: Connection, read: ReadAt) -> None:
    """Remove what is noted of changes that were read."""
    await conn.execute(Q.forget_cluster_changes, read.snapshot)


@dataclass(slots=True)
class _Pool:
    agents: dict[AgentId, PoolAgent] = field(default_factory=dict)
    requests: dict[AllocationId, SlotRequest] = field(default_factory=dict)
    jobs: dict[JobId, PoolJob] = field(default_factory=dict)
    #: Requests of each job.
    counts: dict[JobId, int] = field(default_factory=dict)
    #: Made of the above, and of what jobs have held; None: something has changed since.
    snapshot: PoolSnapshot | None = None


class ClusterCache:
    """All pools. Mutable; the snapshots that it gives are not."""

    def __init__(
        self,
        rules: Mapping[str, PoolRules],
        aux_places: Mapping[str, int],
        prospects: Mapping[str, Sequence[PoolAgent]] | None = None,
    ) -> None:
        """``aux_places``: by pool, how many containers without slots each of its agents takes; ``prospects``: the
        agents of all machines that may be rented for it, of which those that are rented already are left out."""
        self._rules = rules
        self._aux_places = aux_places
        self._prospects = prospects or {}
        self._pools: dict[str, _Pool] = {}
        #: Where each of them is.
        self._pool_of_agent: dict[AgentId, str] = {}
        self._pool_of_request: dict[AllocationId, str] = {}
        #: What is not gone, by attempt, whatever became of that, and the attempts of each agent.
        self._held: dict[AllocationId, tuple[PlacedMember, ...]] = {}
        self._holders: dict[AgentId, set[AllocationId]] = {}
        self._attained: Mapping[JobId, float] = {}
        self._read = ReadAt("", 0.0)

    @property
    def read(self) -> ReadAt:
        """What the rows were seen by that it has."""
        return self._read

    @property
    def size(self) -> int:
        """Agents and requests."""
        return len(self._pool_of_agent) + len(self._pool_of_request)

    def pool_of(self, allocation_id: AllocationId) -> str | None:
        """Of an open request; None: it is not one."""
        return self._pool_of_request.get(allocation_id)

    def take(self, rows: ClusterRows) -> set[str]:
        """Be as these rows say; the pools that changed."""
        agents = self._take_held(rows)
        changed = set(self._take_agents(rows, agents)) | set(self._take_requests(rows))
        for pool in changed:
            its = self._pools[pool]
            its.snapshot = None
            if not its.agents and not its.requests:
                del self._pools[pool]
        self._read = rows.read
        return changed

    def snapshots(self, attained: Mapping[JobId, float]) -> list[PoolSnapshot]:
        """Every pool with an agent or a request, as of when the rows were read; quotas are not looked at.

        ``attained``: what jobs have held so far, for policies that ask for it.
        """
        if attained is not self._attained:
            self._attained = attained
            for pool, its in self._pools.items():
                if counts_attained(self._rules_of(pool).policy):
                    its.snapshot = None
        for pool, its in self._pools.items():
            if its.snapshot is None:
                its.snapshot = self._snapshot(pool, its)
        ordered = sorted(self._pools.items())
        return [replace(its.snapshot, at=self._read.at) for _, its in ordered if its.snapshot is not None]

    def differences(self, other: ClusterCache) -> list[str]:
        """What is not as ``other`` has it, for people; made for the same rules."""
        return [
            f"{noun} {name} of pool {pool}: {text}"
            for pool in sorted({*self._pools, *other._pools})
            for mine, others in [(self._pools.get(pool, _Pool()), other._pools.get(pool, _Pool()))]
            for noun, different in (
                ("agent", _different(mine.agents, others.agents)),
                ("request", _different(mine.requests, others.requests)),
                ("job", _different(mine.jobs, others.jobs)),
            )
            for name, text in different
        ]

    def _take_held(self, rows: ClusterRows) -> set[AgentId]:
        """The agents on which something else is held now."""
        new: dict[AllocationId, list[PlacedMember]] = {}
        for row in rows.held:
            member = PlacedMember(AgentId(row["agent_id"]), tuple(SlotId(slot) for slot in row["slots"]))
            new.setdefault(AllocationId(row["allocation_id"]), []).append(member)
        agents: set[AgentId] = set()
        for text in new if rows.of_allocations is None else rows.of_allocations:
            name = AllocationId(text)
            before, after = self._held.pop(name, ()), tuple(new.get(name, ()))
            if after:
                self._held[name] = after
            if before == after:
                continue
            for member in before:
                self._holders[member.agent_id].discard(name)
            for member in after:
                self._holders.setdefault(member.agent_id, set()).add(name)
            agents.update(member.agent_id for member in (*before, *after))
        return agents

    def _take_agents(self, rows: ClusterRows, others: Iterable[AgentId]) -> Iterator[str]:
        """The pools of those that changed; ``others``: on which something else is held."""
        new = {AgentId(row["agent_id"]): row for row in rows.agents}
        for text in new if rows.of_agents is None else rows.of_agents:
            name = AgentId(text)
            before, row = self._pool_of_agent.pop(name, None), new.get(name)
            if before is not None and (row is None or row["pool"] != before):
                del self._pools[before].agents[name]
                yield before
            if row is not None:
                pool = row["pool"]
                self._pool_of_agent[name] = pool
                agent = self._with_held(_agent(row, self._aux_places.get(pool, 100)))
                self._pools.setdefault(pool, _Pool()).agents[name] = agent
                yield pool
        for name in others:
            its = self._pool_of_agent.get(name)
            if its is not None and name not in new:
                there = self._pools[its].agents
                there[name] = self._with_held(there[name])
                yield its

    def _take_requests(self, rows: ClusterRows) -> Iterator[str]:
        new = {row["allocation_id"]: row for row in rows.requests}
        for text in rows.of_allocations or ():
            if text not in new:
                yield from self._drop(AllocationId(text))
        # In their order: the usual one, where all were read.
        for text, row in new.items():
            name, pool = AllocationId(text), row["pool"]
            job = _job(row)
            if self._pool_of_request.get(name) != pool or self._pools[pool].requests[name].job_id != job.id:
                yield from self._drop(name)
                its = self._pools.setdefault(pool, _Pool())
                its.counts[job.id] = its.counts.get(job.id, 0) + 1
                self._pool_of_request[name] = pool
            its = self._pools[pool]
            its.jobs[job.id] = job
            its.requests[name] = _request(row, self._held.get(name, ()), self._rules_of(pool))
            yield pool

    def _drop(self, name: AllocationId) -> Iterator[str]:
        """A request that is there no more; its pool, if it was there."""
        pool = self._pool_of_request.pop(name, None)
        if pool is None:
            return
        its = self._pools[pool]
        job_id = its.requests.pop(name).job_id
        its.counts[job_id] -= 1
        if not its.counts[job_id]:
            del its.counts[job_id], its.jobs[job_id]
        yield pool

    def _with_held(self, agent: PoolAgent) -> PoolAgent:
        held = [
            member
            for name in self._holders.get(agent.id, ())
            for member in self._held[name]
            if member.agent_id == agent.id
        ]
        in_use = frozenset(slot for member in held for slot in member.slots)
        return replace(agent, in_use=in_use, aux_in_use=sum(not member.slots for member in held))

    def _snapshot(self, pool: str, its: _Pool) -> PoolSnapshot:
        rules, jobs = self._rules_of(pool), dict(its.jobs)
        if counts_attained(rules.policy):
            jobs = {name: replace(job, attained=self._attained.get(name, 0.0)) for name, job in jobs.items()}
        agents = tuple(its.agents[name] for name in sorted(its.agents))
        left = _not_rented(self._prospects.get(pool, ()), agents)
        return PoolSnapshot(PoolName(pool), agents, jobs, tuple(its.requests.values()), rules, prospects=left)

    def _rules_of(self, pool: str) -> PoolRules:
        return self._rules.get(pool, _USUAL)


_USUAL = PoolRules()


def _not_rented(prospects: Sequence[PoolAgent], agents: Sequence[PoolAgent]) -> tuple[PoolAgent, ...]:
    """Those beside the machines that there are, each of which is one of the size that it has at most."""
    left = sorted(prospects, key=lambda each: len(each.slots))
    for agent in agents:
        if agent.rented and left:
            size = len(agent.slots)
            left.remove(next((each for each in left if len(each.slots) >= size), left[-1]))
    return tuple(left)


def _different(mine: Mapping[_Name, _Value], others: Mapping[_Name, _Value]) -> Iterator[tuple[_Name, str]]:
    for name in sorted({*mine, *others}):
        here, there = mine.get(name), others.get(name)
        if here is None or there is None:
            yield name, "is there" if there is None else "is missing"
        elif here != there:
            pairs = ((each.name, getattr(here, each.name), getattr(there, each.name)) for each in fields(here))
            yield name, ", ".join(f"{what} is {now!r}, not {then!r}" for what, now, then in pairs if now != then)


def _agent(row: Record, aux_places: int) -> PoolAgent:
    slots = row["slots"]
    # A disabled agent is not waited for, whether it is connected or not.
    state = AgentState(row["state"])
    state = state if row["connected"] or state is AgentState.DISABLED else AgentState.AWAY
    return PoolAgent(
        AgentId(row["agent_id"]),
        tuple(SlotId(slot["id"]) for slot in slots),
        aux_places=aux_places,
        state=state,
        kind=DeviceKind(slots[0]["kind"]) if slots else DeviceKind.CPU,
        labels=row["labels"] or {},
        devices={SlotId(slot["id"]): SlotDevice(slot["name"], slot["memory"]) for slot in slots},
        rented=row["rented"],
    )


def _job(row: Record) -> PoolJob:
    return PoolJob(
        JobId(row["job_id"]),
        row["priority"],
        float(row["queue_position"]),
        row["max_slots"],
        row["weight"],
        asks_more=row["asks_more"],
    )


def _request(row: Record, members: tuple[PlacedMember, ...], rules: PoolRules) -> SlotRequest:
    pending = row["state"] == "PENDING"
    releasing = row["state"] == "TERMINATING" or row["preemption"] != "NONE"
    time_limit = row["time_limit_s"]
    return SlotRequest(
        AllocationId(row["allocation_id"]),
        JobId(row["job_id"]),
        row["slots"],
        row["requested_at"],
        row["preemptible"],
        row["single_node"],
        frozenset(AgentId(name) for name in row["blocked_agents"]),
        constraints_of(row["constraints"]),
        time_limit,
        Phase.PENDING if pending else Phase.RELEASING if releasing else Phase.PLACED,
        members,
        ends_at=row["ends_at"],
        # Each run of a limited time takes a turn of its own, where places are kept; elsewhere one whose time was over.
        again=row["was_over_time"] or (row["has_run"] and time_limit is not None and not can_preempt(rules)),
        left_before=is_for_another(row["left_because"]),
        has_run=row["has_run"],
        waited=row["waited_s"] or 0.0,
    )
