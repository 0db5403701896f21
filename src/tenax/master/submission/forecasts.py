"""What would become of a submission if it was made now: whether its first trials start, and why the others wait."""

from __future__ import annotations

import time
from dataclasses import replace

from asyncpg import Connection

from tenax.config.master import MasterSettings
from tenax.ids import AllocationId, JobId
from tenax.master.concurrency.threads import Threads
from tenax.master.store.database.connection import Database
from tenax.master.store.experiments.creation import NewExperiment
from tenax.master.store.queue.spans import spans_of
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.workspaces import projects
from tenax.master.submission.experiments import Submission
from tenax.master.submission.queue_control import snapshots_of
from tenax.scheduler.constraints import constraints_in
from tenax.scheduler.forecast import Forecast, forecast
from tenax.scheduler.quotas import LimitBook, with_quotas
from tenax.scheduler.snapshot import PoolJob, PoolSnapshot, SlotRequest

#: In a longer queue nobody looks ahead: whoever asks waits, and the master does little else.
MAX_QUEUE = 20_000
#: First trials that are looked at.
MAX_TRIALS = 1000
_ITS_JOB = JobId("this job")


async def forecast_of(
    db: Database, settings: MasterSettings, threads: Threads, submission: Submission
) -> Forecast | None:
    """Of an experiment that was examined; None in too long a queue. ``threads``: where it is worked out."""
    resolved, new, now = submission.resolved, submission.new, time.time()
    job = PoolJob(_ITS_JOB, new.priority, now * 1e6, new.max_slots, new.weight)
    async with db.snapshot() as conn:
        snapshot = await _with_job(conn, settings, new, job)
        spans = await spans_of(conn, new.pool)
    if len(snapshot.requests) > MAX_QUEUE:
        return None
    trials = sum(bracket.initial_trials for bracket in resolved.search.brackets())
    requests = [
        SlotRequest(
            AllocationId(f"trial {number} of this"),
            _ITS_JOB,
            resolved.experiment.resources.slots_per_trial,
            requested_at=now + number * 1e-6,
            constraints=constraints_in(resolved.document),
            time_limit=new.time_limit_s,
            single_node=resolved.experiment.resources.is_single_node is True,
        )
        for number in range(1, min(trials, MAX_TRIALS) + 1)
    ]
    return await threads.run(forecast, snapshot, snapshot.jobs[_ITS_JOB], requests, spans)


async def _with_job(conn: Connection, settings: MasterSettings, new: NewExperiment, job: PoolJob) -> PoolSnapshot:
    """Its pool as it is, the job among its jobs, with what quotas say of it."""
    snapshots = await snapshots_of(conn, settings, new.pool)
    snapshots[new.pool] = replace(snapshots[new.pool], jobs={**snapshots[new.pool].jobs, job.id: job})
    association = new.owner_id, (await projects.get(conn, new.project_id)).workspace_id
    its = await quotas.rules_of_jobs(conn, {job.id: association})
    if its is None:
        return snapshots[new.pool]
    bound = {name: with_quotas(snapshot, its) for name, snapshot in snapshots.items()}
    return LimitBook(bound.values()).with_elsewhere(bound[new.pool])
