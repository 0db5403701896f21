"""Experiments as people see them: filtered, ordered, counted, with a summary of their trials.

Rules:
- A page is two statements, first which ids, then their views, so that counts and sums are made for one page only.
- An ACTIVE experiment is shown by what the most advanced of its attempts does.
- A configuration stays text until somebody reads it: most only pass through.
- Counts by project, owner, state and archived come from rows that triggers add for each change, without locking one
  another; from time to time they are added up to one row of each kind. Their sum is right in every snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.json_columns import decoded
from tenax.master.store.database.paging import Page, like
from tenax.master.store.database.queries import existing, load
from tenax.master.store.experiments.columns import EXPERIMENTS

Q = load("experiments")


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """One experiment, with what hangs on it."""

    id: int
    job_id: str
    owner_id: int
    username: str
    display_name: str
    project_id: int
    project_name: str
    project_owner_id: int
    workspace_id: int
    workspace_name: str
    parent_id: int | None
    parent_archived: bool
    state: str
    reason: str
    archived: bool
    unmanaged: bool
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    #: Seconds from its making to its end, or until now.
    age_s: float
    name: str
    description: str
    notes: str
    #: Another one for other notes.
    notes_digest: str
    labels: list[str]
    original_config: str
    #: JSON, as PostgreSQL prints it.
    config_text: str
    pool: str
    code_bytes: int
    #: The name that its maker knows an unmanaged one by.
    external_id: str | None
    #: From 0 to 1.
    progress: float
    trials: int
    #: Why the first of its trials that failed did so; only of an experiment that failed.
    first_failure: str | None
    checkpoints: int
    checkpoint_bytes: int
    best_trial_id: int | None
    best_metric: float | None
    #: Seconds in which at least one of its trials ran.
    ran_s: float
    #: What people see: `shown_state` in ``queries.sql``.
    shown_state: str
    wait_reason: str | None
    #: The name that its maker knows the best trial of an unmanaged one by.
    external_trial_id: str | None

    @property
    def config(self) -> JsonObject:
        """The configuration, decoded at each use."""
        return decoded(self.config_text)


@dataclass(frozen=True, slots=True)
class ExperimentFilter:
    """Which experiments to list; None: no matter."""

    archived: bool | None = None
    #: Parts of texts.
    name: str | None = None
    description: str | None = None
    #: It has all of these.
    labels: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None
    #: As stored, or QUEUED, PULLING, STARTING, RUNNING.
    states: tuple[str, ...] | None = None
    project_id: int | None = None
    after_id: int | None = None
    before_id: int | None = None
    ids: tuple[int, ...] | None = None
    not_ids: tuple[int, ...] | None = None


def shown_reason(shown_state: str, reason: str, wait_reason: str | None, first_failure: str | None, trials: int) -> str:
    """What people see: why an experiment waits, or how it ended, and of one that failed the first cause."""
    if wait_reason and shown_state == "QUEUED":
        return wait_reason
    if first_failure in (None, "", reason):
        return reason
    return f"{reason}: {first_failure}" if trials == 1 else f"{reason}; first: {first_failure}"


async def count(conn: Connection, filters: ExperimentFilter) -> int:
    """How many match."""
    condition, parameters = _where(filters)
    if _counted(filters):
        return await total_count(conn, condition, parameters)
    total: int = await conn.fetchval(f"select count(*) from experiments e where {condition}", *parameters)
    return total


async def ids(
    conn: Connection,
    filters: ExperimentFilter,
    window: Page,
    total: int,
    *,
    order: str = "id",
    descending: bool = False,
) -> list[int]:
    """Which experiments are on a page of those that match; ``order``: `sort_by` of a column."""
    size = total - window.offset if window.limit is None else min(window.limit, total - window.offset)
    # What lies in the second half is nearer to the other end.
    backward = window.offset > total // 2
    offset = total - window.offset - size if backward else window.offset
    by = EXPERIMENTS.orders[order]
    condition, parameters = _where(filters)
    alone = by.alone and not parameters
    source = by.alone if alone else f"experiments e {by.join}"
    number = f"{by.alone.split()[-1]}.experiment_id" if alone else "e.id"
    direction = "desc" if descending is not backward else "asc"
    nulls = f" nulls {'first' if backward else 'last'}" if by.nullable else ""
    rows = await conn.fetch(
        f"select {number} as id from {source} where {condition}"
        f" order by {by.expression} {direction}{nulls}, {number} {direction}"
        f" limit ${len(parameters) + 1} offset ${len(parameters) + 2}",
        *parameters,
        size,
        offset,
    )
    numbers = [row["id"] for row in rows]
    return numbers[::-1] if backward else numbers


async def views(conn: Connection, chosen: Sequence[int]) -> list[ExperimentView]:
    """Those of ``chosen`` that are there, in that order."""
    by_id = {row["id"]: ExperimentView(**row) for row in await conn.fetch(Q.views, list(chosen))}
    return [by_id[number] for number in chosen if number in by_id]


async def get(conn: Connection, experiment_id: int) -> ExperimentView:
    """Raises NotFound."""
    matches = await views(conn, [experiment_id])
    if not matches:
        raise NotFound(f"experiment {experiment_id} not found")
    return matches[0]


async def trial_ids(conn: Connection, experiment_id: int) -> list[int]:
    """Of an experiment, in the order of their making."""
    return [row["id"] for row in await conn.fetch(Q.trial_ids, experiment_id)]


async def job_standing(conn: Connection, experiment_id: int) -> tuple[int, bool, str]:
    """How many waiting jobs come earlier, whether its own holds slots, and the pool of all these. Raises NotFound."""
    row = await existing(conn, f"experiment {experiment_id}", Q.job_standing, experiment_id)
    return row["ahead"], row["placed"], row["pool"]


async def owner(conn: Connection, experiment_id: int) -> int:
    """The user that it belongs to. Raises NotFound."""
    owner_id: int = (await existing(conn, f"experiment {experiment_id}", Q.owner, experiment_id))[0]
    return owner_id


async def journal(conn: Connection, experiment_id: int, window: Page) -> list[tuple[int, datetime, JsonObject]]:
    """(number, time, entry) of a page of the journal of its search."""
    rows = await conn.fetch(Q.journal, experiment_id, window.limit, window.offset)
    return [(row["seq"], row["at"], row["entry"]) for row in rows]


_IN_DOCUMENT = "exists (select 1 from experiment_documents x where x.experiment_id = e.id and {})"
#: What an ACTIVE experiment may be shown as, which no row says.
_OF_ATTEMPTS = frozenset({"QUEUED", "PULLING", "STARTING", "RUNNING"})
#: Who asks for no project does not see what is put away with one, or with a workspace.
_IN_OPEN_PLACE = (
    "({}::boolean and e.project_id in (select p.id from projects p join workspaces w on w.id = p.workspace_id"
    " where not p.archived and not w.archived))"
)
_STORED = "e.state = any({0}::text[])"
_ATTEMPTED = f"(e.state = 'ACTIVE' and ({Q.shown_state}) = any({{0}}::text[]))"


def _counted(filters: ExperimentFilter) -> bool:
    """Whether it asks for nothing but what is counted: project, owner, stored state, archived or not."""
    rest = replace(filters, archived=None, users=None, user_ids=None, states=None, project_id=None)
    return rest == ExperimentFilter() and _OF_ATTEMPTS.isdisjoint(filters.states or ())


def _where(filters: ExperimentFilter) -> tuple[str, list[object]]:
    """The condition of a filter and its parameters. Only filters that are set stand in it: then indexes can be used."""
    users = None if filters.users is None else [user.lower() for user in filters.users]
    everywhere = filters.archived is False and filters.project_id is None
    clauses = (
        ("e.archived = {}::boolean", filters.archived),
        (_IN_OPEN_PLACE, True if everywhere else None),
        (_IN_DOCUMENT.format("x.name ilike {}::text"), like(filters.name)),
        (_IN_DOCUMENT.format("x.description ilike {}::text"), like(filters.description)),
        (_IN_DOCUMENT.format("x.labels @> {}::text[]"), filters.labels),
        ("e.owner_id in (select u.id from users u where lower(u.username) = any({}::text[]))", users),
        ("e.owner_id = any({}::bigint[])", filters.user_ids),
        (_STORED if _OF_ATTEMPTS.isdisjoint(filters.states or ()) else f"({_STORED} or {_ATTEMPTED})", filters.states),
        ("e.project_id = {}::bigint", filters.project_id),
        ("e.id > {}::bigint", filters.after_id),
        ("e.id < {}::bigint", filters.before_id),
        ("e.id = any({}::bigint[])", filters.ids),
        ("not e.id = any({}::bigint[])", filters.not_ids),
    )
    given = [(condition, value) for condition, value in clauses if value is not None]
    conditions = [condition.format(f"${place}") for place, (condition, _) in enumerate(given, 1)]
    return " and ".join(conditions) or "true", [value for _, value in given]


#: So many rows are read in less than a millisecond.
_MANY = 1000


async def total_count(conn: Connection, condition: str, parameters: Sequence[object]) -> int:
    """How many meet a condition on ``e.project_id``, ``e.owner_id``, ``e.state`` and ``e.archived``."""
    total: int = await conn.fetchval(
        f"select coalesce(sum(e.change), 0)::bigint from experiment_counts e where {condition}", *parameters
    )
    return total


async def are_many(conn: Connection) -> bool:
    """Whether adding them up is worth it."""
    return bool(await conn.fetchval(Q.more_than, _MANY))


async def add_up_counts(conn: Connection) -> None:
    """One row of each kind. In a transaction of one who does it alone."""
    await conn.execute(Q.add_up)
