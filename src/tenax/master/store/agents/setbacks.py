"""Rows of setbacks: starts that failed on an agent, one after the other, for reasons that were not theirs.

Written by who serves the agent's newest connection alone; there are none of an agent on which one has succeeded since.
"""

from __future__ import annotations

from collections.abc import Mapping

from asyncpg import Connection

from tenax.lifecycle.agent import AGE_S, REST_S, Setback, why_taken_out
from tenax.master.store.agents import rows as agents
from tenax.master.store.database.queries import load

Q = load("agents")


async def note(conn: Connection, agent_id: str, reasons: Mapping[str, str]) -> None:
    """Containers that have just failed there, by name: one setback more, if one of them began after the last."""
    await conn.execute(Q.setback_note, agent_id, list(reasons), list(reasons.values()))


async def forget(conn: Connection, agent_id: str) -> None:
    """A start has succeeded there."""
    await conn.execute(Q.setbacks_forget, agent_id)


async def take_out(conn: Connection, agent_id: str) -> str:
    """Let it rest if its setbacks say so and it takes work; why, and empty where it goes on."""
    # Its row is held from here on: whoever enables it has done so before, or does it after.
    if not await conn.fetchval(Q.takes_work, agent_id):
        return ""
    rows = [Setback(**row) for row in await conn.fetch(Q.setbacks_of, agent_id, AGE_S)]
    reason = why_taken_out(rows, others_start=await conn.fetchval(Q.others_start, agent_id, AGE_S))
    if reason:
        await agents.set_state(conn, agent_id, "DRAINING", reason, REST_S)
    return reason
