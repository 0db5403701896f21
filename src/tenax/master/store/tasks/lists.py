"""Tasks and their attempts as people see them; launched tasks filtered and ordered, too. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import existing, load

Q = load("tasks")


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task."""

    task_id: str
    kind: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AllocationView:
    """One attempt."""

    allocation_id: str
    task_id: str
    state: str
    slots: int
    ready: bool
    requested_at: datetime
    assigned_at: datetime | None
    ended_at: datetime | None
    exit_reason: str
    wait_reason: str | None
    #: Of the first member that failed, else 0; None: none has exited with a code.
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class AcceleratorsView:
    """The devices of one member."""

    container_id: str
    allocation_id: str
    #: {"accelerator_type", "accelerator_uuids", "node_name"}
    data: JsonObject
    task_id: str
    pool: str


@dataclass(frozen=True, slots=True)
class OpenAllocationView:
    """An attempt that waits or runs."""

    allocation_id: str
    task_id: str
    slots: int
    requested_at: datetime
    kind: str
    trial_id: int | None
    experiment_id: int | None
    pool: str
    priority: int
    experiment_name: str | None
    #: Of a task that is not a trial's.
    description: str | None
    state: str
    #: Why it is not placed yet.
    wait_reason: str | None
    #: {"container_id", "agent_id", "devices": [{"id", "type", "brand", "uuid"}]}, by rank.
    members: list[JsonObject]


async def get(conn: Connection, task_id: str) -> tuple[TaskView, list[AllocationView]]:
    """A task and its attempts, the newest first. Raises NotFound."""
    row = await existing(conn, f"task {task_id}", Q.get, task_id)
    return TaskView(**row), [AllocationView(**attempt) for attempt in await conn.fetch(Q.allocations, task_id)]


async def allocation(conn: Connection, allocation_id: str) -> AllocationView:
    """One attempt. Raises NotFound."""
    return AllocationView(**await existing(conn, f"allocation {allocation_id}", Q.allocation, allocation_id))


async def accelerators(conn: Connection, task_id: str) -> list[AcceleratorsView]:
    """The devices that members of a task reported."""
    return [AcceleratorsView(**row) for row in await conn.fetch(Q.accelerators, task_id)]


async def active_by_kind(conn: Connection) -> dict[str, int]:
    """How many launched tasks have not ended, by kind."""
    return {row["kind"]: row["tasks"] for row in await conn.fetch(Q.active_by_kind)}


async def open_allocations(conn: Connection) -> list[OpenAllocationView]:
    """All attempts that wait or run, the oldest first."""
    return [OpenAllocationView(**row) for row in await conn.fetch(Q.open_allocations)]


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
    #: What of its secrets the owner has written.
    own: JsonObject
    #: Of a generic task: what came, without what was filled in.
    submitted: JsonObject | None
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
    """Which tasks to list; None: any."""

    kinds: tuple[str, ...]
    usernames: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None
    workspace_id: int | None = None
    #: A part of the description or of the id, whatever its capitals.
    name: str | None = None
    parent_id: str | None = None
    #: Those that have ended long ago, too.
    old: bool = False


ORDERS: Mapping[str, str] = {
    "id": "t.task_id",
    "description": "lower(l.description)",
    "start_time": "t.created_at",
    "workspace_id": "l.workspace_id",
}
_FROM = (
    "from launched_tasks l join tasks t on t.task_id = l.task_id join jobs j on j.job_id = t.job_id "
    "join users u on u.id = j.owner_id where t.kind = any($1::text[]) "
    f"and ($5 or t.ended_at is null or t.ended_at > now() - interval '{LISTED}') "
    "and (($2::text[] is null and $3::bigint[] is null) or lower(u.username) = any($2) or u.id = any($3)) "
    "and ($4::bigint is null or l.workspace_id = $4) and ($6::text is null or l.parent_id = $6) "
    "and ($7::text is null or strpos(lower(l.description), $7) > 0 or starts_with(t.task_id, $7))"
)


async def count_launched(conn: Connection, filters: LaunchedFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {_FROM}", *_parameters(filters))
    return total


async def launched_ids(
    conn: Connection, filters: LaunchedFilter, window: Page, *, order: str, descending: bool
) -> list[str]:
    """A page of those that live or have ended of late."""
    direction = "desc" if descending else "asc"
    rows = await conn.fetch(
        f"select t.task_id {_FROM} order by {ORDERS[order]} {direction}, t.task_id {direction} limit $8 offset $9",
        *_parameters(filters),
        window.limit,
        window.offset,
    )
    return [row["task_id"] for row in rows]


async def launched_views(conn: Connection, task_ids: list[str], *, documents: bool = True) -> list[LaunchedView]:
    """Those of ``task_ids`` that are there, in that order; without ``documents`` what was configured is empty."""
    by_id = {row["task_id"]: LaunchedView(**row) for row in await conn.fetch(Q.views, task_ids, documents)}
    return [by_id[task_id] for task_id in task_ids if task_id in by_id]


async def get_launched(conn: Connection, task_id: str, kind: str | None = None) -> LaunchedView:
    """One task (of that kind). Raises NotFound."""
    matches = await launched_views(conn, [task_id])
    if not matches or (kind is not None and matches[0].kind != kind):
        raise NotFound(f"{'task' if kind is None else kind.lower()} {task_id} not found")
    return matches[0]


def _parameters(filters: LaunchedFilter) -> tuple[object, ...]:
    names = None if filters.usernames is None else [name.lower() for name in filters.usernames]
    return (
        list(filters.kinds),
        names,
        filters.user_ids,
        filters.workspace_id,
        filters.old,
        filters.parent_id,
        None if filters.name is None else filters.name.lower(),
    )
