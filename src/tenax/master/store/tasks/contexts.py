"""Archives of code, stored once by hash and read in pieces."""

from __future__ import annotations

import asyncio
from typing import IO

from asyncpg import Connection

from tenax.master.store.database.queries import existing, load

Q = load("tasks")

#: Sent at a time.
_PIECE = 2 << 20


async def put(conn: Connection, hash: str, archive: IO[bytes], size_bytes: int) -> None:
    """Keep an archive, for what is made in this transaction; nothing is stored if it is there already.

    It is sent in pieces, and put together by the database.
    """
    if await conn.fetchval(Q.keep, hash):
        return
    archive.seek(0)
    first = await asyncio.to_thread(archive.read, _PIECE)
    if len(first) < _PIECE:
        await conn.execute(Q.put, hash, first, size_bytes)
        return
    whole = await conn.fetchval(Q.begin_whole, first)
    offset = len(first)
    while piece := await asyncio.to_thread(archive.read, _PIECE):
        await conn.execute(Q.add_to_whole, whole, offset, piece)
        offset += len(piece)
    await conn.execute(Q.put_whole, hash, whole, size_bytes)
    await conn.execute(Q.drop_whole, whole)


async def size(conn: Connection, hash: str) -> int:
    """Bytes of an archive. Raises NotFound."""
    size_bytes: int = (await existing(conn, f"code with the hash {hash}", Q.context_size, hash))[0]
    return size_bytes


async def part(conn: Connection, hash: str, offset: int, length: int) -> bytes:
    """Bytes ``offset`` .. ``offset + length`` of an archive that is there; fewer at its end."""
    data: bytes | None = await conn.fetchval(Q.part, hash, offset + 1, length)
    return data or b""


async def of_experiment(conn: Connection, experiment_id: int) -> str | None:
    """Hash of an experiment's code; None for none. Raises NotFound."""
    row = await existing(conn, f"experiment {experiment_id}", Q.of_experiment, experiment_id)
    context_hash: str | None = row["context_hash"]
    return context_hash


async def of_task(conn: Connection, task_id: str) -> str | None:
    """Hash of a task's code; None for none. Raises NotFound."""
    row = await existing(conn, f"task {task_id}", Q.of_task, task_id)
    context_hash: str | None = row["context_hash"]
    return context_hash


async def needed_by_agent(conn: Connection, agent_id: str, hash: str) -> bool:
    """Whether a container on that agent needs this code."""
    return bool(await conn.fetchval(Q.needed_by_agent, agent_id, hash))


async def delete_unused(conn: Connection, hash: str) -> None:
    """Drop an archive that no experiment and no task has any more."""
    if await conn.fetchval(Q.claim, hash):
        # A statement of its own: it sees what was committed before the row was claimed.
        await conn.execute(Q.delete_unused, hash)
