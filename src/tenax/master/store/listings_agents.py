"""Agents and slots as people see them, and slots turned on and off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.queries import load
from tenax.master.store.wakeups import notify

Q = load("listings_agents")


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


async def enable_slot(conn: Connection, agent_id: str, slot_id: int, enabled: bool) -> None:
    """Whether new work may use a slot. Raises NotFound."""
    if await conn.fetchval(Q.enable_slot, agent_id, slot_id, enabled) is None:
        raise NotFound(f"agent {agent_id!r} has no slot {slot_id}")
    await notify(conn, "scheduling", "")


async def allocations_on(conn: Connection, agent_id: str, slot_id: int | None = None) -> list[str]:
    """Attempts with a live member on an agent, or on one of its slots."""
    rows = await conn.fetch(Q.containers_on, agent_id, slot_id)
    return list(dict.fromkeys(row["allocation_id"] for row in rows))
