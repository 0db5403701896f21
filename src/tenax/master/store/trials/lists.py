"""Trials as people see them: with what their scripts reported, their checkpoints, and why they wait. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import existing, load

Q = load("trials")


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial, with what hangs on it."""

    id: int
    experiment_id: int
    #: The newest of its tasks.
    task_id: str
    #: All of them, the oldest first: each time that its experiment is continued there is one more.
    task_ids: list[str]
    #: What people see: `shown_state` in ``queries.sql``.
    shown_state: str
    reason: str
    hparams: JsonObject
    restarts: int
    run_id: int
    created_at: datetime
    ended_at: datetime | None
    warm_start_checkpoint: str | None
    experiment_state: str
    owner_id: int
    unmanaged: bool
    #: Of the searcher.
    config_metric: str | None
    smaller_is_better: bool
    total_batches: int
    progress: float | None
    runner_state: str
    #: {"step", "run_id", "at", "metrics"}
    latest_validation: JsonObject | None
    best_validation: JsonObject | None
    best_metric: float | None
    checkpoints: int
    checkpoint_bytes: int
    #: Seconds in which its attempts held slots.
    held_s: float
    #: Seconds in which they ran.
    ran_s: float
    #: Of its open attempt; None: it has none.
    attempt_state: str | None
    wait_reason: str | None
    best_uuid: str | None
    best_state: str | None
    best_at: datetime | None
    best_steps: int | None
    best_resources: dict[str, int] | None
    best_metadata: JsonObject | None
    #: Days after its end for which its output is kept, as it or its experiment says; None: as the cluster says.
    log_retention_days: int | None
    #: What was written about it.
    metadata: JsonObject | None
    #: The first policy that matched a line of its output.
    log_policy: str | None


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a trial tried and what came of it."""

    id: int
    shown_state: str
    #: By path, as lists of runs filter by them: numbers, truths, texts.
    hparams: JsonObject
    #: Of its best validation; None: none that is finite.
    metric: float | None


_CHECKPOINTS = (
    "(select coalesce(sum(c.size_bytes), 0) from checkpoints c"
    " where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED'))"
)

#: Trials of an experiment, in the states of the filter: as stored, or as they are shown.
_MATCHING = (
    f"{Q.of_experiment} and ($2::text[] is null or t.state = any($2::text[]) or ({Q.shown_state}) = any($2::text[]))"
)

#: What a list may be ordered by; metrics come out with the best first by ``asc`` where smaller is better.
ORDERS: Mapping[str, str] = {
    "id": "t.id",
    "start_time": "t.created_at",
    "end_time": "t.ended_at",
    "state": "t.state",
    "restarts": "t.restarts",
    "duration": "coalesce(t.ended_at, now()) - t.created_at",
    "checkpoint_size": _CHECKPOINTS,
    # What is no finite number ranks behind all numbers, in both directions.
    "best_validation": """(select nullif(nullif(nullif(m.best_metric, 'NaN'), 'Infinity'), '-Infinity')
        from trial_telemetry m where m.trial_id = t.id)""",
    "latest_validation": """(select case jsonb_typeof(v.value) when 'number' then v.value end
        from trial_telemetry m join experiment_documents d on d.experiment_id = t.experiment_id
        cross join lateral (
            select m.latest_validation -> 'metrics' -> (d.config -> 'searcher' ->> 'metric') as value) v
        where m.trial_id = t.id)""",
    "log_retention": """coalesce(t.log_retention_days, (
        select coalesce(d.log_retention_days, (d.config -> 'retention_policy' ->> 'log_retention_days')::smallint)
        from experiment_documents d where d.experiment_id = t.experiment_id))""",
    "total_batches": "(select max(g.newest_step) from metric_groups g where g.trial_id = t.id)",
}


async def count(conn: Connection, experiment_id: int, states: list[str] | None) -> int:
    """How many trials of an experiment match."""
    total: int = await conn.fetchval(f"select count(*) {_MATCHING}", experiment_id, states)
    return total


async def ids(
    conn: Connection, experiment_id: int, states: list[str] | None, window: Page, *, order: str, descending: bool
) -> list[int]:
    """Which of an experiment's trials are on a page, in order."""
    direction = "desc" if descending else "asc"
    rows = await conn.fetch(
        f"select t.id {_MATCHING} order by {ORDERS[order]} {direction} nulls last, t.id {direction} limit $3 offset $4",
        experiment_id,
        states,
        window.limit,
        window.offset,
    )
    return [row["id"] for row in rows]


async def views(conn: Connection, chosen: Sequence[int]) -> list[TrialView]:
    """Those of ``chosen`` that are there, in that order."""
    by_id = {row["id"]: TrialView(**row) for row in await conn.fetch(Q.views, list(chosen))}
    return [by_id[number] for number in chosen if number in by_id]


async def get(conn: Connection, trial_id: int) -> TrialView:
    """Raises NotFound."""
    matches = await views(conn, [trial_id])
    if not matches:
        raise NotFound(f"trial {trial_id} not found")
    return matches[0]


async def outcomes(conn: Connection, experiment_id: int, most: int, most_bytes: int) -> list[TrialOutcome]:
    """Of at most so many trials of an experiment, the best first; those without a metric come last.

    They are fewer where what they tried has more than ``most_bytes``.
    """
    return [TrialOutcome(**row) for row in await conn.fetch(Q.outcomes, experiment_id, most, most_bytes)]


@dataclass(frozen=True, slots=True)
class TrialVitals:
    """Signs of life of a trial; ages in seconds, by the database's clock."""

    #: Since its newest attempt began to run; None: it does not run.
    runs_s: float | None
    reported_s: float | None
    line_s: float | None
    checkpoint_s: float | None
    #: Of its output.
    lines: int
    #: What its newest attempt has, or had.
    slots: int
    agents: list[str]
    max_restarts: int | None
    #: Where its ranks stand still; empty: they do not.
    hang: str


async def vitals(conn: Connection, trial_id: int) -> TrialVitals:
    """Raises NotFound."""
    return TrialVitals(**await existing(conn, f"trial {trial_id}", Q.vitals, trial_id))


@dataclass(frozen=True, slots=True)
class QuietTrial:
    """A trial that runs, and since when nothing was heard of it."""

    id: int
    experiment_id: int
    #: Of the experiment.
    name: str
    silent_s: float


async def silent(conn: Connection, owner_id: int | None, most: int) -> list[QuietTrial]:
    """Of a person, or of all: those that were silent for longest come first."""
    return [QuietTrial(**row) for row in await conn.fetch(Q.silent, owner_id, most)]


@dataclass(frozen=True, slots=True)
class PastEvent:
    """Something that happened to a trial."""

    at: datetime
    kind: str
    #: The attempt; 0: the trial itself.
    run_id: int
    text: str
    #: Slots, or a step.
    number: int


async def history(conn: Connection, trial_id: int, most: int) -> list[PastEvent]:
    """The newest first."""
    return [PastEvent(**row) for row in await conn.fetch(Q.history, trial_id, most)]


async def owner(conn: Connection, trial_id: int) -> tuple[int, int]:
    """The user that it belongs to, and its experiment. Raises NotFound."""
    row = await existing(conn, f"trial {trial_id}", Q.owner, trial_id)
    return row["owner_id"], row["experiment_id"]


async def has_ended(conn: Connection, trial_id: int) -> bool:
    """Whether a trial is over; one that does not exist any more is."""
    return await conn.fetchval(Q.has_ended, trial_id) is not False
