"""Projects as people see them: with what is filed in them. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load

Q = load("workspaces")


@dataclass(frozen=True, slots=True)
class ProjectView:
    """One project, with what is in it."""

    id: int
    name: str
    description: str
    key: str
    notes: list[JsonObject]
    workspace_id: int
    workspace_name: str
    owner_id: int | None
    workspace_owner_id: int | None
    username: str
    immutable: bool
    #: It, or its workspace.
    archived: bool
    state: str
    error_message: str
    experiments: int
    #: Of those, which have not ended.
    active: int
    #: When the last of them was made.
    last_at: datetime | None
    #: Trials.
    runs: int


@dataclass(frozen=True, slots=True)
class ProjectFilter:
    """Which projects to list; None: any."""

    workspace_id: int | None = None
    ids: tuple[int, ...] | None = None
    archived: bool | None = None
    #: Whatever its capitals.
    name: str | None = None
    users: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "id": "p.id",
    "name": "lower(p.name)",
    "description": "lower(p.description)",
    "created_at": "p.created_at",
    "last_experiment": "newest.created_at",
}


async def count(conn: Connection, filters: ProjectFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {Q.sources} {Q.list_matching}", *_parameters(filters))
    return total


async def page(
    conn: Connection, filters: ProjectFilter, window: Page, *, order: str = "id", descending: bool = False
) -> list[int]:
    """The ids of a page of those that match."""
    direction = "desc" if descending else "asc"
    text = (
        f"select p.id {Q.sources} {Q.held} {Q.list_matching} "
        f"order by {ORDERS[order]} {direction} nulls last, p.id {direction} limit $7 offset $8"
    )
    return [row["id"] for row in await conn.fetch(text, *_parameters(filters), window.limit, window.offset)]


async def views(conn: Connection, ids: Sequence[int]) -> list[ProjectView]:
    """Those of ``ids`` that are there, in that order."""
    text = f"{Q.list_columns} {Q.sources} {Q.held} {Q.list_matching}"
    rows = await conn.fetch(text, *_parameters(ProjectFilter(ids=tuple(ids))))
    by_id = {row["id"]: ProjectView(**row) for row in rows}
    return [by_id[number] for number in ids if number in by_id]


async def get(conn: Connection, project_id: int) -> ProjectView:
    """Raises NotFound."""
    projects = await views(conn, [project_id])
    if not projects:
        raise NotFound(f"project {project_id} not found")
    return projects[0]


def _parameters(filters: ProjectFilter) -> tuple[object, ...]:
    return (
        filters.workspace_id,
        filters.ids,
        filters.archived,
        filters.name or None,
        None if filters.users is None else [user.lower() for user in filters.users],
        filters.user_ids,
    )
