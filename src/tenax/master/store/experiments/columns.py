"""What a list of experiments may be filtered and ordered by: columns over the sources of `SOURCES`.

Experiments found by any column, hyperparameter or metric, in any order. Reads only.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.master.store.database.filter_sql import STATES, Builder, Column, Holds, Table
from tenax.master.store.database.filter_text import Filter, Location, Sort
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load

Q = load("experiments")

#: To be followed by further conditions. An experiment that is being deleted is in no list.
SOURCES = """
from experiments e
join experiment_documents d on d.experiment_id = e.id
join experiment_tallies y on y.experiment_id = e.id
join experiment_progress pr on pr.experiment_id = e.id
join jobs j on j.job_id = e.job_id
join users u on u.id = e.owner_id
where e.state <> 'DELETING'"""

_SEARCHER = "d.config -> 'searcher' ->> "
#: The progress of an experiment as it is filtered by, in whole percent; aliases as in `SOURCES`.
PERCENT = "round((100 * pr.progress)::float8)"

#: Aliases as in `SOURCES`.
EXPERIMENTS = Table(
    columns={
        "checkpointCount": Column("y.checkpoints", Holds.NUMBER),
        "checkpointSize": Column("y.checkpoint_bytes", Holds.NUMBER),
        "description": Column("d.description", Holds.TEXT),
        "duration": Column("extract(epoch from coalesce(e.ended_at, now()) - e.created_at)::float8", Holds.NUMBER),
        "endTime": Column("e.ended_at", Holds.TIME),
        "externalExperimentId": Column("e.external_id", Holds.TEXT),
        "externalTrialId": Column("(select t.external_id from trials t where t.id = y.best_trial_id)", Holds.TEXT),
        "forkedFrom": Column("e.parent_id", Holds.NUMBER),
        "id": Column("e.id", Holds.NUMBER),
        "name": Column("d.name", Holds.TEXT),
        "numTrials": Column("y.trials", Holds.NUMBER),
        "progress": Column(PERCENT, Holds.NUMBER, sort="pr.progress"),
        "projectId": Column("e.project_id", Holds.NUMBER),
        "resourcePool": Column("j.pool", Holds.TEXT),
        "searcherMetric": Column(f"({_SEARCHER}'metric')", Holds.TEXT),
        "searcherMetricsVal": Column(
            "case when y.best_metric > '-Infinity' and y.best_metric < 'Infinity' then y.best_metric end", Holds.NUMBER
        ),
        "searcherType": Column(f"({_SEARCHER}'name')", Holds.TEXT),
        "startTime": Column("e.created_at", Holds.TIME),
        # Ordered as stored: what its trials do changes all the time.
        "state": Column(f"({Q.shown_state})", Holds.STATE, sort=f"array_position(array{list(STATES)}, e.state)"),
        "tags": Column("to_jsonb(d.labels)::text", Holds.LIST, sorts=False),
        "user": Column("e.owner_id", Holds.USER, sort="coalesce(nullif(u.display_name, ''), u.username) collate \"C\""),
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
