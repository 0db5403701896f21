"""What would become of a submission if it was made now: whether its first trials start, and why the others wait."""

from __future__ import annotations

import time

from tenax.config.master import MasterSettings
from tenax.ids import AllocationId, JobId
from tenax.master.concurrency.threads import Threads
from tenax.master.store.database.connection import Database
from tenax.master.submission.experiments import Submission
from tenax.master.submission.queue_control import snapshot_of
from tenax.scheduler.forecast import Forecast, forecast
from tenax.scheduler.snapshot import PoolJob, SlotRequest

#: In a longer queue nobody looks ahead: whoever asks waits, and the master does little else.
MAX_QUEUE = 20_000
#: First trials that are looked at.
MAX_TRIALS = 1000
_ITS_JOB = JobId("this job")


async def forecast_of(
    db: Database, settings: MasterSettings, threads: Threads, submission: Submission
) -> Forecast | None:
    """Of an experiment that was examined; None in too long a queue. ``threads``: where it is worked out."""
    async with db.snapshot() as conn:
        snapshot = await snapshot_of(conn, settings, submission.new.pool)
    if len(snapshot.requests) > MAX_QUEUE:
        return None
    resolved, new, now = submission.resolved, submission.new, time.time()
    trials = sum(bracket.initial_trials for bracket in resolved.search.brackets())
    job = PoolJob(_ITS_JOB, new.priority, now * 1e6, new.max_slots, new.weight)
    requests = [
        SlotRequest(
            AllocationId(f"trial {number} of this"),
            _ITS_JOB,
            resolved.experiment.resources.slots_per_trial,
            requested_at=now + number * 1e-6,
            single_node=resolved.experiment.resources.is_single_node is True,
        )
        for number in range(1, min(trials, MAX_TRIALS) + 1)
    ]
    return await threads.run(forecast, snapshot, job, requests)
