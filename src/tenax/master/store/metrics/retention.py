"""How long the reports of a trial are kept after its end.

Rules: what they came to (summaries, the best and the latest validation, what searches decided by) stays with the trial;
the reports themselves go. Trials go in the order of their ends, and where that stands is remembered, so that what is
gone is not looked at again. A trial that went on after its end is looked at again when it has ended again.
"""

from __future__ import annotations

from datetime import datetime, timezone

from asyncpg import Connection

from tenax.master.store.database.queries import load

Q = load("metrics")

#: Trials that are cleaned in one transaction.
BATCH = 100
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=timezone.utc)


async def clean(conn: Connection, days: int) -> int:
    """Remove reports that are kept no longer: of how many trials; in a transaction. -1 days: for ever."""
    if days < 0:
        return 0
    place = await conn.fetchrow(Q.kept_from)
    after = (_BEFORE_ALL, 0) if place is None else (place["ended_at"], place["trial_id"])
    rows = await conn.fetch(Q.expired, days, *after, BATCH)
    if rows:
        trial_ids = [row["id"] for row in rows]
        for statement in (Q.hold_groups, Q.delete_tail, Q.delete_blocks, Q.delete_chunks, Q.packed):
            await conn.execute(statement, trial_ids)
        await conn.execute(Q.keep_from, rows[-1]["ended_at"], rows[-1]["id"])
    return len(rows)


async def drop_months(conn: Connection, before: int) -> int:
    """Drop empty months before that one (202611); returns how many. In a transaction of its own."""
    return int(await conn.fetchval(Q.drop_metric_months, before))
