"""Rows of the cluster: its identity with the secret that credentials of tasks are derived from, and one message.

The message is the administrators' to everyone: one at most, shown from a moment on, until another or for good.
"""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass, field
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("cluster")


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """Written once; it lives as long as the database."""

    cluster_id: str
    #: Raised when the database was restored from a copy.
    generation: int
    name: str
    secret: bytes = field(repr=False)


async def ensure(conn: Connection, name: str) -> ClusterRow:
    """The cluster, made if it is not there yet; renamed if ``name`` is given and another."""
    await conn.execute(Q.create, uuid.uuid4(), name, secrets.token_bytes(32))
    await conn.execute(Q.rename, name)
    row = await conn.fetchrow(Q.get)
    return ClusterRow(row["cluster_id"], row["generation"], row["name"], row["secret"])


async def raise_generation(conn: Connection, seen: int) -> int:
    """The database was restored from a copy: one generation more, unless it is not ``seen`` any more. Returns it."""
    generation: int = await conn.fetchval(Q.raise_generation, seen)
    return generation


#: Characters.
MAX_MESSAGE = 250


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


async def get_message(conn: Connection) -> ClusterMessage | None:
    """The message, if its time is not over; it may not have begun."""
    row = await conn.fetchrow(Q.message_get)
    return None if row is None else ClusterMessage(**row)


async def lock_message(conn: Connection) -> None:
    """Until the transaction ends, nobody else sets one or takes it back."""
    await conn.execute(Q.message_lock)


async def set_message(
    conn: Connection, message: str, starts_at: datetime, ends_at: datetime | None, set_by: int
) -> None:
    """Set it, in place of the one before. In a transaction."""
    await conn.execute(Q.put, message, starts_at, ends_at, set_by)
    await notify(conn, "cluster_message", 1)


async def clear_message(conn: Connection) -> None:
    """Take it back; nothing where there is none. In a transaction."""
    await conn.execute(Q.drop)
    await notify(conn, "cluster_message", 1)
