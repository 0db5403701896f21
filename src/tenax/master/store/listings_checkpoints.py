"""Checkpoints as people see them: with their trial, its configuration, and the metric at their step. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.paging import Page
from tenax.master.store.queries import load

Q = load("listings_checkpoints")


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """One checkpoint, with what it comes from."""

    uuid: str
    task_id: str
    allocation_id: str | None
    trial_id: int | None
    storage_id: int | None
    state: str
    superseded: bool
    steps_completed: int
    metadata: JsonObject
    resources: dict[str, int]
    size_bytes: int
    reported_at: datetime
    experiment_id: int | None
    owner_id: int | None
    hparams: JsonObject | None
    #: Of its experiment, with its secrets.
    config: JsonObject | None
    #: Where it is, as reported; None: as the experiment says.
    storage: JsonObject | None
    #: The searcher's metric at its step.
    metric: float | None
    #: What is known of the validation at its step.
    metrics: JsonObject | None
    #: Why its files are being deleted; None: they are not.
    going: str | None
    #: Why that did not work the last time; empty: nothing failed.
    going_failure: str | None
    #: What was trained at its step; None: nothing was reported there, or it was not looked for.
    trained: JsonObject | None = None


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "uuid": "c.uuid",
    "trial_id": "c.trial_id",
    "steps": "c.steps_completed",
    "reported_at": "c.reported_at",
    "state": "c.state",
    # What is not a number ranks behind all numbers, in both directions.
    "metric": "nullif(nullif(nullif(v.metric, 'NaN'), 'Infinity'), '-Infinity')",
}


@dataclass(frozen=True, slots=True)
class CheckpointFilter:
    """Which checkpoints to list; None: no matter."""

    experiment_id: int | None = None
    trial_id: int | None = None
    states: tuple[str, ...] | None = None
    uuids: tuple[str, ...] | None = None


async def count(conn: Connection, wanted: CheckpointFilter) -> int:
    """How many match."""
    text = f"select count(*) from checkpoints c left join trials t on t.id = c.trial_id {Q.matching}"
    total: int = await conn.fetchval(text, *_parameters(wanted))
    return total


async def page(
    conn: Connection, wanted: CheckpointFilter, window: Page, *, order: str = "reported_at", descending: bool = False
) -> list[CheckpointView]:
    """A page of those that match."""
    direction = "desc" if descending else "asc"
    text = (
        f"{Q.columns} {Q.sources} {Q.matching} order by {ORDERS[order]} {direction} nulls last, "
        f"c.uuid {direction} limit $5 offset $6"
    )
    rows = await conn.fetch(text, *_parameters(wanted), window.limit, window.offset)
    return [CheckpointView(**row) for row in rows]


async def get(conn: Connection, uuid: str) -> CheckpointView:
    """Raises NotFound."""
    return (await get_all(conn, [uuid]))[0]


async def get_all(conn: Connection, uuids: list[str]) -> list[CheckpointView]:
    """These, in their order. Raises NotFound."""
    found = {view.uuid: view for view in await page(conn, CheckpointFilter(uuids=tuple(uuids)), Page())}
    missing = next((uuid for uuid in uuids if uuid not in found), None)
    if missing is not None:
        raise NotFound(f"there is no checkpoint {missing}")
    return [found[uuid] for uuid in uuids]


async def needed_by(conn: Connection, uuid: str) -> int | None:
    """A live trial that would resume from it, or that started from it; None: no trial does."""
    trial: int | None = await conn.fetchval(Q.needed_by, uuid)
    return trial


def _parameters(wanted: CheckpointFilter) -> tuple[object, ...]:
    return (
        wanted.experiment_id,
        wanted.trial_id,
        None if wanted.states is None else list(wanted.states),
        None if wanted.uuids is None else list(wanted.uuids),
    )
