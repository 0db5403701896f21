"""Agents and slots as people see them. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec
from asyncpg import Connection

from tenax.config.agent import AllowedSettings
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.queries import load
from tenax.wire.agents import Allowed

Q = load("agents")


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent and its presence."""

    agent_id: str
    pool: str
    #: ENABLED, DRAINING, DISABLED.
    state: str
    #: Why it takes no work, where nobody said so.
    reason: str
    created_at: datetime
    connected: bool
    last_seen_at: datetime | None
    hostname: str
    address: str
    runtime: str
    agent_version: str
    foreign_containers: list[JsonObject]
    labels: dict[str, str]
    #: What the cloud says of its machine, and when that ends.
    notice: str
    notice_until: datetime | None


@dataclass(frozen=True, slots=True)
class SlotView:
    """One device."""

    agent_id: str
    slot_id: int
    kind: str
    name: str
    uuid: str
    #: Bytes.
    memory: int | None
    #: What is wrong with the device; empty where nothing is.
    fault: str
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
    task_id: str
    trial_id: int | None
    experiment_id: int | None
    #: Whose it is.
    username: str
    #: The name of the experiment, or of the task that no search asked for.
    description: str


@dataclass(frozen=True, slots=True)
class Machines:
    """Agents with all that is on them."""

    agents: list[AgentView]
    slots: list[SlotView]
    containers: list[ContainerView]


@dataclass(frozen=True, slots=True)
class AllowedView:
    """What the operator of an agent's machine lets tasks have of it."""

    #: None: the agent does not say.
    allowed: AllowedSettings | None
    by_engine: bool


async def allowed_in(conn: Connection, pool: str) -> list[AllowedView]:
    """Of each agent of a pool that is not disabled."""
    views = []
    for row in await conn.fetch(Q.allowed_in, pool):
        stated = None if row["allowed"] is None else msgspec.convert(row["allowed"], Allowed)
        views.append(AllowedView(None, False) if stated is None else AllowedView(_settings(stated), stated.by_engine))
    return views


def _settings(stated: Allowed) -> AllowedSettings:
    # Not looked at again: an agent that says what makes no sense allows nothing by it.
    return AllowedSettings.model_construct(
        bind_mounts=tuple(stated.bind_mounts),
        capabilities=tuple(stated.capabilities),
        devices=tuple(stated.devices),
        root=stated.root,
        unmapped=stated.unmapped,
    )


async def machines(conn: Connection, agent_id: str | None = None) -> Machines:
    """All agents, or one. Raises NotFound for one that is not known."""
    agents = [AgentView(**row) for row in await conn.fetch(Q.views, agent_id)]
    if agent_id is not None and not agents:
        raise NotFound(f"agent {agent_id!r} not found")
    slots = [SlotView(**row) for row in await conn.fetch(Q.slots, agent_id)]
    containers = [ContainerView(**row) for row in await conn.fetch(Q.containers, agent_id)]
    return Machines(agents, slots, containers)
