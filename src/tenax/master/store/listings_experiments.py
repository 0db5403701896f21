"""Experiments as people see them: filtered, ordered, with what their trials come to.

Rules: a page is two statements, which ids and then what they are, so that counts and sums are made for one page only;
an ACTIVE experiment is shown by what the most advanced of its attempts does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.paging import Page, like
from tenax.master.store.queries import load

Q = load("listings_experiments")


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
    labels: list[str]
    original_config: str
    config: JsonObject
    pool: str
    code_bytes: int
    trials: int
    trials_ended: int
    #: Sum of what live trials told of their progress, each 0 to 1.
    progress_told: float
    #: Why the first of its trials that failed did so; only of an experiment that failed.
    first_failure: str | None
    checkpoints: int
    checkpoint_bytes: int
    best_trial_id: int | None
    best_metric: float | None
    #: While it is ACTIVE, what the most advanced of its attempts does: QUEUED, PULLING, STARTING, RUNNING.
    shown_state: str | None
    wait_reason: str | None


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


_TRIALS = "(select {what} from trials t {join} where t.experiment_id = e.id)"
_DOCUMENT = "(select {what} from experiment_documents d where d.experiment_id = e.id)"
_CHECKPOINTS = "join checkpoints c on c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')"

#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "id": "e.id",
    "start_time": "e.created_at",
    "end_time": "e.ended_at",
    "state": "e.state",
    "user": "(select lower(u.username) from users u where u.id = e.owner_id)",
    "forked_from": "e.parent_id",
    "project_id": "e.project_id",
    "name": _DOCUMENT.format(what="lower(d.name)"),
    "description": _DOCUMENT.format(what="lower(d.description)"),
    "resource_pool": "(select j.pool from jobs j where j.job_id = e.job_id)",
    "num_trials": _TRIALS.format(what="count(*)", join=""),
    "progress": _TRIALS.format(
        what="avg(case when t.state = 'ACTIVE' then coalesce(m.progress, 0) else 1 end)",
        join="left join trial_telemetry m on m.trial_id = t.id",
    ),
    "checkpoint_size": _TRIALS.format(what="sum(c.size_bytes)", join=_CHECKPOINTS),
    "checkpoint_count": _TRIALS.format(what="count(*)", join=_CHECKPOINTS),
    "searcher_metric": _TRIALS.format(
        what="case when " + _DOCUMENT.format(what="d.config -> 'searcher' ->> 'smaller_is_better'") + " = 'false' "
        "then max(m.best_metric) else min(m.best_metric) end",
        join="join trial_telemetry m on m.trial_id = t.id and m.best_metric not in ('NaN', 'Infinity', '-Infinity')",
    ),
}


async def count(conn: Connection, wanted: ExperimentFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {Q.matching}", *_parameters(wanted))
    return total


async def page(
    conn: Connection, wanted: ExperimentFilter, window: Page, *, order: str, descending: bool
) -> list[ExperimentView]:
    """A page of those that match."""
    direction = "desc" if descending else "asc"
    rows = await conn.fetch(
        f"select e.id {Q.matching} order by {ORDERS[order]} {direction} nulls last, e.id {direction} "
        "limit $13 offset $14",
        *_parameters(wanted),
        window.limit,
        window.offset,
    )
    return await views(conn, [row["id"] for row in rows])


async def views(conn: Connection, ids: list[int]) -> list[ExperimentView]:
    """Those of ``ids`` that are there, in that order."""
    found = {row["id"]: ExperimentView(**row) for row in await conn.fetch(Q.views, ids)}
    return [found[one] for one in ids if one in found]


async def get(conn: Connection, experiment_id: int) -> ExperimentView:
    """Raises NotFound."""
    found = await views(conn, [experiment_id])
    if not found:
        raise NotFound(f"there is no experiment {experiment_id}")
    return found[0]


async def trial_ids(conn: Connection, experiment_id: int) -> list[int]:
    """Of an experiment, in the order of their making."""
    return [row["id"] for row in await conn.fetch(Q.trial_ids, experiment_id)]


async def job_standing(conn: Connection, experiment_id: int) -> tuple[int, bool]:
    """How many waiting jobs come earlier, and whether its own holds slots. Raises NotFound."""
    row = await conn.fetchrow(Q.job_standing, experiment_id)
    if row is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return row["ahead"], row["placed"]


async def owner(conn: Connection, experiment_id: int) -> int:
    """The user that it belongs to. Raises NotFound."""
    found: int | None = await conn.fetchval(Q.owner, experiment_id)
    if found is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return found


async def set_archived(conn: Connection, experiment_id: int, archived: bool) -> None:
    """Hide it from lists, or show it again. Raises NotNow before it has ended."""
    if await conn.fetchval(Q.set_archived, experiment_id, archived) is None:
        raise NotNow(f"experiment {experiment_id} has not ended: cancel or kill it before you archive it")


async def edit(
    conn: Connection,
    experiment_id: int,
    *,
    name: str | None,
    description: str | None,
    notes: str | None,
    labels: list[str] | None,
) -> None:
    """Change its words; None leaves one as it is."""
    await conn.execute(Q.edit, experiment_id, name, description, notes, labels)


async def journal(conn: Connection, experiment_id: int, window: Page) -> list[tuple[int, datetime, JsonObject]]:
    """(number, time, entry) of a page of the journal of its search."""
    rows = await conn.fetch(Q.journal, experiment_id, window.limit, window.offset)
    return [(row["seq"], row["at"], row["entry"]) for row in rows]


async def progress_by_request(conn: Connection, experiment_id: int) -> dict[str, float]:
    """Request id of each live trial -> the progress that it told, 0 to 1."""
    rows = await conn.fetch(Q.progress_by_request, experiment_id)
    return {row["request_id"]: row["progress"] for row in rows}


def _parameters(wanted: ExperimentFilter) -> tuple[object, ...]:
    return (
        wanted.archived,
        like(wanted.name),
        like(wanted.description),
        _list(wanted.labels),
        None if wanted.users is None else [user.lower() for user in wanted.users],
        _list(wanted.user_ids),
        _list(wanted.states),
        wanted.project_id,
        wanted.after_id,
        wanted.before_id,
        _list(wanted.ids),
        _list(wanted.not_ids),
    )


def _list(values: tuple[object, ...] | None) -> list[object] | None:
    return None if values is None else list(values)
