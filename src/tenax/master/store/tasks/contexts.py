"""Archives of code, stored once by hash and read in pieces."""

from __future__ import annotations

from asyncpg import Connection

from tenax.master.store.database.queries import existing, load

Q = load("tasks")


async def put(conn: Connection, hash: str, archive: bytes, size_bytes: int) -> None:
    """Keep an archive, for what is made in this transaction; nothing is stored if it is there already."""
    if not await conn.fetchval(Q.keep, hash):
        await conn.execute(Q.put, hash, archive, size_bytes)


async def get(conn: Connection, hash: str) -> bytes:
    """A whole archive. Raises NotFound."""
    archive: bytes = (await existing(conn, f"code with the hash {hash}", Q.context_get, hash))[0]
    return archive


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
