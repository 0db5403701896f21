"""Rows of join tokens: what lets agents in, so often and for so long.

Rules: only the sha256 of a token is stored; one that is revoked, has ended or is used up stays for a while, as a
record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.queries import existing, load

Q = load("agents")


@dataclass(frozen=True, slots=True)
class JoinTokenRow:
    """All about a join token but the token."""

    id: int
    description: str
    #: Who made it; None for somebody who was deleted.
    made_by: int | None
    #: The one agent that it lets in, in the place of one of that name; None: any agent that there is not yet.
    agent_id: str | None
    #: None: as often as it is used.
    uses_left: int | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    #: Neither revoked nor over nor used up.
    good: bool


async def create(
    conn: Connection,
    token_hash: bytes,
    made_by: int,
    *,
    description: str,
    agent_id: str | None,
    uses: int | None,
    seconds: float,
) -> JoinTokenRow:
    """A new token, good for so many agents and seconds. Forgets those that have long been of no use."""
    await conn.execute(Q.join_tokens_forget)
    new = await conn.fetchval(Q.join_token_create, token_hash, made_by, description, agent_id, uses, seconds)
    return await _get(conn, new)


async def all_of(conn: Connection, *, inactive: bool) -> list[JoinTokenRow]:
    """The tokens that are good, the oldest first; ``inactive``: and those that are not any more."""
    rows = await conn.fetch(f"{Q.join_token_columns} order by id")
    return [token for token in (JoinTokenRow(**row) for row in rows) if token.good or inactive]


async def revoke(conn: Connection, token_id: int) -> JoinTokenRow:
    """End it for good. Raises NotFound."""
    await existing(conn, f"join token {token_id}", Q.join_token_revoke, token_id)
    return await _get(conn, token_id)


async def use(conn: Connection, token_hash: bytes, agent_id: str) -> JoinTokenRow | None:
    """Use a token once for that agent; None for one that is not good for it. Taken back with the transaction."""
    token_id = await conn.fetchval(Q.join_token_use, token_hash, agent_id)
    return None if token_id is None else await _get(conn, token_id)


async def is_good(conn: Connection, token_hash: bytes) -> bool:
    """Whether an agent could join with a token; nothing of it is used up."""
    return bool(await conn.fetchval(Q.join_token_is_good, token_hash))


async def _get(conn: Connection, token_id: int) -> JoinTokenRow:
    columns = f"{Q.join_token_columns} where id = $1"
    return JoinTokenRow(**await existing(conn, f"join token {token_id}", columns, token_id))
