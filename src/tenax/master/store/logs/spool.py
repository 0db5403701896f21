"""How far the spools of tasks have been taken in, and what was refused of them."""

from __future__ import annotations

from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.wire.spool import Refusal

Q = load("logs")


async def acked_of_member(conn: Connection, container_id: str, stream: str, allocation_id: str) -> int | None:
    """As `acked`; None: the container is none of the allocation."""
    n: int | None = await conn.fetchval(Q.acked_of_member, container_id, stream, allocation_id)
    return n


async def begin_of_trial(conn: Connection, container_id: str, stream: str, trial_id: int) -> int:
    """As `acked`, of a spool that is a trial's, begun where there is none yet."""
    await conn.execute(Q.begin_of_trial, container_id, stream, trial_id)
    return await acked(conn, container_id, stream)


async def acked(conn: Connection, container_id: str, stream: str) -> int:
    """The last line that was taken in; 0 before the first."""
    n: int | None = await conn.fetchval(Q.acked, container_id, stream)
    return n or 0


async def take(conn: Connection, container_id: str, stream: str, allocation_id: str, n: int) -> bool:
    """Use up number ``n`` and hold the spool until the transaction ends; False: it is not the next one."""
    if n == 1:
        return await conn.fetchval(Q.take_first, container_id, stream, allocation_id) is not None
    return await conn.fetchval(Q.take, container_id, stream, n) is not None


async def refuse(conn: Connection, container_id: str, stream: str, n: int, message: str, fatal: bool) -> None:
    """Remember a refusal: a repeated question gets the same answer."""
    await conn.execute(Q.refuse, container_id, stream, n, message, fatal)


async def refused(conn: Connection, container_id: str, stream: str, first: int, last: int) -> list[Refusal]:
    """Lines ``first`` to ``last`` that were refused."""
    rows = await conn.fetch(Q.refused, container_id, stream, first, last)
    return [{"n": row["n"], "message": row["message"], "fatal": row["fatal"]} for row in rows]
