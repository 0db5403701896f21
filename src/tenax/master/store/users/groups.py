"""Rows of groups of users, and who is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import AlreadyExists, NotFound
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.users.rows import UserRow, check_there, user_from

Q = load("users")


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A named set of users."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list; None: any."""

    name: str | None = None
    #: Those that this user is in.
    user_id: int | None = None


async def create(conn: Connection, name: str, user_ids: Sequence[int]) -> int:
    """The id of a new group with these users. In a transaction. Raises AlreadyExists, NotFound."""
    new: int | None = await conn.fetchval(Q.group_create, name)
    if new is None:
        raise _taken(name)
    await assign(conn, user_ids, add=[new], remove=[])
    return new


async def get(conn: Connection, group_id: int) -> GroupRow:
    """Raises NotFound."""
    row = await conn.fetchrow(Q.get, group_id)
    if row is None:
        raise _missing(group_id)
    return GroupRow(row["id"], row["name"])


async def members(conn: Connection, group_id: int) -> list[UserRow]:
    """Who is in it, by name."""
    return [user_from(row) for row in await conn.fetch(Q.members, group_id)]


async def usernames(conn: Connection) -> dict[str, list[str]]:
    """Who is in each group, by name; one that nobody is in is not there."""
    return {row["name"]: row["usernames"] for row in await conn.fetch(Q.group_usernames)}


async def lock(conn: Connection, group_id: int) -> None:
    """Until the transaction ends, nobody else changes it. Raises NotFound."""
    if await conn.fetchrow(Q.group_lock, group_id) is None:
        raise _missing(group_id)


async def rename(conn: Connection, group_id: int, name: str) -> None:
    """Give it another name. In a transaction. Raises NotFound, AlreadyExists."""
    await lock(conn, group_id)
    if await conn.fetchval(Q.name_taken, group_id, name):
        raise _taken(name)
    await conn.execute(Q.rename, group_id, name)


async def assign(conn: Connection, user_ids: Sequence[int], *, add: Sequence[int], remove: Sequence[int]) -> None:
    """Put users into the groups ``add`` and take them out of ``remove``. In a transaction. Raises NotFound."""
    await check_there(conn, user_ids)
    missing = [row["id"] for row in await conn.fetch(Q.group_missing, [*add, *remove])]
    if missing:
        raise _missing(*missing)
    await conn.execute(Q.remove, list(remove), list(user_ids))
    await conn.execute(Q.add, list(dict.fromkeys(add)), list(dict.fromkeys(user_ids)))
    # Quotas may be of groups.
    await notify(conn, "scheduling", "")


async def delete(conn: Connection, group_id: int) -> None:
    """Raises NotFound."""
    if await conn.fetchval(Q.delete, group_id) is None:
        raise _missing(group_id)
    await notify(conn, "scheduling", "")


async def count(conn: Connection, filters: GroupFilter) -> int:
    """How many groups match."""
    total: int = await conn.fetchval(Q.group_count, filters.name, filters.user_id)
    return total


async def page(conn: Connection, filters: GroupFilter, window: Page) -> list[tuple[GroupRow, int]]:
    """The groups of a page by name, each with how many are in it."""
    rows = await conn.fetch(Q.page, filters.name, filters.user_id, window.limit, window.offset)
    return [(GroupRow(row["id"], row["name"]), row["members"]) for row in rows]


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"group {name!r} already exists: choose another name")


def _missing(*group_ids: int) -> NotFound:
    return NotFound(f"group {', '.join(str(number) for number in group_ids)} not found")
