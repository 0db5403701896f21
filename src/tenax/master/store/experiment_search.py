"""Experiments found by any column, hyperparameter or metric, in any order. Reads only."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.master.filters import Filter, Sort
from tenax.master.store.experiment_columns import EXPERIMENTS, SOURCES
from tenax.master.store.filters import Builder
from tenax.master.store.paging import Page


async def count(conn: Connection, project_id: int | None, wanted: Filter) -> int:
    """How many match; ``project_id`` None: of every project. Raises InvalidInput."""
    built = Builder(EXPERIMENTS, first=2)
    total: int = await conn.fetchval(f"select count(*) {_matching(built, wanted)}", project_id, *built.parameters)
    return total


async def search(
    conn: Connection, project_id: int | None, wanted: Filter, sorts: Sequence[Sort], window: Page
) -> list[int]:
    """Numbers of those that match, in order. Raises InvalidInput."""
    built = Builder(EXPERIMENTS, first=4)
    matching = _matching(built, wanted)
    rows = await conn.fetch(
        f"select e.id {matching} order by {built.order(sorts)}e.id limit $2 offset $3",
        project_id,
        window.limit,
        window.offset,
        *built.parameters,
    )
    return [row["id"] for row in rows]


def _matching(built: Builder, wanted: Filter) -> str:
    shown = "" if wanted.show_archived else " and not e.archived"
    condition = built.condition(wanted.root)
    return f"{SOURCES} and ($1::bigint is null or e.project_id = $1){shown} and {condition}"
