"""How long runs of a pool take, as far as rows say it: for whoever asks when something is likely to start."""

from __future__ import annotations

from asyncpg import Connection

from tenax.ids import AllocationId, JobId
from tenax.master.store.database.queries import load
from tenax.scheduler.outlook import Spans

Q = load("queue")


async def spans_of(conn: Connection, pool: str) -> Spans:
    """Of what runs there, of the jobs that are open, and what is usual."""
    running = await conn.fetch(Q.running_spans, pool)
    return Spans(
        held={AllocationId(row["allocation_id"]): row["held_s"] for row in running},
        left={
            # At the pace of all its runs until now.
            AllocationId(row["allocation_id"]): row["spent_s"] * (1 - row["progress"]) / row["progress"]
            for row in running
            if row["progress"]
        },
        of_job={JobId(row["job_id"]): row["seconds"] for row in await conn.fetch(Q.job_spans, pool)},
        usual=await conn.fetchval(Q.usual_span, pool),
        to_come={JobId(row["job_id"]): row["trials"] for row in await conn.fetch(Q.trials_to_come, pool)},
    )
