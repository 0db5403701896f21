"""What slots were used for: a row per member of an attempt, begun when it is placed, ended with it, kept for good.

Rules: the rows outlive the attempts, so the accounts of a month never change afterwards; sums are exact to the
microsecond, and what crosses the border of a period counts in both for its share.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.store.database.connection import Database
from tenax.master.store.database.queries import load

Q = load("queue")

#: Rows that are read at a time.
_PAGE = 2000


@dataclass(frozen=True, slots=True)
class Period:
    """From ``begins`` until just before ``ends``."""

    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class SlotUse:
    """An attempt that held slots, or an auxiliary place."""

    allocation_id: str
    #: TRIAL, COMMAND, NOTEBOOK...
    kind: str
    task_id: str
    experiment_id: int | None
    user_id: int
    username: str
    workspace_name: str
    pool: str
    started_at: datetime
    labels: list[str]
    #: Separated by blanks.
    agents: str
    slots: int
    requested_at: datetime
    #: None: it goes on.
    ended_at: datetime | None
    #: That lie in the window; times ``slots`` they are the slot seconds.
    seconds: float


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An attempt that has ended: what it asked for, and when it had it."""

    allocation_id: str
    task_id: str
    #: The same for all attempts of it: ``experiment 7``, or the id of a task.
    job: str
    username: str
    workspace_name: str
    pool: str
    slots: int
    requested_at: datetime
    started_at: datetime
    ended_at: datetime
    #: None, these three: its job was deleted since then, or has none.
    priority: int | None
    weight: float | None
    max_slots: int | None
    single_node: bool
    preemptible: bool
    time_limit_s: float | None
    constraints: JsonObject | None


@dataclass(frozen=True, slots=True)
class SlotSeconds:
    """Slot seconds of one period."""

    begins: datetime
    #: total, username, resource_pool, agent, experiment, experiment_label.
    by: str
    #: The name of the user, of the pool...; empty for the total.
    key: str
    seconds: Decimal


@dataclass(frozen=True, slots=True)
class Shares:
    """Slot seconds of one period by name (of users, of pools...); None: in all."""

    begins: datetime
    used: dict[str | None, Decimal] = field(default_factory=dict)
    #: From the request until the placement, of what was placed.
    waited: dict[str | None, Decimal] = field(default_factory=dict)


async def begin(conn: Connection, container_ids: Sequence[str]) -> None:
    """Members were placed. In the transaction that places them."""
    await conn.execute(Q.begin, list(container_ids))


async def end(conn: Connection, container_ids: Sequence[str]) -> None:
    """Members have ended. Idempotent."""
    if container_ids:
        await conn.execute(Q.end_use, list(container_ids))


async def raw(db: Database, window: Period) -> AsyncIterator[list[SlotUse]]:
    """The attempts that held slots in a window, in the order of their start, some at a time. Raises TryAgain."""
    after = (datetime(1970, 1, 1, tzinfo=timezone.utc), "")
    while True:
        async with db.connection() as conn:
            rows = await conn.fetch(Q.raw, window.begins, window.ends, *after, _PAGE)
        if rows:
            yield [SlotUse(**row) for row in rows]
        if len(rows) < _PAGE:
            return
        after = (rows[-1]["started_at"], rows[-1]["allocation_id"])


async def trace(db: Database, window: Period, pool: str | None) -> AsyncIterator[list[PastAttempt]]:
    """What held slots in a window, of a pool or of all, and has ended, in the order of their start, some at a time.
    Raises TryAgain."""
    after = (datetime(1970, 1, 1, tzinfo=timezone.utc), "")
    while True:
        async with db.connection() as conn:
            rows = await conn.fetch(Q.trace, window.begins, window.ends, *after, _PAGE, pool)
        if not rows:
            return
        yield [PastAttempt(**row) for row in rows]
        after = (rows[-1]["started_at"], rows[-1]["allocation_id"])


async def aggregated(conn: Connection, window: Period, periods: Sequence[Period]) -> list[SlotSeconds]:
    """Slot seconds in each of ``periods``, as far as they lie in the window; periods without any are not there."""
    begins, ends = [period.begins for period in periods], [period.ends for period in periods]
    rows = await conn.fetch(Q.aggregated, window.begins, window.ends, begins, ends)
    shares = [SlotSeconds(row["begins"], row["by"], row["key"], row["seconds"]) for row in rows]
    labeled = await conn.fetch(Q.aggregated_by_label, window.begins, window.ends, begins, ends)
    shares += [SlotSeconds(row["begins"], "experiment_label", row["label"], row["seconds"]) for row in labeled]
    return sorted(shares, key=lambda share: (share.begins, share.by, share.key))


async def aggregated_by(conn: Connection, window: Period, periods: Sequence[Period], by: str) -> list[Shares]:
    """Of each of ``periods``, as far as it lies in the window, by one of those names that the statement knows."""
    begins, ends = [period.begins for period in periods], [period.ends for period in periods]
    shares = {moment: Shares(moment) for moment in begins}
    for row in await conn.fetch(Q.aggregated_by, window.begins, window.ends, begins, ends, by):
        share = shares[row["begins"]]
        (share.waited if row["waited"] else share.used)[row["key"]] = row["seconds"]
    return list(shares.values())


async def waited(conn: Connection, days: int) -> dict[str, list[tuple[str, float]]]:
    """Per pool: (day, seconds that attempts waited on average), of the last ``days`` days that had any."""
    by_pool: dict[str, list[tuple[str, float]]] = {}
    for row in await conn.fetch(Q.waited, days):
        by_pool.setdefault(row["pool"], []).append((row["day"], row["seconds"]))
    return by_pool
