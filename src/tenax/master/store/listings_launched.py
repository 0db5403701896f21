"""Launched tasks as people see them: filtered, ordered, with where their newest attempt is. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.paging import Page
from tenax.master.store.queries import load

Q = load("listings_launched")

#: How long a task that has ended is listed.
LISTED = "24 hours"


@dataclass(frozen=True, slots=True)
class LaunchedView:
    """One task, and where it is."""

    task_id: str
    kind: str
    job_id: str
    owner_id: int
    username: str
    display_name: str
    description: str
    config: JsonObject
    pool: str
    priority: int
    workspace_id: int
    project_id: int | None
    parent_id: str | None
    forked_from: str | None
    state: str
    reason: str
    pausable: bool
    created_at: datetime
    ended_at: datetime | None
    #: Of the newest attempt; None before the first.
    allocation_id: str | None
    attempt_state: str | None
    ready: bool
    wait_reason: str | None
    #: Of its first member.
    container_id: str | None
    container_state: str | None
    exit_code: int | None
    #: {"id", "type", "brand", "uuid"}
    devices: list[JsonObject]


@dataclass(frozen=True, slots=True)
class LaunchedFilter:
    """What is asked for; None: anything."""

    kind: str
    usernames: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None
    workspace_id: int | None = None


ORDERS: Mapping[str, str] = {
    "id": "t.task_id",
    "description": "lower(l.description)",
    "start_time": "t.created_at",
    "workspace_id": "l.workspace_id",
}
_FROM = (
    "from launched_tasks l join tasks t on t.task_id = l.task_id join jobs j on j.job_id = t.job_id "
    "join users u on u.id = j.owner_id where t.kind = $1 "
    f"and (t.ended_at is null or t.ended_at > now() - interval '{LISTED}') "
    "and (($2::text[] is null and $3::bigint[] is null) or lower(u.username) = any($2) or u.id = any($3)) "
    "and ($4::bigint is null or l.workspace_id = $4)"
)


async def count(conn: Connection, wanted: LaunchedFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {_FROM}", *_parameters(wanted))
    return total


async def page(
    conn: Connection, wanted: LaunchedFilter, window: Page, *, order: str, descending: bool
) -> list[LaunchedView]:
    """A page of those that live or have ended of late."""
    direction = "desc" if descending else "asc"
    rows = await conn.fetch(
        f"select t.task_id {_FROM} order by {ORDERS[order]} {direction}, t.task_id {direction} limit $5 offset $6",
        *_parameters(wanted),
        window.limit,
        window.offset,
    )
    return await views(conn, [row["task_id"] for row in rows])


async def views(conn: Connection, task_ids: list[str]) -> list[LaunchedView]:
    """Those of ``task_ids`` that are there, in that order."""
    found = {row["task_id"]: LaunchedView(**row) for row in await conn.fetch(Q.views, task_ids)}
    return [found[one] for one in task_ids if one in found]


async def get(conn: Connection, task_id: str, kind: str | None = None) -> LaunchedView:
    """One task (of that kind). Raises NotFound."""
    found = await views(conn, [task_id])
    if not found or (kind is not None and found[0].kind != kind):
        raise NotFound(f"there is no {'task' if kind is None else kind.lower()} {task_id}")
    return found[0]


async def children(conn: Connection, task_id: str) -> list[str]:
    """The tasks whose parent it is."""
    return [row["task_id"] for row in await conn.fetch(Q.children, task_id)]


def _parameters(wanted: LaunchedFilter) -> tuple[object, ...]:
    names = None if wanted.usernames is None else [name.lower() for name in wanted.usernames]
    ids = None if wanted.user_ids is None else list(wanted.user_ids)
    return wanted.kind, names, ids, wanted.workspace_id
