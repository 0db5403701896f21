"""Tasks and their attempts as people see them. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.queries import load

Q = load("listings_tasks")


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
class OpenAllocation:
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
    row = await conn.fetchrow(Q.get, task_id)
    if row is None:
        raise NotFound(f"there is no task {task_id}")
    return TaskView(**row), [AllocationView(**one) for one in await conn.fetch(Q.allocations, task_id)]


async def allocation(conn: Connection, allocation_id: str) -> AllocationView:
    """One attempt. Raises NotFound."""
    row = await conn.fetchrow(Q.allocation, allocation_id)
    if row is None:
        raise NotFound(f"there is no allocation {allocation_id}")
    return AllocationView(**row)


async def accelerators(conn: Connection, task_id: str) -> list[AcceleratorsView]:
    """The devices that members of a task found."""
    return [AcceleratorsView(**row) for row in await conn.fetch(Q.accelerators, task_id)]


async def active_by_kind(conn: Connection) -> dict[str, int]:
    """How many launched tasks have not ended, by kind."""
    return {row["kind"]: row["tasks"] for row in await conn.fetch(Q.active_by_kind)}


async def open_allocations(conn: Connection) -> list[OpenAllocation]:
    """All attempts that wait or run, the oldest first."""
    return [OpenAllocation(**row) for row in await conn.fetch(Q.open_allocations)]
