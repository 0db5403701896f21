"""Rows of setbacks: runs that failed on an agent, one after the other, for reasons that were not theirs.

Written by who serves the agent's newest connection alone; there are none of an agent on which something ended
otherwise since.
"""

from __future__ import annotations

from collections.abc import Mapping

from asyncpg import Connection

from tenax.lifecycle.agent import Setback, why_taken_out
from tenax.master.store.agents import rows as agents
from tenax.master.store.database.queries import load

Q = load("agents")


async def note(conn: Connection, agent_id: str, reasons: Mapping[str, str]) -> None:
    """Containers that have just failed there, by name: one setback more, if one of them began after the last."""
    await conn.execute(Q.setback_note, agent_id, list(reasons), list(reasons.values()))


async def forget(conn: Connection, agent_id: str) -> None:
    """Something has ended there otherwise."""
    await conn.execute(Q.setbacks_forget, agent_id)


async def take_out(conn: Connection, agent_id: str) -> str:
    """Let it drain if its setbacks say so and it takes work; why, and empty where it goes on."""
    found = [Setback(**row) for row in await conn.fetch(Q.setbacks_of, agent_id)]
    reason = why_taken_out(found)
    if not reason or not await conn.fetchval(Q.takes_work, agent_id):
        return ""
    await agents.set_agent(conn, agent_id, "DRAINING", reason)
    return reason
