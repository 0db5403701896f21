"""The cluster's one row: who it is, and the secret that tasks' credentials are derived from."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass, field

from asyncpg import Connection

from tenax.master.store.queries import load

Q = load("cluster")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Written once; it lives as long as the database."""

    cluster_id: str
    #: Raised when the database was restored from a copy.
    generation: int
    name: str
    secret: bytes = field(repr=False)


async def ensure(conn: Connection, name: str) -> Cluster:
    """The cluster, made if it is not there yet; renamed if ``name`` is given and another."""
    await conn.execute(Q.create, uuid.uuid4(), name, secrets.token_bytes(32))
    await conn.execute(Q.rename, name)
    row = await conn.fetchrow(Q.get)
    return Cluster(row["cluster_id"], row["generation"], row["name"], row["secret"])


async def raise_generation(conn: Connection, seen: int) -> int:
    """The database was restored from a copy: one generation more, unless it is not ``seen`` any more. Returns it."""
    generation: int = await conn.fetchval(Q.raise_generation, seen)
    return generation
