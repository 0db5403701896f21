"""How long output is kept after the end of its task, and the end of what is kept no longer.

Rules: what a trial says counts first, then its experiment, its configuration, and the master; -1 is for ever.
The output of a task that runs is never touched. A command or generic task goes whole, with the code that only it had,
when its output is kept no longer, but never within the day in which it is listed, nor while there is a checkpoint of it
or a child of it runs. What slots were used for is accounted elsewhere, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.queries import existing, load
from tenax.master.store.logs import rows as logs
from tenax.master.store.tasks import contexts

Q = load("logs")

FOR_EVER = -1
MAX_DAYS = 32767
#: Tasks that are cleaned in one transaction.
BATCH = 100
#: Days that the cluster's own tasks are there after their end, where output is kept for ever.
OWN_TASK_DAYS = 30


@dataclass(frozen=True, slots=True)
class Kept:
    """How long the output of a trial is kept."""

    #: After its end; -1: for ever.
    days: int
    ended_at: datetime | None
    #: Whole days that are left, begun ones counted; None before its end.
    remaining: int | None


async def clean(conn: Connection, default_days: int) -> tuple[int, int]:
    """Remove output that is kept no longer, and what had it: (tasks, lines). In a transaction.

    There may be more where `BATCH` tasks, or more, are returned.
    """
    rows = await conn.fetch(Q.expired, default_days, BATCH)
    if rows:
        await logs.delete_tasks(conn, [row["task_id"] for row in rows])
    outlived = await _forget_tasks(conn, default_days)
    return len({row["task_id"] for row in rows} | outlived), sum(row["lines"] for row in rows)


async def _forget_tasks(conn: Connection, default_days: int) -> set[str]:
    rows = await conn.fetch(Q.outlived, default_days, BATCH, OWN_TASK_DAYS)
    names = [row["task_id"] for row in rows]
    if names:
        await logs.delete_tasks(conn, names)
        await conn.execute(Q.retention_delete_tasks, names)
        await conn.execute(Q.delete_jobs, [row["job_id"] for row in rows])
        for code in sorted({row["context_hash"] for row in rows} - {None}):
            await contexts.delete_unused(conn, code)
    return set(names)


async def drop_months(conn: Connection, before: int) -> int:
    """Drop empty months before that one (202611); returns how many. In a transaction of its own."""
    return int(await conn.fetchval(Q.drop_log_months, before))


async def set_trial(conn: Connection, trial_id: int, days: int) -> None:
    """Keep the output of a trial that long. Raises NotFound."""
    await existing(conn, f"trial {trial_id}", Q.set_trial, trial_id, days)


async def of_trial(conn: Connection, trial_id: int, default_days: int) -> Kept:
    """Raises NotFound."""
    return Kept(**await existing(conn, f"trial {trial_id}", Q.of_trial, trial_id, default_days))


async def last_done(conn: Connection, chore: str) -> tuple[datetime | None, datetime]:
    """When something was done last, None: never; and the time."""
    row = await conn.fetchrow(Q.last_done, chore)
    return row["done_at"], row["now"]


async def done(conn: Connection, chore: str) -> None:
    """It was done now."""
    await conn.execute(Q.done, chore)
