"""Rows of access tokens: long-lived credentials of people.

Rules: only the sha256 of a token is stored; one that is revoked stays, as a record, and takes those with it that were
made with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import existing, load
from tenax.master.store.users.rows import user_from
from tenax.master.store.users.sessions import SessionOf

Q = load("users")

#: Columns that a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "id": "t.id",
    "user_id": "t.user_id",
    "expires_at": "t.expires_at",
    "created_at": "t.created_at",
    "revoked": "t.revoked_at is not null",
    "description": "lower(t.description)",
}


@dataclass(frozen=True, slots=True)
class AccessTokenRow:
    """All about a token but the token."""

    id: int
    user_id: int
    username: str
    description: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """Which tokens to list; None: any. The parameters of `access_token_matching`, in its order."""

    user_id: int | None = None
    username: str | None = None
    ids: tuple[int, ...] | None = None
    #: Also those that are revoked or have expired.
    inactive: bool = False


async def create(
    conn: Connection,
    user_id: int,
    made_by: int,
    token_hash: bytes,
    description: str,
    seconds: float,
    made_with: int | None = None,
) -> int:
    """The id of a new token of ``user_id``, good for so many seconds; ``made_with``: the token that asked for it."""
    values = (user_id, made_by, token_hash, description, seconds, made_with)
    new: int = await conn.fetchval(Q.access_token_create, *values)
    return new


async def seconds_left(conn: Connection, token_id: int) -> float:
    """For how long it is still good, unchanged by others until the transaction ends; 0 for one that is not any more."""
    await lock(conn, token_id)
    return float(await conn.fetchval(Q.access_token_seconds_left, token_id))


async def lock(conn: Connection, token_id: int) -> AccessTokenRow:
    """One token, unchanged by others until the transaction ends. Raises NotFound."""
    return AccessTokenRow(**await existing(conn, f"token {token_id}", Q.access_token_lock, token_id))


async def describe(conn: Connection, token_id: int, description: str) -> None:
    """Say what it is for."""
    await conn.execute(Q.describe, token_id, description)


async def revoke(conn: Connection, token_id: int) -> set[int]:
    """End it for good, and those that were made with it: the users whose tokens have ended by this."""
    return {row["user_id"] for row in await conn.fetch(Q.revoke, token_id)}


async def count(conn: Connection, filters: TokenFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {Q.access_token_matching}", *astuple(filters))
    return total


async def page(
    conn: Connection, filters: TokenFilter, window: Page, *, order: str = "id", descending: bool = False
) -> list[AccessTokenRow]:
    """A page of those that match."""
    direction = "desc" if descending else "asc"
    selected, order_by = f"{Q.access_token_columns} {Q.access_token_matching}", ORDERS[order]
    text = f"{selected} order by {order_by} {direction}, t.id {direction} limit $5 offset $6"
    return [AccessTokenRow(**row) for row in await conn.fetch(text, *astuple(filters), window.limit, window.offset)]


async def user_of(conn: Connection, token_hash: bytes) -> SessionOf | None:
    """The user of a token that is good; None for any other."""
    row = await conn.fetchrow(Q.access_token_user_of, token_hash)
    return None if row is None else SessionOf(user_from(row), None, row["seconds_left"], row["token_id"])
