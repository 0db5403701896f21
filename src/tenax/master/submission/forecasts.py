"""What would become of a submission if it was made now: whether its first trials start, why the others wait, and which
machines would be rented for them.

Rules: its requests are put into the queue as it is, and the functions that schedule and rent are asked; nothing is
written, and neither does anything wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from asyncpg import Connection

from tenax.config.master import MasterSettings, PoolSettings
from tenax.errors import NotNow
from tenax.ids import AllocationId, JobId
from tenax.lifecycle.budget import BudgetState
from tenax.master.concurrency.threads import Threads
from tenax.master.provision.budgets import budget_states
from tenax.master.provision.offers import decided
from tenax.master.store.database.connection import Database
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import RentedPool
from tenax.master.store.queue.spans import spans_of
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.workspaces import projects
from tenax.master.submission.commands import Launch
from tenax.master.submission.experiments import Submission
from tenax.master.submission.queue_control import snapshots_of
from tenax.scheduler.constraints import constraints_in
from tenax.scheduler.demand import Scaling
from tenax.scheduler.forecast import Forecast, forecast
from tenax.scheduler.quotas import LimitBook, with_quotas
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import PoolJob, PoolSnapshot, SlotRequest

#: In a longer queue nobody looks ahead: whoever asks waits, and the master does little else.
MAX_QUEUE = 20_000
#: First trials that are looked at.
MAX_TRIALS = 1000
_ITS_JOB = JobId("this job")


@dataclass(frozen=True, slots=True)
class ImaginedJob:
    """What a submission would put into the queue of its pool."""

    job: PoolJob
    requests: tuple[SlotRequest, ...]
    pool: str
    owner_id: int
    #: Of an experiment, whose workspace counts; else the workspace itself.
    project_id: int | None
    workspace_id: int = 0


@dataclass(frozen=True, slots=True)
class RentalForecast:
    """What would be rented, were a submission made now."""

    job: ImaginedJob
    rented: RentedPool
    budgets: tuple[BudgetState, ...]
    #: Without it, and with it.
    before: Scaling
    after: Scaling
    #: Those of its requests that start at once, on what is there.
    starting: frozenset[AllocationId]
    #: Why each of the others waits, with what becomes of machines.
    waiting: Mapping[AllocationId, str]


def imagined_experiment(submission: Submission) -> ImaginedJob:
    """The first trials of an experiment that was examined."""
    resolved, new, now = submission.resolved, submission.new, time.time()
    trials = sum(bracket.initial_trials for bracket in resolved.search.brackets())
    requests = tuple(
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
    )
    job = PoolJob(_ITS_JOB, new.priority, now * 1e6, new.max_slots, new.weight)
    return ImaginedJob(job, requests, new.pool, new.owner_id, new.project_id)


def imagined_command(launch: Launch) -> ImaginedJob:
    """The one task of a command that was examined."""
    new, now = launch.new, time.time()
    request = SlotRequest(
        AllocationId("this command"),
        _ITS_JOB,
        launch.slots,
        requested_at=now,
        preemptible=new.pausable,
        constraints=constraints_in(new.config),
        time_limit=new.time_limit_s,
        single_node=True,
    )
    job = PoolJob(_ITS_JOB, new.priority, now * 1e6, None, new.weight)
    return ImaginedJob(job, (request,), new.pool, new.owner_id, None, new.workspace_id)


async def forecast_of(
    db: Database, settings: MasterSettings, threads: Threads, submission: Submission
) -> Forecast | None:
    """Of an experiment that was examined; None in too long a queue. ``threads``: where it is worked out."""
    imagined = imagined_experiment(submission)
    async with db.snapshot() as conn:
        snapshot = await _with_job(conn, settings, imagined)
        spans = await spans_of(conn, imagined.pool)
    if len(snapshot.requests) > MAX_QUEUE:
        return None
    return await threads.run(forecast, snapshot, snapshot.jobs[_ITS_JOB], imagined.requests, spans)


async def rental_of(
    db: Database, settings: MasterSettings, threads: Threads, pool: PoolSettings, imagined: ImaginedJob
) -> RentalForecast:
    """Which machines would be rented for it, in a pool that rents. Raises NotNow in too long a queue."""
    async with db.snapshot() as conn:
        snapshot = await _with_job(conn, settings, imagined)
        rented = (await machines.of_pools(conn)).get(pool.name, RentedPool())
        budgets = (await budget_states(conn, settings.pools, settings.renting)).get(pool.name, ())
    if len(snapshot.requests) > MAX_QUEUE:
        raise NotNow(f"{len(snapshot.requests)} requests wait or run in pool {pool.name}: nobody looks ahead there")
    return await threads.run(_rental, pool, snapshot, imagined, rented, budgets)


def _rental(
    pool: PoolSettings,
    snapshot: PoolSnapshot,
    imagined: ImaginedJob,
    rented: RentedPool,
    budgets: tuple[BudgetState, ...],
) -> RentalForecast:
    assert pool.provider is not None
    with_it = replace(snapshot, requests=(*snapshot.requests, *imagined.requests))
    before = decided(pool, pool.provider, snapshot, rented, budgets)
    after = decided(pool, pool.provider, with_it, rented, budgets)
    planned = plan(with_it)
    names = [each.allocation_id for each in imagined.requests]
    reasons = after.explained(planned.waiting)
    return RentalForecast(
        imagined,
        rented,
        budgets,
        before,
        after,
        frozenset(name for name in names if name in planned.placements),
        {name: reasons[name] for name in names if name in reasons},
    )


async def _with_job(conn: Connection, settings: MasterSettings, imagined: ImaginedJob) -> PoolSnapshot:
    """Its pool as it is, the job among its jobs, with what quotas say of it."""
    pool, job, project_id = imagined.pool, imagined.job, imagined.project_id
    snapshots = await snapshots_of(conn, settings, pool)
    snapshots[pool] = replace(snapshots[pool], jobs={**snapshots[pool].jobs, job.id: job})
    workspace_id = imagined.workspace_id
    if project_id is not None:
        workspace_id = (await projects.get(conn, project_id)).workspace_id
    association = imagined.owner_id, workspace_id
    its = await quotas.rules_of_jobs(conn, {job.id: association})
    if its is None:
        return snapshots[pool]
    bound = {name: with_quotas(snapshot, its) for name, snapshot in snapshots.items()}
    return LimitBook(bound.values()).with_elsewhere(bound[pool])
