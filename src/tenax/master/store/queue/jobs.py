"""Rows of jobs, the entries of the queue: listed with what they run, changed and moved.

Rules: the experiment or task of a job is locked before the job; one change of a pool's order at a time; a job that has
ended stays as it is. What is changed is noted in the experiment's configuration, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.ids import JobId
from tenax.jsonvalue import Json
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.tasks import rows as tasks
from tenax.scheduler.constraints import constraints_of
from tenax.scheduler.snapshot import Constraints

Q = load("queue")


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as people see it, beside its place in the queue."""

    job_id: str
    pool: str
    priority: int
    weight: float
    submitted_at: datetime
    owner_id: int
    username: str
    experiment_id: int | None
    name: str
    #: Of a job that is not an experiment's.
    task_id: str | None
    kind: str
    workspace_id: int
    #: Why the first of its requests waits.
    reason: str | None
    #: Of an experiment, from 0 to 1.
    progress: float | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job that may be changed."""

    job_id: str
    owner_id: int
    pool: str
    priority: int
    ended: bool
    experiment_id: int | None
    workspace_id: int
    #: Of its task; None for an experiment's.
    kind: str | None
    #: Of a launched task.
    task_id: str | None


@dataclass(frozen=True, slots=True)
class JobSize:
    """What a job's open requests ask for."""

    slots: int
    single_node: bool
    preemptible: bool
    constraints: Constraints | None = None


async def shown(conn: Connection, job_ids: Sequence[str]) -> dict[str, JobView]:
    """By id; those that are not there any more are left out."""
    return {row["job_id"]: JobView(**row) for row in await conn.fetch(Q.shown, list(job_ids))}


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that asks for nothing at this moment, since what it asked for last did not start."""

    job_id: JobId
    pool: str
    slots: int


async def held(conn: Connection) -> list[HeldJob]:
    """Those whose next try waits for that."""
    return [HeldJob(JobId(row["job_id"]), row["pool"], row["slots"]) for row in await conn.fetch(Q.held)]


async def hidden(conn: Connection) -> set[str]:
    """Jobs that people are not shown."""
    return {row["job_id"] for row in await conn.fetch(Q.hidden)}


async def find(conn: Connection, job_id: str) -> JobRow:
    """Raises NotFound."""
    return JobRow(**await existing(conn, f"job {job_id!r}", Q.find, job_id))


async def priority_of_experiment(conn: Connection, experiment_id: int) -> int | None:
    """None: there is no such experiment."""
    priority: int | None = await conn.fetchval(Q.priority_of_experiment, experiment_id)
    return priority


async def lock_owners(conn: Connection, jobs: Sequence[JobRow]) -> None:
    """Lock the launched tasks and experiments of jobs, in order: what is decided for one of them waits until the change
    is written."""
    for task_id in sorted({job.task_id for job in jobs if job.task_id is not None}):
        await tasks.lock(conn, task_id)
    for number in sorted({job.experiment_id for job in jobs if job.experiment_id is not None}):
        await experiments.lock(conn, number)


async def order(conn: Connection, pool: str, priority: int) -> list[tuple[JobId, float]]:
    """Jobs of one priority with their positions, lower first; nobody else moves them until the transaction ends."""
    await conn.execute(Q.lock_queue, pool)
    rows = await conn.fetch(Q.order, pool, priority)
    return [(JobId(row["job_id"]), float(row["queue_position"])) for row in rows]


async def set_positions(conn: Connection, positions: Mapping[JobId, float]) -> None:
    """Move jobs."""
    await conn.execute(Q.set_positions, list(positions), list(positions.values()))
    await notify(conn, "scheduling", "")


async def set_priority(conn: Connection, job: JobRow, priority: int) -> None:
    """1 (most urgent) to 99. Raises InvalidInput where quotas do not allow it to its owner."""
    await quotas.check_priority(conn, job.owner_id, job.workspace_id, priority)
    await conn.execute(Q.set_priority, job.job_id, priority)
    await _note(conn, job, "priority", priority)


async def set_weight(conn: Connection, job: JobRow, weight: float) -> None:
    """Its share under policies that share."""
    await conn.execute(Q.set_weight, job.job_id, weight)
    await _note(conn, job, "weight", weight)


async def set_pool(conn: Connection, job: JobRow, pool: str) -> list[str]:
    """Let it run in another pool from now on; returns its attempts that have places in the one before."""
    await conn.fetch(Q.hold_open, job.job_id)
    await conn.execute(Q.set_pool, job.job_id, pool)
    await _note(conn, job, "resource_pool", pool)
    return [row["allocation_id"] for row in await conn.fetch(Q.placed_allocations, job.job_id)]


async def size(conn: Connection, job_id: str) -> JobSize:
    """Of its largest open request."""
    row = await conn.fetchrow(Q.sizes, job_id)
    return JobSize(row["slots"], row["single_node"], row["preemptible"], constraints_of(row["constraints"]))


async def _note(conn: Connection, job: JobRow, name: str, value: Json) -> None:
    if job.experiment_id is not None:
        await conn.execute(Q.note_in_config, job.experiment_id, name, value)
    await notify(conn, "scheduling", "")
