"""Rows of agents: identity, slots, the revision of what they should run; and when they were last heard of.

Rules: a credential is kept as its hash; writes of a connection that is not the agent's newest change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import AlreadyExists, NotFound
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.queries import load
from tenax.master.store.wakeups import notify
from tenax.wire.agents import Hello

Q = load("agents")


@dataclass(frozen=True, slots=True)
class Known:
    """An agent, as its credential names it."""

    agent_id: str
    pool: str
    state: str


async def join(conn: Connection, agent_id: str, pool: str, credential_hash: bytes) -> None:
    """Bind a credential to an agent id. Raises AlreadyExists while another connection of that name is open."""
    if await conn.fetchval(Q.is_connected, agent_id):
        raise AlreadyExists(
            f"an agent named {agent_id!r} is connected already: give this one another name (--agent-id), "
            "or stop the other first"
        )
    await conn.execute(Q.join, agent_id, pool, credential_hash)


async def by_credential(conn: Connection, credential_hash: bytes) -> Known | None:
    """The agent that this credential was given to."""
    row = await conn.fetchrow(Q.by_credential, credential_hash)
    return None if row is None else Known(row["agent_id"], row["pool"], row["state"])


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an agent stands in the database; numbers are -1 for an agent that is not there."""

    #: Of its newest connection.
    session: int
    #: Of what it should run.
    revision: int
    #: Of the cluster.
    generation: int


async def open_session(conn: Connection, agent_id: str, hello: Hello, address: str, foreign: list[Json]) -> Standing:
    """A new connection, from now on the only one that counts; its slots and presence as it says. Raises NotFound."""
    row = await conn.fetchrow(Q.open_session, agent_id)
    if row is None:
        raise NotFound(f"there is no agent {agent_id}")
    for slot in hello.slots:
        await conn.execute(Q.put_slot, agent_id, slot.id, slot.kind, slot.name, slot.uuid)
    await conn.execute(Q.drop_slots, agent_id, [slot.id for slot in hello.slots])
    await conn.execute(Q.put_presence, agent_id, hello.hostname, address, hello.runtime, hello.agent_version, foreign)
    await notify(conn, "agent", agent_id)
    await notify(conn, "scheduling", "")
    return await standing(conn, agent_id)


async def standing(conn: Connection, agent_id: str) -> Standing:
    """Its newest connection and what it should run."""
    row = await conn.fetchrow(Q.standing, agent_id)
    return Standing(-1, -1, -1) if row is None else Standing(row["session"], row["revision"], row["generation"])


async def known_containers(conn: Connection, agent_id: str, container_ids: list[str]) -> set[str]:
    """Those of these containers that the database has as this agent's."""
    return {row["container_id"] for row in await conn.fetch(Q.known_containers, agent_id, container_ids)}


async def heard(conn: Connection, agent_id: str, session: int) -> bool:
    """It was heard of just now, on this connection; False, and nothing noted, if that is not its newest.

    Locks the agent's row, which comes last: at the end of a transaction.
    """
    return await conn.fetchval(Q.heard, agent_id, session) is not None


async def left(conn: Connection, agent_id: str, session: int) -> None:
    """Its connection has ended."""
    await conn.execute(Q.left, agent_id, session)
    await notify(conn, "scheduling", "")


async def set_state(conn: Connection, agent_id: str, state: str) -> None:
    """Whether it takes work: ENABLED, DRAINING (what runs may end), DISABLED. Raises NotFound."""
    if await conn.fetchval(Q.set_state, agent_id, state) is None:
        raise NotFound(f"there is no agent {agent_id!r}")
    await notify(conn, "agent", agent_id)
    await notify(conn, "scheduling", "")


async def wanted(conn: Connection, agent_id: str) -> list[JsonObject]:
    """A row for each container of an agent that is not gone."""
    return [dict(row) for row in await conn.fetch(_WANTED, agent_id)]


async def silent(conn: Connection, wait_s: float, listening_s: float) -> list[str]:
    """Agents with live containers, not heard of for ``wait_s`` while someone listened for ``listening_s``."""
    return [row["agent_id"] for row in await conn.fetch(Q.silent, wait_s, listening_s)]


async def is_silent(conn: Connection, agent_id: str, wait_s: float) -> bool:
    """Whether it was not heard of for ``wait_s`` up to now."""
    return bool(await conn.fetchval(Q.is_silent, agent_id, wait_s))


async def live_containers(conn: Connection, agent_id: str) -> list[str]:
    """Containers of an agent that have not ended."""
    return [row["container_id"] for row in await conn.fetch(Q.live_containers, agent_id)]


_WANTED = load("containers").wanted
