"""Agents and their slots as values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

from tenax.client import reading
from tenax.client.session import Session
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Slot:
    """One device of an agent."""

    agent_id: str
    id: str
    #: ``cpu``, ``cuda`` or ``rocm``.
    kind: str
    name: str
    enabled: bool
    draining: bool
    #: What runs on it; empty when it is free.
    container_id: str


@dataclass(frozen=True)
class Agent:
    """One machine that runs tasks."""

    id: str
    enabled: bool
    draining: bool
    pools: Tuple[str, ...]
    addresses: Tuple[str, ...]
    version: str
    registered: Optional[datetime.datetime]
    #: Whether it is heard of.
    connected: bool
    last_seen: Optional[datetime.datetime]
    #: ``process`` or ``docker``: what runs its tasks.
    runtime: str
    #: Containers of another cluster that it holds, which nobody here ends.
    foreign_count: int
    slots: Tuple[Slot, ...]
    #: Containers that are not over, whether or not they have slots.
    container_count: int
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @staticmethod
    def read(value: JsonObject) -> Agent:
        """From an answer of the master."""
        name = reading.text(value, "id")
        slots = reading.record(value, "slots")
        return Agent(
            id=name,
            enabled=reading.flag(value, "enabled"),
            draining=reading.flag(value, "draining"),
            pools=tuple(reading.texts(value, "resourcePools")),
            addresses=tuple(reading.texts(value, "addresses")),
            version=reading.text(value, "version"),
            registered=reading.moment(value, "registeredTime"),
            connected=value.get("connected") is not False,
            last_seen=reading.moment(value, "lastSeenTime"),
            runtime=reading.text(value, "runtime"),
            foreign_count=len(reading.records(value, "foreignContainers")),
            slots=tuple(_slot(name, key, reading.record(slots, key)) for key in sorted(slots)),
            container_count=len(reading.record(value, "containers")),
            raw=value,
        )

    @property
    def free_slots(self) -> int:
        usable = self.connected and self.enabled and not self.draining
        return sum(1 for slot in self.slots if usable and slot.enabled and not slot.container_id)


def _slot(agent: str, key: str, value: JsonObject) -> Slot:
    device = reading.record(value, "device")
    kind = reading.text(device, "type")
    return Slot(
        agent_id=agent,
        id=reading.text(value, "id") or key,
        kind=kind[len("TYPE_") :].lower() if kind.startswith("TYPE_") else kind,
        name=reading.text(device, "brand"),
        enabled=reading.flag(value, "enabled"),
        draining=reading.flag(value, "draining"),
        container_id=reading.text(reading.record(value, "container"), "id"),
    )


def list_agents(session: Session) -> List[Agent]:
    """The agents of the cluster; one that is silent is among them while it may come back."""
    found = [Agent.read(value) for value in reading.records(session.get("/api/v1/agents"), "agents")]
    return sorted(found, key=lambda agent: agent.id)
