"""The administrators' message to everyone: one at most, from a moment on, until another or for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.queries import load

Q = load("cluster_message")

#: Characters.
LONGEST = 250


@dataclass(frozen=True, slots=True)
class ClusterMessage:
    """What is shown to everyone."""

    message: str
    starts_at: datetime
    #: None: until it is taken back.
    ends_at: datetime | None
    created_at: datetime
    #: It is shown by now.
    begun: bool


async def get(conn: Connection) -> ClusterMessage | None:
    """The message, if its time is not over; it may not have begun."""
    row = await conn.fetchrow(Q.get)
    return None if row is None else ClusterMessage(**row)


async def put(conn: Connection, message: str, starts_at: datetime, ends_at: datetime | None, set_by: int) -> None:
    """Set it, in the place of the one before."""
    await conn.execute(Q.put, message, starts_at, ends_at, set_by)


async def drop(conn: Connection) -> None:
    """Take it back; nothing where there is none."""
    await conn.execute(Q.drop)
