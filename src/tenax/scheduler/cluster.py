"""The free places of a pool, indexed: which agent has how much, found without looking at every agent.

Rules:
- Only agents that take new work are in it; a place on another agent is neither taken nor given back here.
- Agents with the same numbers form a group; a request is matched with groups, and only then with one agent of a group.
- Ties go to the agent nearest before the request on a ring of hashes, so that planning again chooses the same.
- What hard constraints leave is an index of its own, made when it is first asked for and kept in step from then on.
- Mutable: one planning pass owns one. ``values`` compares it with one that is built anew.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from tenax.ids import AgentId, SlotId
from tenax.scheduler.constraints import AlikeAgents, alike, more_than, narrowed, steps
from tenax.scheduler.snapshot import AgentState, Constraints, PlacedMember, PoolAgent

_RING = 1 << 64


class Room(NamedTuple):
    """What an agent has, and what of it is free."""

    free: int
    slots: int
    aux_free: int
    aux_places: int


@lru_cache(maxsize=1 << 16)
def place_on_ring(identity: str) -> int:
    """The first eight bytes of the MD5 of a name, as a little-endian number."""
    return int.from_bytes(hashlib.md5(identity.encode(), usedforsecurity=False).digest()[:8], "little")


def distance(allocation: str, agent: str) -> int:
    """How far behind a request an agent stands on the ring."""
    return (place_on_ring(allocation) - place_on_ring(agent)) % _RING


class FreeSlots:
    """Free slots and auxiliary places of the agents that take new work."""

    __slots__ = (
        "_alike",
        "_aux_free",
        "_free",
        "_groups",
        "_kept",
        "_meeting",
        "_narrowed",
        "_parts",
        "_total_free",
        "agents",
    )

    def __init__(self, agents: Iterable[PoolAgent]) -> None:
        #: Agents in the index.
        self.agents: dict[AgentId, PoolAgent] = {a.id: a for a in agents if a.state is AgentState.ENABLED}
        self._free: dict[AgentId, set[SlotId]] = {a.id: set(a.slots) - a.in_use for a in self.agents.values()}
        self._aux_free: dict[AgentId, int] = {a.id: a.aux_places - a.aux_in_use for a in self.agents.values()}
        self._group()
        self._narrowed: dict[Constraints, FreeSlots] = {}
        self._parts: dict[tuple[tuple[AgentId, tuple[SlotId, ...]], ...], FreeSlots] = {}
        #: Shared by all copies, whose agents are the same: what meets constraints, and who is alike.
        self._meeting: dict[Constraints, tuple[PoolAgent, ...]] = {}
        self._alike: dict[Constraints, tuple[AlikeAgents, ...]] = {}
        self._kept: dict[tuple[Constraints, ...], dict[AgentId, set[SlotId]]] = {}

    def _group(self) -> None:
        """Find the agents with the same numbers."""
        self._groups: dict[Room, list[tuple[int, AgentId]]] = {}
        for agent_id in self.agents:
            self._groups.setdefault(self.room(agent_id), []).append((place_on_ring(agent_id), agent_id))
        for ring in self._groups.values():
            ring.sort()
        self._total_free = sum(map(len, self._free.values()))

    def narrowed(self, constraints: Constraints | None) -> FreeSlots:
        """Those of the slots that meet what is asked of each machine; it is changed with this one, never by itself."""
        if constraints is None:
            return self
        constraints = constraints.of_each()
        if constraints not in self._narrowed:
            those = self.meeting(constraints)
            # Several ways to ask for the same slots have one index.
            which = tuple((agent.id, agent.slots) for agent in those)
            if which not in self._parts:
                self._parts[which] = self._part(those)
            self._narrowed[constraints] = self._parts[which]
        return self._narrowed[constraints]

    def meeting(self, constraints: Constraints) -> tuple[PoolAgent, ...]:
        """The agents that meet what is asked of each, with those of their slots that do."""
        if constraints not in self._meeting:
            if constraints.beside:
                those = self._without_kept(constraints)
            else:
                those = (narrowed(agent, steps(constraints)) for agent in self.agents.values())
            self._meeting[constraints] = tuple(agent for agent in those if agent is not None)
        return self._meeting[constraints]

    def _without_kept(self, constraints: Constraints) -> Iterator[PoolAgent | None]:
        """What each machine must be, without what is kept for others; that is looked up once for all behind them."""
        if constraints.beside not in self._kept:
            kept: dict[AgentId, set[SlotId]] = {}
            for other in constraints.beside:
                for agent in self.meeting(other.of_each()):
                    kept.setdefault(agent.id, set()).update(agent.slots)
            self._kept[constraints.beside] = kept
        kept = self._kept[constraints.beside]
        for agent in self.meeting(replace(constraints, beside=())):
            others = kept.get(agent.id)
            slots = agent.slots if others is None else tuple(slot for slot in agent.slots if slot not in others)
            yield agent if others is None else replace(agent, slots=slots) if slots else None

    def alike(self, constraints: Constraints) -> tuple[AlikeAgents, ...]:
        """The ways in which those that meet what is asked of each can be alike."""
        if constraints not in self._alike:
            groups = alike(constraints, self.meeting(constraints.of_each()))
            self._alike[constraints] = groups
            for group in groups:
                those = (narrowed(agent, steps(more_than(group.within, constraints))) for agent in group.agents)
                self._meeting[group.within] = tuple(agent for agent in those if agent is not None)
        return self._alike[constraints]

    def _part(self, those: tuple[PoolAgent, ...]) -> FreeSlots:
        part = FreeSlots(those)
        for agent_id, agent in part.agents.items():
            part._set_free(agent_id, self._free[agent_id].intersection(agent.slots), self._aux_free[agent_id])
        return part

    def fork(self) -> FreeSlots:
        """A copy that changes on its own."""
        other = FreeSlots(())
        other.agents = self.agents
        other._free = {agent: set(free) for agent, free in self._free.items()}
        other._aux_free = dict(self._aux_free)
        other._groups = {room: list(ring) for room, ring in self._groups.items()}
        other._total_free = self._total_free
        other._meeting, other._alike, other._kept = self._meeting, self._alike, self._kept
        return other

    def emptied(self) -> FreeSlots:
        """As if nothing ran."""
        other = FreeSlots(())
        other.agents = self.agents
        other._free = {a.id: set(a.slots) for a in self.agents.values()}
        other._aux_free = {a.id: a.aux_places for a in self.agents.values()}
        other._group()
        other._meeting, other._alike, other._kept = self._meeting, self._alike, self._kept
        return other

    def room(self, agent_id: AgentId) -> Room:
        """The numbers of one agent."""
        agent = self.agents[agent_id]
        return Room(len(self._free[agent_id]), len(agent.slots), self._aux_free[agent_id], agent.aux_places)

    def rooms(self) -> Iterable[Room]:
        """Every combination of numbers that some agent has."""
        return self._groups.keys()

    def nearest(self, room: Room, allocation: str, blocked: frozenset[AgentId]) -> Iterator[AgentId]:
        """The agents with these numbers, nearest first, without the blocked ones."""
        ring = self._groups[room]
        start = bisect_right(ring, (place_on_ring(allocation), "\U0010ffff")) - 1
        for step in range(len(ring)):
            agent = ring[start - step][1]
            if agent not in blocked:
                yield agent

    def free_outside(self, blocked: frozenset[AgentId]) -> int:
        """All free slots, those on blocked agents not counted."""
        return self._total_free - sum(len(self._free[agent]) for agent in blocked if agent in self._free)

    def count(self, room: Room) -> int:
        """How many agents have these numbers."""
        return len(self._groups[room])

    def free_slots(self, agent_id: AgentId) -> frozenset[SlotId]:
        """The free slots of one agent."""
        return frozenset(self._free[agent_id])

    def pick(self, agent_id: AgentId, count: int, rather_not: FreeSlots | None = None) -> PlacedMember:
        """Name ``count`` free slots of an agent, lowest first; those free in ``rather_not`` only when it must be."""
        spared = rather_not._free[agent_id] if rather_not is not None else set()
        ordered = sorted(self._free[agent_id], key=lambda slot: (slot in spared, slot))
        return PlacedMember(agent_id, tuple(sorted(ordered[:count])))

    def take(self, member: PlacedMember) -> None:
        """Occupy what a member holds; slots that are not free, and agents that are not here, are passed over."""
        if member.agent_id in self.agents:
            self._change(member, taken=True)

    def give(self, member: PlacedMember) -> None:
        """Free what a member holds; slots that the agent does not have any more stay away."""
        if member.agent_id in self.agents:
            self._change(member, taken=False)

    def values(self) -> object:
        """All of it as plain values, for comparison."""
        return (
            {agent: frozenset(free) for agent, free in self._free.items()},
            dict(self._aux_free),
            self._total_free,
            {room: tuple(ring) for room, ring in self._groups.items()},
        )

    def _change(self, member: PlacedMember, *, taken: bool) -> None:
        agent_id = member.agent_id
        free, aux_free = self._free[agent_id], self._aux_free[agent_id]
        if not member.slots:
            aux_free += -1 if taken else 1
        elif taken:
            free = free.difference(member.slots)
        else:
            free = free | (set(member.slots) & set(self.agents[agent_id].slots))
        self._set_free(agent_id, free, aux_free)
        for part in self._parts.values():
            if agent_id in part.agents:
                part._change(member, taken=taken)

    def _set_free(self, agent_id: AgentId, free: set[SlotId], aux_free: int) -> None:
        entry = (place_on_ring(agent_id), agent_id)
        ring = self._groups[self.room(agent_id)]
        del ring[bisect_right(ring, entry) - 1]
        if not ring:
            del self._groups[self.room(agent_id)]
        self._total_free += len(free) - len(self._free[agent_id])
        self._free[agent_id], self._aux_free[agent_id] = free, aux_free
        insort(self._groups.setdefault(self.room(agent_id), []), entry)
