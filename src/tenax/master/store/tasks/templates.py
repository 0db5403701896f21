"""Rows of templates: partial configurations, named uniquely in the whole cluster, each filed in a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection
from asyncpg.exceptions import UniqueViolationError

from tenax.errors import AlreadyExists, NotFound, Stale
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page, like
from tenax.master.store.database.queries import existing, load

Q = load("tasks")


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template."""

    name: str
    workspace_id: int
    workspace_name: str
    workspace_archived: bool
    owner_id: int
    username: str
    #: As written.
    config: JsonObject
    version: int
    created_at: datetime
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class TemplateFilter:
    """Which templates to list; None: any."""

    #: A part of the name, in either case.
    name: str | None = None
    workspace_ids: tuple[int, ...] | None = None


_FROM = (
    "from templates t join workspaces w on w.id = t.workspace_id join users u on u.id = t.owner_id "
    "where ($1::text is null or t.name ilike $1) and ($2::bigint[] is null or t.workspace_id = any($2))"
)


async def get(conn: Connection, name: str) -> TemplateRow:
    """Raises NotFound."""
    known = await views(conn, [name])
    if not known:
        raise NotFound(f"template {name!r} not found: `tenax template list` shows which there are")
    return known[0]


async def lock(conn: Connection, name: str) -> TemplateRow:
    """The template, locked until the transaction ends. Raises NotFound."""
    await conn.execute(Q.template_lock, name)
    return await get(conn, name)


async def lock_if_there(conn: Connection, name: str) -> TemplateRow | None:
    """As `lock`; None where there is none."""
    row = await conn.fetchrow(Q.template_lock, name)
    return None if row is None else await get(conn, name)


async def count(conn: Connection, filters: TemplateFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {_FROM}", *_parameters(filters))
    return total


async def names(conn: Connection, filters: TemplateFilter, window: Page, *, descending: bool) -> list[str]:
    """A page of those that match, by name."""
    rows = await conn.fetch(
        f"select t.name {_FROM} order by t.name {'desc' if descending else 'asc'} limit $3 offset $4",
        *_parameters(filters),
        window.limit,
        window.offset,
    )
    return [row["name"] for row in rows]


async def views(conn: Connection, names: Sequence[str]) -> list[TemplateRow]:
    """Those of ``names`` that are there, in that order."""
    by_name = {row["name"]: TemplateRow(**row) for row in await conn.fetch(Q.template_views, list(names))}
    return [by_name[name] for name in names if name in by_name]


async def create(conn: Connection, name: str, workspace_id: int, owner_id: int, config: JsonObject) -> None:
    """Raises AlreadyExists."""
    if await conn.fetchval(Q.create, name, workspace_id, owner_id, config) is None:
        raise AlreadyExists(f"template {name!r} already exists: choose another name, or change that one")


async def set_config(conn: Connection, template: TemplateRow, config: JsonObject) -> None:
    """Replace the configuration of a locked template. Raises Stale."""
    if await conn.fetchval(Q.set_config, template.name, template.version, config) is None:
        raise Stale


async def rename(conn: Connection, template: TemplateRow, name: str) -> None:
    """Give a locked template another name. Raises AlreadyExists, Stale."""
    try:
        if await conn.fetchval(Q.rename, template.name, template.version, name) is None:
            raise Stale
    except UniqueViolationError:
        raise AlreadyExists(f"template {name!r} already exists: choose another name") from None


async def delete(conn: Connection, name: str) -> None:
    """Raises NotFound."""
    await existing(conn, f"template {name!r}", Q.delete, name)


def _parameters(filters: TemplateFilter) -> tuple[object, ...]:
    return like(filters.name), filters.workspace_ids
