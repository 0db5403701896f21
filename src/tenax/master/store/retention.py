"""How long output is kept after the end of its task, and the end of what is kept no longer.

Rules: what a trial says counts first, then its experiment, its configuration, and the master; -1 is for ever.
The output of a task that runs is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.master.store import logs
from tenax.master.store.queries import load

Q = load("retention")

FOR_EVER = -1
LONGEST_DAYS = 32767
#: Tasks that are cleaned in one transaction.
BATCH = 100


@dataclass(frozen=True, slots=True)
class Kept:
    """How long the output of a trial is kept."""

    #: After its end; -1: for ever.
    days: int
    ended_at: datetime | None
    #: Whole days that are left, begun ones counted; None before its end.
    remaining: int | None


async def clean(conn: Connection, default_days: int) -> tuple[int, int]:
    """Remove output that is kept no longer, of `BATCH` tasks at most: (tasks, lines). In a transaction."""
    rows = await conn.fetch(Q.expired, default_days, BATCH)
    if rows:
        await logs.delete_tasks(conn, [row["task_id"] for row in rows])
    return len(rows), sum(row["lines"] for row in rows)


async def set_trial(conn: Connection, trial_id: int, days: int) -> None:
    """Keep the output of a trial that long. Raises NotFound."""
    if await conn.fetchval(Q.set_trial, trial_id, days) is None:
        raise NotFound(f"there is no trial {trial_id}")


async def of_trial(conn: Connection, trial_id: int, default_days: int) -> Kept:
    """Raises NotFound."""
    row = await conn.fetchrow(Q.of_trial, trial_id, default_days)
    if row is None:
        raise NotFound(f"there is no trial {trial_id}")
    return Kept(**row)


async def last_done(conn: Connection, chore: str) -> tuple[datetime | None, datetime]:
    """When something was done last, None: never; and the time."""
    row = await conn.fetchrow(Q.last_done, chore)
    return row["done_at"], row["now"]


async def done(conn: Connection, chore: str) -> None:
    """It was done now."""
    await conn.execute(Q.done, chore)
