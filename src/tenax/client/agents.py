"""Agents, their slots, and the tokens with which they join, as values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, made, part
from tenax.client.connection.session import Session, at
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
    #: Bytes; None where its agent does not say.
    memory: Optional[int] = None
    #: What is wrong with its device, which takes no new work then.
    fault: str = ""


@dataclass(frozen=True)
class Agent(Answer):
    """One machine that runs tasks."""

    id: str = part(reading.text, "id")
    enabled: bool = part(reading.flag, "enabled")
    draining: bool = part(reading.flag, "draining")
    #: Why it drains, where nobody said so: start after start failed there, or its cloud ends its machine.
    reason: str = part(reading.text, "reason")
    pools: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "resourcePools")))
    addresses: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "addresses")))
    version: str = part(reading.text, "tenaxVersion")
    registered: Optional[datetime.datetime] = part(reading.moment, "registeredTime")
    #: Whether it is connected.
    connected: bool = made(lambda value: value.get("connected") is not False)
    last_seen: Optional[datetime.datetime] = part(reading.moment, "lastSeenTime")
    #: ``process`` or ``docker``: what runs its tasks.
    runtime: str = part(reading.text, "runtime")
    #: Containers of another cluster that it holds, which nobody here ends.
    foreign_count: int = made(lambda value: len(reading.records(value, "foreignContainers")))
    #: What its operator says of it: `resources.constraints` ask for it.
    labels: Mapping[str, str] = made(lambda value: _labels(value))
    #: What the cloud of its machine says of its end, and when that is.
    notice: str = part(reading.text, "notice")
    notice_until: Optional[datetime.datetime] = part(reading.moment, "noticeUntil")
    slots: Tuple[Slot, ...] = made(lambda value: _slots(value))
    #: Containers that are not over, whether or not they have slots.
    container_count: int = made(lambda value: len(reading.record(value, "containers")))

    @property
    def free_slots(self) -> int:
        usable = self.connected and self.enabled and not self.draining
        return sum(1 for slot in self.slots if usable and slot.enabled and not slot.container_id)


def _labels(value: JsonObject) -> Mapping[str, str]:
    return {key: str(label) for key, label in reading.record(value, "labels").items()}


def _slots(value: JsonObject) -> Tuple[Slot, ...]:
    slots = reading.record(value, "slots")
    return tuple(_slot(reading.text(value, "id"), key, reading.record(slots, key)) for key in sorted(slots))


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
        memory=reading.integer(device, "memory") or None,
        fault=reading.text(value, "fault"),
    )


def list_agents(session: Session) -> List[Agent]:
    """The agents of the cluster; one that is silent is among them while it may come back."""
    agents = [Agent.read(value) for value in reading.records(session.get("/api/v1/agents"), "agents")]
    return sorted(agents, key=lambda agent: agent.id)


def enable_agent(session: Session, agent_id: str) -> Agent:
    """Let it take work again. For administrators. Raises NotFound."""
    answer = session.post(at("/api/v1/agents/{}/enable", agent_id))
    return Agent.read(reading.record(answer, "agent"))


def disable_agent(session: Session, agent_id: str, *, drain: bool = False) -> Agent:
    """Let it take nothing new; what runs there is ended and placed elsewhere, with ``drain`` it may end by itself."""
    answer = session.post(at("/api/v1/agents/{}/disable", agent_id), {"drain": drain})
    return Agent.read(reading.record(answer, "agent"))


def remove_agent(session: Session, agent_id: str, *, force: bool = False) -> None:
    """Forget an agent that is gone for good; ``force``: what still counts as running there is lost.

    Raises NotFound, InvalidInput while it is connected.
    """
    session.call("DELETE", at("/api/v1/agents/{}", agent_id), query={"force": force})


def enable_slot(session: Session, agent_id: str, slot_id: int) -> None:
    """Let new work use it again. For administrators. Raises NotFound."""
    session.post(at("/api/v1/agents/{}/slots/{}/enable", agent_id, slot_id))


def disable_slot(session: Session, agent_id: str, slot_id: int, *, drain: bool = False) -> None:
    """Let no new work use it; what runs on it is ended and placed elsewhere, with ``drain`` it may end by itself."""
    session.post(at("/api/v1/agents/{}/slots/{}/disable", agent_id, slot_id), {"drain": drain})


@dataclass(frozen=True)
class JoinToken(Answer):
    """All about a join token but the token, which is shown when it is made and never again."""

    id: int = part(reading.integer, "id")
    description: str = part(reading.text, "description")
    #: The one agent that it is for; empty: any that has not joined yet.
    agent_id: str = part(reading.text, "agentId")
    #: -1: any number.
    uses_left: int = part(reading.integer, "usesLeft")
    created: Optional[datetime.datetime] = part(reading.moment, "createdAt")
    expires: Optional[datetime.datetime] = part(reading.moment, "expiry")
    revoked: bool = part(reading.flag, "revoked")
    #: Neither revoked nor over nor used up.
    good: bool = part(reading.flag, "good")


def create_join_token(
    session: Session, *, agent_id: Optional[str] = None, uses: int = 1, lifespan: str = "1h", description: str = ""
) -> Tuple[JoinToken, str]:
    """A new token, and the token itself, which is shown only now.

    ``agent_id``: for that agent alone, also in the place of one of that name that has joined before; ``uses``: for how
    many agents, -1 for any number; ``lifespan``: as in ``90m`` or ``7d``. Raises InvalidInput, Forbidden.
    """
    body: JsonObject = {"uses": uses, "lifespan": lifespan, "description": description, "agentId": agent_id}
    answer = session.post("/api/v1/join-tokens", reading.without_nulls(body))
    return JoinToken.read(reading.record(answer, "joinToken")), reading.text(answer, "token")


def bootstrap_script(
    session: Session,
    master_url: str,
    *,
    own_address: bool = False,
    certificate: str = "",
    pool: Optional[str] = None,
    agent_id: Optional[str] = None,
    lifespan: str = "1h",
    python: Optional[str] = None,
    index_url: Optional[str] = None,
    wheelhouse: Optional[str] = None,
) -> Tuple[JoinToken, str]:
    """A script for ``sh`` that makes an agent of the machine that runs it, and the token in it, for one use.

    ``master_url``: where that machine reaches the master; ``own_address``: it may mean the machine itself;
    ``certificate``: PEM by which the master is trusted there. For administrators. Raises InvalidInput.
    """
    body: JsonObject = {
        "masterUrl": master_url, "ownAddress": own_address, "certificate": certificate, "pool": pool,
        "agentId": agent_id, "lifespan": lifespan, "python": python, "indexUrl": index_url, "wheelhouse": wheelhouse,
    }  # fmt: skip
    answer = session.post("/api/v1/agents/bootstrap", reading.without_nulls(body))
    return JoinToken.read(reading.record(answer, "joinToken")), reading.text(answer, "script")


def list_join_tokens(session: Session, *, inactive: bool = False) -> List[JoinToken]:
    """Those that let agents in; ``inactive``: also those that do not any more."""
    answer = session.get("/api/v1/join-tokens", {"showInactive": inactive})
    return [JoinToken.read(token) for token in reading.records(answer, "joinTokens")]


def revoke_join_token(session: Session, number: int) -> JoinToken:
    """End it at once; agents that have joined with it stay. Raises NotFound."""
    answer = session.call("DELETE", at("/api/v1/join-tokens/{}", number))
    return JoinToken.read(reading.record(answer, "joinToken"))
