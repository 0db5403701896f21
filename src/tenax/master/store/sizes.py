"""How much the database takes."""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.queries import load

Q = load("sizes")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes on disk, indexes included."""

    logs: int
    metrics: int


async def telemetry(conn: Connection) -> Sizes:
    """What logs and metrics take."""
    row = await conn.fetchrow(Q.telemetry)
    return Sizes(row["logs"], row["metrics"])


async def local_directory(conn: Connection) -> str | None:
    """The server's data directory, when the server is on this machine and tells."""
    found: str | None = await conn.fetchval(Q.local_directory)
    return found
