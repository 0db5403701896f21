"""Rows of users. Passwords are kept as argon2 of what the client sends; null is a blank password."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import AlreadyExists, NotFound
from tenax.master.store.database.paging import Page, like
from tenax.master.store.database.queries import existing, load, row_as

Q = load("users")

#: Never the hash of anything: such a user logs in elsewhere.
NO_LOGIN = "no-login"


@dataclass(frozen=True, slots=True)
class UserRow:
    """The whole row."""

    id: int
    username: str
    display_name: str = ""
    admin: bool = False
    active: bool = True
    remote: bool = False
    #: argon2 hash; None: blank password.
    password_hash: str | None = None
    agent_uid: int | None = None
    agent_gid: int | None = None
    agent_user: str | None = None
    agent_group: str | None = None
    modified_at: datetime | None = None
    last_login_at: datetime | None = None

    def __repr__(self) -> str:
        return f"UserRow({self.id}, {self.username!r})"


@dataclass(frozen=True, slots=True)
class FileOwner:
    """Which users of the operating system own files that a user's tasks have written."""

    #: None: the user is linked with none, and files are anybody's but of ``others``.
    uids: frozenset[int] | None
    #: As whom tasks of other users run.
    others: frozenset[int]

    def owns(self, uid: int) -> bool:
        return uid not in self.others if self.uids is None else uid in self.uids


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Which users to list; None: either."""

    active: bool | None = None
    admin: bool | None = None
    #: Part of the user name or display name.
    name: str | None = None
    order: str = "id"
    descending: bool = False


#: Columns that a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "id": "id",
    "username": "lower(username)",
    "display_name": "lower(display_name)",
    "name": "lower(coalesce(nullif(display_name, ''), username))",
    "admin": "admin",
    "active": "active",
    "remote": "remote",
    "modified_at": "modified_at",
    "last_login_at": "last_login_at",
}


def user_from(row: Mapping[str, object]) -> UserRow:
    """The user in a row that holds these columns."""
    return row_as(UserRow, row)


async def get(conn: Connection, user_id: int) -> UserRow:
    """Raises NotFound."""
    return user_from(await existing(conn, f"user {user_id}", Q.by_id, user_id))


async def find(conn: Connection, username: str) -> UserRow | None:
    """The user of that name, whatever its capitals."""
    row = await conn.fetchrow(Q.by_name, username)
    return None if row is None else user_from(row)


async def create(conn: Connection, user: UserRow) -> int:
    """The id of the new user (that of ``user`` is ignored). Raises AlreadyExists."""
    new: int | None = await conn.fetchval(Q.create, *_columns(user)[1:])
    if new is None:
        raise AlreadyExists(f"user {user.username!r} already exists: choose another name")
    return new


async def update(conn: Connection, user: UserRow) -> None:
    """Write all columns of ``user``. Raises NotFound, AlreadyExists."""
    other = await find(conn, user.username)
    if other is not None and other.id != user.id:
        raise AlreadyExists(f"user {user.username!r} already exists: choose another name")
    await existing(conn, f"user {user.id}", Q.update, *_columns(user))


async def lock(conn: Connection, user_id: int) -> tuple[UserRow, bool]:
    """The user, and whether an active administrator is left beside them; nobody changes either until the transaction
    ends. Raises NotFound.
    """
    users = {row["id"]: user_from(row) for row in await conn.fetch(Q.lock, user_id)}
    user = users.pop(user_id, None)
    if user is None:
        raise NotFound(f"user {user_id} not found")
    return user, any(other.admin and other.active for other in users.values())


async def check_there(conn: Connection, user_ids: Sequence[int]) -> None:
    """Raises NotFound, naming those of ``user_ids`` that are no users."""
    missing = [str(row["id"]) for row in await conn.fetch(Q.missing, list(user_ids))]
    if missing:
        raise NotFound(f"user {', '.join(missing)} not found")


async def logged_in(conn: Connection, user_id: int) -> None:
    """Note the time of a login."""
    await conn.execute(Q.logged_in, user_id)


async def none_yet(conn: Connection) -> bool:
    """Whether the database is new."""
    return not await conn.fetchval(Q.count)


async def create_first(conn: Connection, names: Mapping[str, bool], hashes: Mapping[str, str | None]) -> bool:
    """Make the first users if there are none; whether they were made. In a transaction.

    ``names``: whether each is an administrator; ``hashes``: of the password of each, None for a blank one.
    """
    await conn.execute(Q.lock_table)
    if await conn.fetchval(Q.count):
        return False
    for name, admin in names.items():
        await create(conn, UserRow(0, name, admin=admin, password_hash=hashes[name]))
    return True


async def file_owner(conn: Connection, user_id: int | None, *, elsewhere: bool) -> FileOwner:
    """Whose files on disk a user's are; None: nobody's.

    ``elsewhere``: it was trained outside of the cluster, where no agent saw to it as whom. Then a user who is linked
    with no uid has none here, as soon as there are users who are.
    """
    row = await conn.fetchrow(Q.file_owner, user_id)
    shared = frozenset(row["shared"])
    others = frozenset(row["others"]) - shared - {row["own"]}
    if row["own"] is not None:
        return FileOwner(shared | {row["own"], *row["before"]}, others)
    return FileOwner(shared if elsewhere and others else None, others)


async def count(conn: Connection, filters: UserFilter) -> int:
    """How many users match."""
    total: int = await conn.fetchval(f"select count(*) {Q.matching}", filters.active, filters.admin, like(filters.name))
    return total


async def page(conn: Connection, filters: UserFilter, window: Page) -> list[UserRow]:
    """The users of a page."""
    direction = "desc" if filters.descending else "asc"
    order = f"{ORDERS[filters.order]} {direction} nulls last, id {direction}"
    rows = await conn.fetch(
        f"{Q.columns} {Q.matching} order by {order} limit $4 offset $5",
        filters.active,
        filters.admin,
        like(filters.name),
        window.limit,
        window.offset,
    )
    return [user_from(row) for row in rows]


def _columns(user: UserRow) -> tuple[object, ...]:
    return (
        user.id,
        user.username,
        user.display_name,
        user.admin,
        user.active,
        user.remote,
        user.password_hash,
        user.agent_uid,
        user.agent_gid,
        user.agent_user,
        user.agent_group,
    )
