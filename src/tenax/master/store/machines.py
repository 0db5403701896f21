"""Agents and slots turned on and off, and agents that are removed for good.

Rules: what is turned off takes nothing new from the moment that this is committed, whatever was planned before; what
runs on what is turned off at once is turned out, by the same deadline as any other attempt; an agent is removed only
while it is not connected, and when nothing there counts as running.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asyncpg import Connection
from asyncpg.exceptions import ForeignKeyViolationError

from tenax.errors import NotFound, NotNow, Stale
from tenax.master.store import agents, allocations
from tenax.master.store.queries import load
from tenax.master.store.wakeups import notify

Q = load("machines")


@dataclass(frozen=True, slots=True)
class Standing:
    """What speaks against removing an agent."""

    connected: bool
    #: Containers there that count as running.
    live: int


async def set_agent(conn: Connection, agent_id: str, state: str) -> None:
    """ENABLED, DRAINING (what runs may end), DISABLED (what runs is turned out). Raises NotFound."""
    await agents.set_state(conn, agent_id, state)
    await notify(conn, "deadline", "")


async def set_slot(conn: Connection, agent_id: str, slot_id: int, *, enabled: bool, draining: bool = False) -> None:
    """Whether new work may use a slot, and whether what runs on it may end by itself. Raises NotFound."""
    await conn.fetchval(Q.hold, agent_id)
    if await conn.fetchval(Q.set_slot, agent_id, slot_id, enabled, draining) is None:
        raise NotFound(f"agent {agent_id!r} has no slot {slot_id}")
    await notify(conn, "scheduling", "")
    await notify(conn, "deadline", "")


async def turn_out(conn: Connection, agent_id: str | None = None) -> None:
    """Let the time of every attempt be over that runs on what was turned off at once; of one agent, or of all."""
    for row in await conn.fetch(Q.turned_out, agent_id):
        what = f"agent {row['agent_id']}" if row["whole"] else f"slot {row['slot_id']} of agent {row['agent_id']}"
        await allocations.ask_to_leave(conn, row["allocation_id"], f"{what} was disabled", 0.0)


async def check_open(conn: Connection, allocation_id: str, agent_ids: Iterable[str]) -> None:
    """Raises Stale where an attempt was placed on what was turned off, or removed, meanwhile.

    After the revision of these agents was raised: from then on nobody else turns them off.
    """
    if await conn.fetchval(Q.closed, sorted(set(agent_ids)), allocation_id):
        raise Stale


async def standing(conn: Connection, agent_id: str) -> Standing:
    """Raises NotFound."""
    row = await conn.fetchrow(Q.standing, agent_id)
    if row is None:
        raise NotFound(f"there is no agent {agent_id!r}")
    return Standing(row["connected"], row["live"])


async def remove(conn: Connection, agent_id: str) -> None:
    """Forget an agent and its slots; its containers have ended, and nothing of them is waited for any more.

    Raises NotFound, NotNow (it is connected again), Stale (something was placed there meanwhile).
    """
    await conn.execute(Q.forget_containers, agent_id)
    await conn.execute(Q.forget_slots, agent_id)
    await conn.fetchval(Q.hold, agent_id)
    now = await standing(conn, agent_id)
    if now.connected:
        raise NotNow(f"agent {agent_id!r} is connected: stop it on its machine first")
    if now.live:
        raise Stale
    try:
        await conn.execute(Q.remove, agent_id)
    except ForeignKeyViolationError as error:
        raise Stale from error
    for kind in ("scheduling", "deletion", "experiment"):
        await notify(conn, kind, "")
