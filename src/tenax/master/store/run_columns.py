"""What lists of a project can show beside their own columns: hyperparameters, metrics and metadata. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.queries import load

Q = load("run_columns")


@dataclass(frozen=True, slots=True)
class Named:
    """One of them, and what it holds wherever it is set: numbers, moments, lists; none of these: text."""

    name: str
    number: bool = False
    moment: bool = False
    list: bool = False


async def hyperparameters(conn: Connection, project_id: int) -> list[Named]:
    """Of runs, sampled or constant, by their paths with dots."""
    return [Named(**row) for row in await conn.fetch(Q.hyperparameters, project_id)]


async def configured(conn: Connection, project_id: int) -> list[Named]:
    """Of experiments, as configured."""
    return [Named(**row) for row in await conn.fetch(Q.configured, project_id)]


async def metadata(conn: Connection, project_id: int) -> list[Named]:
    """Leaves of the metadata of runs."""
    return [Named(**row) for row in await conn.fetch(Q.metadata, project_id)]


async def metrics(conn: Connection, project_id: int) -> list[tuple[str, Named]]:
    """(group, metric) of all runs."""
    return [(row["grp"], Named(row["name"], row["number"])) for row in await conn.fetch(Q.metrics, project_id)]


async def ranges(conn: Connection, project_id: int) -> list[tuple[str, float, float]]:
    """(``group.metric.qualifier``, least, greatest) over all runs; what is not finite does not count."""
    return [(row["name"], row["low"], row["high"]) for row in await conn.fetch(Q.ranges, project_id)]
