"""What clouds say of agents' machines, in the rows of agents.

Rules: a notice takes an agent out as draining with its own words as the reason, once, so that a person who lets it take
work again is not overruled by the same notice; taken back, it gives back what it took, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.lifecycle.notice import Heeded
from tenax.master.store.agents.rows import heartbeat
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.machines import rows as machines

Q = load("agents")


@dataclass(frozen=True, slots=True)
class NoticedAttempt:
    """An attempt with a member on a machine of which there is a notice."""

    allocation_id: str
    task_id: str
    #: It has something to save.
    ready: bool
    #: Nobody has asked it to leave before.
    is_new: bool
    #: Seconds that storing the last checkpoint of its trial took, if that is known.
    saved_in_s: float | None


async def pool_of(conn: Connection, agent_id: str) -> str:
    """Empty for an agent that is not there."""
    return await conn.fetchval(Q.pool_of, agent_id) or ""


async def put(conn: Connection, agent_id: str, session: int, notice: Heeded | None) -> bool:
    """The notice that holds from now on; None: none does. False, and nothing changed: it has a newer connection."""
    if not await heartbeat(conn, agent_id, session):
        return False
    if notice is None:
        changed = await conn.fetchval(Q.clear_notice, agent_id)
    else:
        before = await conn.fetchval(Q.hold_notice, agent_id)
        values = notice.reason, notice.plan.value, notice.within_s
        changed = await conn.fetchval(Q.set_notice, agent_id, *values)
        if changed is not None and before != notice.reason:
            await machines.noticed(conn, agent_id, notice.reason)
    if changed is not None:
        # The loop that rents machines is woken as the queue's readers are.
        for kind, name in (("agent", agent_id), ("scheduling", ""), ("queue", "")):
            await notify(conn, kind, name)
    return True


async def attempts_on(conn: Connection, agent_id: str) -> list[NoticedAttempt]:
    """Those that have not ended."""
    return [NoticedAttempt(**row) for row in await conn.fetch(Q.noticed_attempts, agent_id)]
