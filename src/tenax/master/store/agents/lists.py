"""Agents and slots as people see them. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.queries import load

Q = load("agents")


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent and its presence."""

    agent_id: str
    pool: str
    #: ENABLED, DRAINING, DISABLED.
    state: str
    created_at: datetime
    connected: bool
    last_seen_at: datetime | None
    hostname: str
    address: str
    runtime: str
    agent_version: str
    foreign_containers: list[JsonObject]


@dataclass(frozen=True, slots=True)
class SlotView:
    """One device."""

    agent_id: str
    slot_id: int
    kind: str
    name: str
    uuid: str
    enabled: bool
    #: Turned off, and what runs on it may end by itself.
    draining: bool
    #: Who holds it.
    container_id: str | None


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container that is not gone."""

    container_id: str
    allocation_id: str
    agent_id: str
    slots: list[int]
    state: str


@dataclass(frozen=True, slots=True)
class Machines:
    """Agents with all that is on them."""

    agents: list[AgentView]
    slots: list[SlotView]
    containers: list[ContainerView]


async def machines(conn: Connection, agent_id: str | None = None) -> Machines:
    """All agents, or one. Raises NotFound for one that is not known."""
    agents = [AgentView(**row) for row in await conn.fetch(Q.views, agent_id)]
    if agent_id is not None and not agents:
        raise NotFound(f"there is no agent {agent_id!r}")
    slots = [SlotView(**row) for row in await conn.fetch(Q.slots, agent_id)]
    containers = [ContainerView(**row) for row in await conn.fetch(Q.containers, agent_id)]
    return Machines(agents, slots, containers)
