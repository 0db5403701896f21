"""The columns that experiments are filtered and ordered by, and the search that uses them. Reads only.

A new column is one entry of `EXPERIMENTS`; filters, orders, lists, searches and the catalogue follow from it.
Expressions use the aliases of `SOURCES`.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.master.store.database.filter_names import Names
from tenax.master.store.database.filter_sql import Builder, Column, Holds, Order, Table
from tenax.master.store.database.filter_text import Filter, Location, Sort
from tenax.master.store.database.paging import Page, escaped
from tenax.master.store.database.queries import load

Q = load("experiments")

#: To be followed by further conditions. An experiment that is being deleted is in no list. Left joins, though each has
#: its row: what a filter and an order do not ask for is not joined at all.
SOURCES = """
from experiments e
left join experiment_documents d on d.experiment_id = e.id
left join experiment_tallies y on y.experiment_id = e.id
left join experiment_progress pr on pr.experiment_id = e.id
left join jobs j on j.job_id = e.job_id
left join users u on u.id = e.owner_id
where e.state <> 'DELETING'"""

SEARCHER = "d.config -> 'searcher' ->> "
#: The progress of an experiment as it is filtered by, in whole percent; aliases as in `SOURCES`.
PERCENT = "round((100 * pr.progress)::float8)"

_DOCUMENTS = ("join experiment_documents d on d.experiment_id = e.id", "experiment_documents d")
_TALLIES = ("join experiment_tallies y on y.experiment_id = e.id", "experiment_tallies y")
_PROGRESS = ("join experiment_progress pr on pr.experiment_id = e.id", "experiment_progress pr")
#: As stored: what its trials do changes all the time. Enums of the API, in its order; an index has the same expression.
_STATE = (
    "array_position(array['ACTIVE', 'PAUSED', 'STOPPING_CANCELED', 'STOPPING_KILLED', 'STOPPING_COMPLETED', "
    "'STOPPING_ERROR', 'DELETING', 'CANCELED', 'COMPLETED', 'ERROR', 'DELETE_FAILED'], e.state)"
)
_USER = Order("lower(u.username)", "join users u on u.id = e.owner_id")

#: Aliases as in `SOURCES`. The one place of a column: lists, searches, filters, orders and the catalogue come from it.
EXPERIMENTS = Table(
    columns={
        "checkpointCount": Column(
            "y.checkpoints",
            Holds.NUMBER,
            sort_by="checkpoint_count",
            order=Order("y.checkpoints", *_TALLIES),
            short="checkpoints",
        ),
        "checkpointSize": Column(
            "y.checkpoint_bytes", Holds.NUMBER, sort_by="checkpoint_size", order=Order("y.checkpoint_bytes", *_TALLIES)
        ),
        "description": Column(
            "d.description", Holds.TEXT, sort_by="description", order=Order("d.description_key", *_DOCUMENTS)
        ),
        "duration": Column(
            "extract(epoch from coalesce(e.ended_at, now()) - e.created_at)::float8", Holds.NUMBER, short="took"
        ),
        "endTime": Column(
            "e.ended_at", Holds.TIME, sort_by="end_time", order=Order("e.ended_at", nullable=True), short="ended"
        ),
        "externalExperimentId": Column("e.external_id", Holds.TEXT),
        "externalTrialId": Column("(select t.external_id from trials t where t.id = y.best_trial_id)", Holds.TEXT),
        "forkedFrom": Column(
            "e.parent_id", Holds.NUMBER, sort_by="forked_from", order=Order("e.parent_id", nullable=True)
        ),
        "id": Column("e.id", Holds.NUMBER, sort_by="id", always=True),
        "name": Column("d.name", Holds.TEXT, sort_by="name", order=Order("d.name_key", *_DOCUMENTS)),
        "numTrials": Column(
            "y.trials", Holds.NUMBER, sort_by="num_trials", order=Order("y.trials", *_TALLIES), short="trials"
        ),
        "progress": Column(
            PERCENT, Holds.NUMBER, sort="pr.progress", sort_by="progress", order=Order("pr.progress", *_PROGRESS)
        ),
        "projectId": Column("e.project_id", Holds.NUMBER, sort_by="project_id", short="project"),
        "resourcePool": Column(
            "j.pool", Holds.TEXT, sort_by="resource_pool", order=Order("y.pool", *_TALLIES), short="pool"
        ),
        "searcherMetric": Column(f"({SEARCHER}'metric')", Holds.TEXT, short="metric"),
        "searcherMetricsVal": Column(
            "case when y.best_metric > '-Infinity' and y.best_metric < 'Infinity' then y.best_metric end",
            Holds.NUMBER,
            sort_by="searcher_metric_val",
            order=Order("y.best_order", *_TALLIES, nullable=True),
            short="best",
        ),
        "searcherType": Column(f"({SEARCHER}'name')", Holds.TEXT, short="searcher"),
        "startTime": Column("e.created_at", Holds.TIME, sort_by="start_time", short="started", always=True),
        "state": Column(f"({Q.shown_state})", Holds.STATE, sort=_STATE, sort_by="state"),
        "tags": Column("to_jsonb(d.labels)::text", Holds.LIST, sorts=False, short="label"),
        "user": Column(
            "e.owner_id",
            Holds.USER,
            sort="coalesce(nullif(u.display_name, ''), u.username) collate \"C\"",
            sort_by="user",
            order=_USER,
            short="owner",
        ),
    },
    locations=frozenset(
        (
            Location.EXPERIMENT,
            Location.HYPERPARAMETERS,
            Location.VALIDATIONS,
            Location.TRAINING,
            Location.CUSTOM_METRIC,
        )
    ),
    metrics_of="y.best_trial_id",
    configured="(d.config -> 'hyperparameters')",
    username="u.username",
)


#: Experiments whose hyperparameters, metrics and labels are known by name to a filter that is typed, the newest ones;
#: and names of each kind.
MAX_RECENT, MAX_NAMES = 200, 1000


def _name_of(table: Table) -> str:
    """A run is called as its experiment."""
    return "experimentName" if table.trial else "name"


def plain_names(table: Table) -> Names:
    """What a filter may name whatever the project: the columns of the list."""
    return Names(table, name=_name_of(table))


async def recent_names(conn: Connection, project_id: int | None, table: Table = EXPERIMENTS) -> tuple[Names, list[str]]:
    """What a filter may name beside the columns of the list, and labels in use; None: of every project."""
    rows = await conn.fetch(Q.recent_names, project_id, MAX_RECENT, MAX_NAMES)
    names = Names(
        table,
        hyperparameters=tuple(row["name"] for row in rows if row["kind"] == "hyperparameter"),
        metrics=tuple((row["grp"], row["name"]) for row in rows if row["kind"] == "metric"),
        name=_name_of(table),
    )
    return names, [row["name"] for row in rows if row["kind"] == "label"]


async def owners_like(conn: Connection, prefix: str, most: int) -> list[str]:
    """Names of people that begin so."""
    return [row["username"] for row in await conn.fetch(Q.owners_like, escaped(prefix) + "%", most)]


async def count(conn: Connection, project_id: int | None, filters: Filter) -> int:
    """How many match; ``project_id`` None: of every project. Raises InvalidInput."""
    built = Builder(EXPERIMENTS, first=2)
    total: int = await conn.fetchval(f"select count(*) {_matching(built, filters)}", project_id, *built.parameters)
    return total


async def search(
    conn: Connection, project_id: int | None, filters: Filter, sorts: Sequence[Sort], window: Page
) -> list[int]:
    """Numbers of those that match, in order. Raises InvalidInput."""
    built = Builder(EXPERIMENTS, first=4)
    matching = _matching(built, filters)
    rows = await conn.fetch(
        f"select e.id {matching} order by {built.order(sorts)}e.id limit $2 offset $3",
        project_id,
        window.limit,
        window.offset,
        *built.parameters,
    )
    return [row["id"] for row in rows]


def _matching(built: Builder, filters: Filter) -> str:
    shown = "" if filters.show_archived else " and not e.archived"
    condition = built.condition(filters.root)
    return f"{SOURCES} and ($1::bigint is null or e.project_id = $1){shown} and {condition}"
