"""Runs as a table shows them: trials of many experiments, filtered and ordered by any column. Reads only.

The columns of a project beside the fixed ones (hyperparameters, metrics, metadata) are listed here as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.store.database.filter_sql import Builder, Column, Holds, Table
from tenax.master.store.database.filter_text import Filter, Location, Sort
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load
from tenax.master.store.experiments.columns import PERCENT, SEARCHER
from tenax.search.methods.registry import names_of

Q = load("runs")
#: Of a kind, that are offered: each costs the loop time, and nobody reads more.
MAX_COLUMNS = 2500
_ONE_TRIAL = names_of(lambda method: method.one_trial)


@dataclass(frozen=True, slots=True)
class RunView:
    """One run, with its experiment."""

    id: int
    experiment_id: int
    #: What it is shown as: of one that goes on what its attempt does.
    state: str
    #: It or its experiment is.
    archived: bool
    hparams: JsonObject
    external_id: str | None
    created_at: datetime
    ended_at: datetime | None
    #: Seconds since it was made, until its end.
    age_s: float
    #: Seconds in which it ran, without waiting.
    ran_s: float
    #: ``KEY-n``.
    local_id: str | None
    project_id: int
    project_name: str
    workspace_id: int
    workspace_name: str
    owner_id: int
    username: str
    #: Its project or workspace is.
    parent_archived: bool
    parent_id: int | None
    unmanaged: bool
    #: From 0 to 1.
    experiment_progress: float
    external_experiment_id: str | None
    name: str
    description: str
    labels: list[str]
    pool: str
    searcher_type: str
    searcher_metric: str
    #: ``integrations.pachyderm`` of the configuration, with its secrets.
    pachyderm: JsonObject | None
    best_metric: float | None
    metadata: JsonObject | None
    checkpoints: int
    checkpoint_bytes: int
    #: The first policy that matched a line of its output.
    log_policy: str | None


@dataclass(frozen=True, slots=True)
class RunOwner:
    """A run, as far as it must be known to do something with it."""

    id: int
    experiment_id: int
    project_id: int
    owner_id: int
    stored_state: str
    archived: bool
    experiment_archived: bool
    experiment_state: str
    unmanaged: bool
    #: Its project or workspace is archived.
    place_archived: bool
    #: Its searcher is another than ``single``.
    multitrial: bool


def _checkpoints(what: str) -> str:
    return (
        f"(select {what} from checkpoints c where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED'))"
    )


_FINITE = "nullif(nullif(nullif(m.best_metric, 'NaN'), 'Infinity'), '-Infinity')"

#: What a list of runs may be filtered and ordered by.
RUNS = Table(
    columns={
        "archived": Column("(t.archived or e.archived)", Holds.BOOLEAN, filters=False),
        "checkpointCount": Column(_checkpoints("count(*)"), Holds.NUMBER, short="checkpoints"),
        "checkpointSize": Column(_checkpoints("coalesce(sum(c.size_bytes), 0)"), Holds.NUMBER),
        "duration": Column(
            "extract(epoch from coalesce(t.ended_at, now()) - t.created_at)::float8", Holds.NUMBER, short="took"
        ),
        "endTime": Column("t.ended_at", Holds.TIME, short="ended"),
        "experimentDescription": Column("d.description", Holds.TEXT, short="description"),
        "experimentId": Column("e.id", Holds.NUMBER, short="experiment"),
        "experimentName": Column("d.name", Holds.TEXT, short="name"),
        "experimentProgress": Column(PERCENT, Holds.NUMBER, sort="pr.progress", short="progress"),
        "externalExperimentId": Column("e.external_id", Holds.TEXT),
        "externalRunId": Column("t.external_id", Holds.TEXT),
        "forkedFrom": Column("e.parent_id", Holds.NUMBER),
        "id": Column("t.id", Holds.NUMBER, always=True),
        "isExpMultitrial": Column(
            f"(coalesce({SEARCHER}'name', '') <> all(array{list(_ONE_TRIAL)}::text[]))", Holds.BOOLEAN
        ),
        "localId": Column("(p.key || '-' || n.local_id)", Holds.TEXT, sort="n.local_id"),
        "parentArchived": Column("(p.archived or w.archived)", Holds.BOOLEAN),
        "projectId": Column("e.project_id", Holds.NUMBER, short="project"),
        "resourcePool": Column("j.pool", Holds.TEXT, short="pool"),
        "searcherMetric": Column(f"({SEARCHER}'metric')", Holds.TEXT, short="metric"),
        "searcherMetricsVal": Column(_FINITE, Holds.NUMBER, short="best"),
        "searcherType": Column(f"({SEARCHER}'name')", Holds.TEXT, short="searcher"),
        "startTime": Column("t.created_at", Holds.TIME, short="started", always=True),
        "state": Column(f"({load('trials').shown_state})", Holds.STATE),
        "tags": Column("to_jsonb(d.labels)::text", Holds.LIST, sorts=False, short="label"),
        "user": Column(
            "e.owner_id",
            Holds.USER,
            sort="coalesce(nullif(u.display_name, ''), u.username) collate \"C\"",
            short="owner",
        ),
    },
    locations=frozenset(Location) - {Location.HYPERPARAMETERS},
    metrics_of="t.id",
    trial="t.id",
    username="u.username",
)


async def search(
    conn: Connection, project_id: int | None, filters: Filter, sorts: Sequence[Sort], window: Page
) -> list[int]:
    """Ids of the runs that match, in order; None: of every project. Raises InvalidInput."""
    built = Builder(RUNS, first=4)
    matching = _matching(built, filters)
    text = f"select t.id {matching} order by {built.order(sorts)}t.id limit $2 offset $3"
    rows = await conn.fetch(text, project_id, window.limit, window.offset, *built.parameters)
    return [row["id"] for row in rows]


async def count(conn: Connection, project_id: int | None, filters: Filter) -> int:
    """How many runs match. Raises InvalidInput."""
    built = Builder(RUNS, first=2)
    total: int = await conn.fetchval(f"select count(*) {_matching(built, filters)}", project_id, *built.parameters)
    return total


async def views(conn: Connection, ids: list[int]) -> list[RunView]:
    """Those of ``ids`` that are there, in that order."""
    by_id = {row["id"]: RunView(**row) for row in await conn.fetch(Q.views, ids)}
    return [by_id[number] for number in ids if number in by_id]


async def owners(conn: Connection, ids: Sequence[int]) -> list[RunOwner]:
    """Those of ``ids`` that are there, by experiment."""
    return [RunOwner(**row) for row in await conn.fetch(Q.owners, list(ids), _ONE_TRIAL)]


def _matching(built: Builder, filters: Filter) -> str:
    hidden = "" if filters.show_archived else " and not t.archived and not e.archived"
    return f"{Q.sources} and ($1::bigint is null or e.project_id = $1){hidden} and {built.condition(filters.root)}"


@dataclass(frozen=True, slots=True)
class Named:
    """One of them, and what it holds wherever it is set: numbers, moments, lists; none of these: text."""

    name: str
    number: bool = False
    moment: bool = False
    list: bool = False


async def hyperparameter_columns(conn: Connection, project_id: int) -> list[Named]:
    """Of runs, sampled or constant, by their paths with dots."""
    return [Named(**row) for row in await conn.fetch(Q.hyperparameters, project_id, MAX_COLUMNS)]


async def configured(conn: Connection, project_id: int) -> list[Named]:
    """Of experiments, as configured."""
    return [Named(**row) for row in await conn.fetch(Q.configured, project_id, MAX_COLUMNS)]


async def metadata_columns(conn: Connection, project_id: int) -> list[Named]:
    """Leaves of the metadata of runs."""
    return [Named(**row) for row in await conn.fetch(Q.metadata, project_id, MAX_COLUMNS)]


async def metric_columns(conn: Connection, project_id: int) -> list[tuple[str, Named]]:
    """(group, metric) of all runs."""
    rows = await conn.fetch(Q.metrics, project_id, MAX_COLUMNS)
    return [(row["grp"], Named(row["name"], row["number"])) for row in rows]


async def metric_ranges(conn: Connection, project_id: int) -> list[tuple[str, float, float]]:
    """(``group.metric.qualifier``, least, greatest) over all runs; what is not finite does not count."""
    rows = await conn.fetch(Q.ranges, project_id, 4 * MAX_COLUMNS)
    return [(row["name"], row["low"], row["high"]) for row in rows]
