"""Builders: a pool in a few lines, and what applying a plan makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import (
    AgentState,
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolPlan,
    PoolRules,
    PoolSnapshot,
    SlotLimit,
    SlotRequest,
)


def agent(name: str, slots: int, used: int = 0, **changes: Any) -> PoolAgent:
    """An agent whose first ``used`` slots are in use."""
    ids = tuple(SlotId(number) for number in range(slots))
    return PoolAgent(AgentId(name), ids, frozenset(ids[:used]), **changes)


def request(name: str, slots: int, job: str | None = None, **changes: Any) -> SlotRequest:
    """A pending request, of its own job unless told otherwise."""
    blocked = frozenset(map(AgentId, changes.pop("blocked", ())))
    return SlotRequest(AllocationId(name), JobId(job or name), slots, blocked_agents=blocked, **changes)


def rules(**changes: Any) -> PoolRules:
    """The rules of a pool."""
    return PoolRules(**changes)


class Pool:
    """A pool that lives from plan to plan. Holds values; each plan is applied to them."""

    def __init__(self, agents: Iterable[PoolAgent], rules: PoolRules | None = None) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.jobs: dict[JobId, PoolJob] = {}
        self.requests: dict[AllocationId, SlotRequest] = {}
        self.rules = rules or PoolRules()
        self.limits: dict[str, SlotLimit] = {}
        self.clock = 0.0
        #: The instant, for time limits.
        self.at = 0.0

    def job(self, name: str, priority: int = 42, position: float | None = None, **changes: Any) -> Pool:
        """Add a job; its position is the order of adding unless told otherwise."""
        place = float(len(self.jobs)) if position is None else position
        self.jobs[JobId(name)] = PoolJob(JobId(name), priority, place, **changes)
        return self

    def limit(self, name: str, max_slots: int | None = None, **changes: Any) -> Pool:
        """Add a limit, which jobs name."""
        self.limits[name] = SlotLimit(name, max_slots, **changes)
        return self

    def ask(self, name: str, slots: int, job: str | None = None, **changes: Any) -> Pool:
        """Add a pending request; a job that is not there yet is made."""
        self.clock += 1
        new = request(name, slots, job, **{"requested_at": self.clock, **changes})
        if new.job_id not in self.jobs:
            self.job(new.job_id)
        self.requests[new.allocation_id] = new
        return self

    def run(self, name: str, slots: int, on: str, job: str | None = None, **changes: Any) -> Pool:
        """Add a request that is placed on one agent already, on its lowest free slots."""
        self.ask(name, slots, job, **changes)
        free = sorted(set(self.agents[AgentId(on)].slots) - self.agents[AgentId(on)].in_use)
        assert len(free) >= slots
        self.place(AllocationId(name), (PlacedMember(AgentId(on), tuple(free[:slots])),))
        return self

    @property
    def snapshot(self) -> PoolSnapshot:
        """The pool as it stands."""
        agents, requests = tuple(self.agents.values()), tuple(self.requests.values())
        limits = dict(self.limits)
        return PoolSnapshot(PoolName("default"), agents, dict(self.jobs), requests, self.rules, limits, self.at)

    def plan(self) -> PoolPlan:
        """A plan on the pool as it stands; nothing is applied."""
        return plan(self.snapshot)

    def apply(self, decided: PoolPlan) -> None:
        """Make a plan true: what is placed holds its slots, what is asked to leave is being released."""
        for name, members in decided.placements.items():
            self.place(name, members)
        for name in decided.preempt:
            self.requests[name] = replace(self.requests[name], phase=Phase.RELEASING)

    def place(self, name: AllocationId, members: tuple[PlacedMember, ...]) -> None:
        """Give a request its slots; each must be free on an agent that takes work."""
        for member in members:
            there = self.agents[member.agent_id]
            assert there.state is AgentState.ENABLED
            assert set(member.slots) <= set(there.slots)
            assert not set(member.slots) & there.in_use, f"slot given twice: {member}"
            aux = there.aux_in_use + (0 if member.slots else 1)
            assert aux <= there.aux_places or member.slots
            self.agents[there.id] = replace(there, in_use=there.in_use | set(member.slots), aux_in_use=aux)
        held = self.requests[name]
        ends_at = held.ends_at if held.time_limit is None else self.at + held.time_limit
        waited = max(0.0, self.at - held.requested_at)
        self.requests[name] = replace(held, phase=Phase.PLACED, members=members, ends_at=ends_at, waited=waited)

    def end(self, name: str) -> SlotRequest:
        """A request is over: what it held is free."""
        ended = self.requests.pop(AllocationId(name))
        for member in ended.members:
            there = self.agents[member.agent_id]
            aux = there.aux_in_use - (0 if member.slots else 1)
            self.agents[there.id] = replace(there, in_use=there.in_use - set(member.slots), aux_in_use=aux)
        return ended

    def placed(self) -> dict[str, list[tuple[str, int]]]:
        """Where everything is: (agent, number of slots) per request."""
        return {
            name: [(member.agent_id, len(member.slots)) for member in held.members]
            for name, held in self.requests.items()
            if held.members
        }
