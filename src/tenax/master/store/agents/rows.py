"""Rows of agents: identity, slots, the revision of their desired state, heartbeats; enabled, disabled, removed.

Rules:

- a credential is kept as its hash, and is replaced for nobody who has no token for that very agent;
- writes of a connection that is not the agent's newest change nothing;
- a disabled agent or slot takes nothing new from the moment that this is committed, whatever was planned before; what
  runs there is asked to leave, with the same deadline as any other attempt, unless it drains;
- an agent is removed only while it is not connected, and when nothing there counts as running.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec
from asyncpg import Connection
from asyncpg.exceptions import ForeignKeyViolationError

from tenax.errors import AlreadyExists, NotFound, NotNow, Stale
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.connection import CHANNEL
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.wire.agents import Hello

Q = load("agents")


async def join(conn: Connection, agent_id: str, pool: str, credential_hash: bytes, *, replace: bool = False) -> None:
    """Bind a credential to an agent id; ``replace``: also to that of an agent that has one.

    The same credential again is one join: its answer was lost. Raises AlreadyExists while another connection of that
    name is open, and for an agent that has another credential.
    """
    known = await conn.fetchval(Q.credential_of, agent_id)
    if known == credential_hash:
        return
    if await conn.fetchval(Q.is_connected, agent_id):
        raise AlreadyExists(
            f"agent {agent_id!r} already exists and is connected: give this one another name (--agent-id), "
            "or stop the other first"
        )
    if known is not None and replace:
        await conn.execute(Q.rejoin, agent_id, pool, credential_hash)
    elif known is not None or await conn.fetchval(Q.join, agent_id, pool, credential_hash) is None:
        raise AlreadyExists(
            f"agent {agent_id!r} already exists: it has joined, and its credential is not replaced: give this one "
            "another name (--agent-id). For the same machine set up anew an administrator makes a token for it "
            f"(tenax agent join-token create --agent {agent_id}) or forgets the old one (tenax agent remove {agent_id})"
        )


@dataclass(frozen=True, slots=True)
class AgentStanding:
    """Where an agent stands in the database; numbers are -1 for an agent that is not there."""

    #: Of its newest connection.
    session: int
    #: Of what it should run.
    revision: int
    #: Of the cluster.
    generation: int


async def open_session(
    conn: Connection, agent_id: str, hello: Hello, address: str, foreign: list[Json]
) -> AgentStanding:
    """A new connection, from now on the only one that counts; slots and presence as in its hello. Raises NotFound."""
    allowed: JsonObject | None = None if hello.allowed is None else msgspec.to_builtins(hello.allowed)
    shown = hello.hostname, address, hello.runtime, hello.agent_version
    try:
        await conn.execute(Q.open_session, agent_id, *shown, foreign, allowed, hello.labels)
    except ForeignKeyViolationError as error:
        raise NotFound(f"agent {agent_id} not found") from error
    slots = hello.slots
    numbers, kinds, names = [slot.id for slot in slots], [slot.kind for slot in slots], [slot.name for slot in slots]
    uuids, memory, faults = (
        [slot.uuid for slot in slots],
        [slot.memory for slot in slots],
        [slot.fault for slot in slots],
    )
    await conn.execute(Q.put_slots, agent_id, numbers, kinds, names, uuids, memory, faults)
    await conn.execute(Q.drop_slots, agent_id, numbers)
    await notify(conn, "agent", agent_id)
    await notify(conn, "scheduling", "")
    return await standing(conn, agent_id)


async def standing(conn: Connection, agent_id: str) -> AgentStanding:
    """Its newest connection and what it should run."""
    row = await conn.fetchrow(Q.standing, agent_id)
    return (
        AgentStanding(-1, -1, -1) if row is None else AgentStanding(row["session"], row["revision"], row["generation"])
    )


async def foreign_ended(conn: Connection, agent_id: str, container_ids: list[str]) -> None:
    """Of the containers that this database does not know these have ended: they hold no machine any more."""
    await conn.execute(Q.foreign_ended, agent_id, container_ids)


async def known_containers(conn: Connection, agent_id: str, container_ids: list[str]) -> set[str]:
    """Those of these containers that the database has as this agent's."""
    return {row["container_id"] for row in await conn.fetch(Q.known_containers, agent_id, container_ids)}


async def heartbeat(conn: Connection, agent_id: str, session: int) -> bool:
    """Note a sign of life on this connection; False, and nothing noted, if it is not the agent's newest.

    It locks a row that nothing else does, and comes last: at the end of a transaction (`docs/internals.md`).
    """
    row = await conn.fetchrow(Q.heartbeat, agent_id, session)
    if row is not None and row["is_back"]:
        await _changed(conn, agent_id)
    return row is not None


async def heartbeats(conn: Connection, connections: Collection[tuple[str, int]]) -> dict[tuple[str, int], bool]:
    """The same of many agents and connections, in one statement that waits for nobody: whether each is the newest.

    Of an agent whose row somebody else holds, or that is not there, nothing is noted or said.
    """
    names, sessions = [name for name, _ in connections], [session for _, session in connections]
    rows = await conn.fetch(Q.heartbeats, names, sessions, CHANNEL)
    return {(row["agent_id"], row["session"]): row["current"] for row in rows}


async def close_unheard(conn: Connection, after_s: float) -> list[str]:
    """Take agents for not connected of which nothing came for so long, whatever their connections became; their names.

    Nothing is placed on them until they are heard again.
    """
    names = [row["agent_id"] for row in await conn.fetch(Q.close_unheard, after_s)]
    for name in names:
        await _changed(conn, name)
    return names


async def disconnected(conn: Connection, agent_id: str, session: int, *, silent: bool = False) -> None:
    """Its connection has ended; ``silent``: because nothing came, not by itself."""
    await conn.execute(Q.disconnected, agent_id, session, silent)
    await _changed(conn, agent_id)


async def _changed(conn: Connection, agent_id: str) -> None:
    """It is connected now, or is not any more; it takes work, or does not."""
    await notify(conn, "agent", agent_id)
    await notify(conn, "scheduling", "")


async def set_state(conn: Connection, agent_id: str, state: str, reason: str = "", rest_s: float | None = None) -> None:
    """Whether it takes work: ENABLED, DRAINING (what runs may end), DISABLED. Raises NotFound."""
    await existing(conn, f"agent {agent_id!r}", Q.set_state, agent_id, state, reason, rest_s)
    await _changed(conn, agent_id)


async def set_state_if_there(conn: Connection, agent_id: str, state: str, reason: str) -> None:
    """As `set_state`, or nothing where there is no such agent."""
    if await conn.fetchval(Q.set_state, agent_id, state, reason, None) is not None:
        await _changed(conn, agent_id)
        await notify(conn, "deadline", "")


async def end_rests(conn: Connection) -> list[str]:
    """Let those take work again that were taken out by themselves, once they have rested; their names."""
    names = [row["agent_id"] for row in await conn.fetch(Q.rested)]
    if names:
        await conn.execute(Q.end_rests, names)
    for name in names:
        await _changed(conn, name)
    return names


async def desired_containers(conn: Connection, agent_id: str) -> list[JsonObject]:
    """A row for each container of an agent that is not gone."""
    return [dict(row) for row in await conn.fetch(_DESIRED, agent_id)]


@dataclass(frozen=True, slots=True)
class SilentAgent:
    """One that was not heard, nor were its tasks, for as long as is waited for it: seconds."""

    agent_id: str
    wait_s: float
    seconds: float


async def silent(conn: Connection, waits_s: Mapping[str, float]) -> list[SilentAgent]:
    """Agents with live containers that were silent for as long as those of their pool are waited for.

    ``waits_s``: seconds, by pool; the longest of them is for the agents of others. Where tasks of an agent are heard,
    and nobody waits for the end of something there, it is waited for longer: up to four times.
    """
    rows = await conn.fetch(Q.silent, list(waits_s), list(waits_s.values()), max(waits_s.values()))
    return [SilentAgent(**row) for row in rows]


async def silent_since(conn: Connection, agent_id: str, wait_s: float) -> float | None:
    """When it was heard last, in seconds on the database's clock; None: it is not silent, as `silent` says.

    It stays so until the transaction ends. Ask once everything is locked that is changed because of it: whoever waits
    for a lock knows less than before. ``wait_s`` 0: whenever it was heard.
    """
    since: float | None = await conn.fetchval(Q.silent_since, agent_id, wait_s)
    return since


async def ask_for_life(conn: Connection, unheard_s: float) -> None:
    """Have the tasks of agents that were silent for so long show that they live: they are answered, and ask again."""
    for row in await conn.fetch(Q.asked_for_life, unheard_s):
        await notify(conn, "allocation", row["allocation_id"])


async def tasks_heard(conn: Connection, allocation_id: str) -> None:
    """A task of an agent that is not heard itself lives; nothing where it does not speak for its agent."""
    await conn.execute(Q.tasks_heard, allocation_id)


async def live_containers(conn: Connection, agent_id: str) -> list[str]:
    """Containers of an agent that have not ended."""
    return [row["container_id"] for row in await conn.fetch(Q.live_containers, agent_id)]


_DESIRED = load("allocations").desired_containers


@dataclass(frozen=True, slots=True)
class AgentOccupancy:
    """What speaks against removing an agent."""

    connected: bool
    #: Containers there that count as running.
    live: int


async def set_agent(conn: Connection, agent_id: str, state: str) -> None:
    """ENABLED, DRAINING (what runs may end), DISABLED (what runs is evicted): a person says so. Raises NotFound."""
    await set_state(conn, agent_id, state)
    if state == "ENABLED":
        await conn.execute(Q.setbacks_forget, agent_id)
    await notify(conn, "deadline", "")


async def set_slot(conn: Connection, agent_id: str, slot_id: int, *, enabled: bool, draining: bool = False) -> None:
    """Whether new work may use a slot, and whether what runs on it may end by itself. Raises NotFound."""
    await conn.fetch(Q.hold, [agent_id])
    if await conn.fetchval(Q.set_slot, agent_id, slot_id, enabled, draining) is None:
        raise NotFound(f"slot {slot_id} of agent {agent_id!r} not found")
    await notify(conn, "agent", agent_id)
    await notify(conn, "scheduling", "")
    await notify(conn, "deadline", "")


async def evict_from_disabled(conn: Connection, agent_id: str | None = None) -> None:
    """Let the time of every attempt be over that runs on what is disabled and does not drain; of one agent, or all."""
    leaving = {}
    for row in await conn.fetch(Q.on_disabled, agent_id):
        what = f"agent {row['agent_id']}" if row["whole"] else f"slot {row['slot_id']} of agent {row['agent_id']}"
        leaving[row["allocation_id"]] = LeaveRequest(row["allocation_id"], f"{what} was disabled", 0.0)
    await allocations.ask_to_leave(conn, list(leaving.values()))


async def check_open(conn: Connection, allocation_id: str, agent_ids: Iterable[str]) -> None:
    """Raises Stale where what an attempt was placed on was closed or removed meanwhile, or is not in its job's pool.

    Holds these agents: from then on nobody else disables them. At the end of a transaction.
    """
    names = sorted(set(agent_ids))
    await conn.fetch(Q.hold, names)
    if await conn.fetchval(Q.closed, names, allocation_id):
        raise Stale


async def close_idle(conn: Connection, agent_id: str) -> None:
    """Let an agent take nothing new, at once, where nothing is there. Raises Stale where something is, NotFound.

    Holds the agent, as placements do at their end: whichever comes first is seen by the other.
    """
    await conn.fetch(Q.hold, [agent_id])
    if await conn.fetchval(Q.holds_containers, agent_id):
        raise Stale
    await set_state(conn, agent_id, "DISABLED")


async def remove_if_there(conn: Connection, agent_id: str) -> None:
    """As `remove`, or nothing where there is no such agent."""
    if await conn.fetchval(Q.credential_of, agent_id) is not None:
        await remove(conn, agent_id)


async def presence(conn: Connection, agent_id: str) -> AgentOccupancy:
    """Raises NotFound."""
    return AgentOccupancy(**await existing(conn, f"agent {agent_id!r}", Q.agent_standing, agent_id))


async def remove(conn: Connection, agent_id: str) -> None:
    """Forget an agent and its slots; its containers have ended, and nothing of them is waited for any more.

    Raises NotFound, NotNow (it is connected again), Stale (something was placed there meanwhile).
    """
    await conn.execute(Q.forget_containers, agent_id)
    await conn.execute(Q.forget_slots, agent_id)
    await conn.fetch(Q.hold, [agent_id])
    now = await presence(conn, agent_id)
    if now.connected:
        raise NotNow(f"agent {agent_id!r} is connected: stop it on its machine first")
    if now.live:
        raise Stale
    try:
        await conn.execute(Q.remove, agent_id)
    except ForeignKeyViolationError as error:
        raise Stale from error
    await notify(conn, "agent", agent_id)
    for kind in ("scheduling", "deletion", "experiment"):
        await notify(conn, kind, "")
