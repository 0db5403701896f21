"""Changes of the queue: priority, weight, pool, a place beside another job. In one transaction, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.config.master import MasterSettings
from tenax.config.schema.resources import MAX_WEIGHT
from tenax.errors import InvalidInput, NotNow
from tenax.ids import JobId, PoolName
from tenax.master.allocations.verdicts import size_of
from tenax.master.provision.offers import prospects
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest, Size
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.machines import offer_facts
from tenax.master.store.queue import jobs, placements, pools
from tenax.master.store.queue.jobs import JobRow
from tenax.master.store.queue.pools import rules
from tenax.master.store.quotas import rows as quotas
from tenax.master.submission.messages import QueueControl
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.queueing import moved
from tenax.scheduler.registry import queue
from tenax.scheduler.snapshot import AgentState, Phase, PoolSnapshot


def check(update: QueueControl) -> None:
    """Whether a change can be meant. Raises InvalidInput, naming the field."""
    name = f"job {update.job_id}"
    if update.priority is not None and not 1 <= update.priority <= 99:
        raise InvalidInput(f"priority of {name} is {update.priority}: it goes from 1 (most urgent) to 99")
    if update.weight is not None and not 0 < update.weight <= MAX_WEIGHT:
        raise InvalidInput(f"weight of {name} is {update.weight}: it is a number above 0, at most {MAX_WEIGHT:g}")
    if update.ahead_of is not None and update.behind_of is not None:
        raise InvalidInput(f"{name} cannot be moved aheadOf one job and behindOf another at once: give one of them")
    if update.job_id in (update.ahead_of, update.behind_of):
        raise InvalidInput(f"{name} cannot be moved before or behind itself: name another job")
    if not update.model_fields_set - {"job_id", "expected"}:
        raise InvalidInput(f"no change of {name} was given: give a priority, weight, resourcePool, aheadOf or behindOf")


async def apply(conn: Connection, settings: MasterSettings, updates: Sequence[QueueControl]) -> None:
    """Carry out changes that were checked, of jobs that the caller may change. Raises UserError."""
    await jobs.lock_owners(conn, [await jobs.find(conn, update.job_id) for update in updates])
    for update in updates:
        job = await jobs.find(conn, update.job_id)
        if job.ended:
            raise NotNow(f"job {job.job_id} has ended: its place in the queue does not matter any more")
        if update.resource_pool and update.resource_pool != job.pool:
            await _to_pool(conn, settings, job, update.resource_pool)
        if update.priority is not None:
            _takes_turns(settings, update.resource_pool or job.pool)
            await jobs.set_priority(conn, job, update.priority)
        if update.weight is not None:
            await jobs.set_weight(conn, job, update.weight)
        anchor = update.ahead_of or update.behind_of
        if anchor:
            moving = await jobs.find(conn, job.job_id)
            await _beside(conn, moving, anchor, behind=update.behind_of is not None)
            await _check_order(conn, settings, moving, anchor, behind=update.behind_of is not None)


def _takes_turns(settings: MasterSettings, name: str) -> None:
    """Raises InvalidInput where priorities count for nothing."""
    pool = settings.pool(name)
    if pool is not None and not pool.scheduler.in_turns:
        raise InvalidInput(
            f"jobs share the slots of the pool {name!r} by their weight, and their priority changes nothing there: "
            "give a weight"
        )


async def _beside(conn: Connection, job: JobRow, anchor: str, *, behind: bool) -> None:
    other = await jobs.find(conn, anchor)
    if other.ended:
        raise NotNow(f"job {anchor} has ended: nothing can be moved before or behind it")
    if other.pool != job.pool:
        raise InvalidInput(
            f"job {anchor} waits in the pool {other.pool!r}, and job {job.job_id} in {job.pool!r}: move it to that "
            "pool first (resourcePool)"
        )
    await _check_same_turn(conn, job, other)
    order = await jobs.order(conn, other.pool, other.priority)
    if other.priority != job.priority:
        await jobs.set_priority(conn, job, other.priority)
    await jobs.set_positions(conn, moved(order, JobId(job.job_id), JobId(anchor), behind=behind))


async def _check_order(conn: Connection, settings: MasterSettings, job: JobRow, anchor: str, *, behind: bool) -> None:
    """Raises InvalidInput where its place changes nothing, since something else puts the two in an order."""
    snapshot = await snapshot_of(conn, settings, job.pool)
    ordered = [each.job_id for each in queue(snapshot) if each.phase is Phase.PENDING]
    if {job.job_id, anchor} <= {*ordered}:
        comes_behind = ordered.index(JobId(job.job_id)) > ordered.index(JobId(anchor))
        if comes_behind is not behind:
            raise InvalidInput(
                f"job {job.job_id} would still come {'behind' if comes_behind else 'before'} job {anchor}: what has "
                f"held much, or had its time, stands behind in pool {job.pool}, whatever its place: give a priority"
            )


async def _check_same_turn(conn: Connection, job: JobRow, other: JobRow) -> None:
    """Raises InvalidInput where quotas put the owners of two jobs in an order: a place beside one means nothing."""
    its = await quotas.rules_of_jobs(conn)
    if its is None:
        return
    turns = [its.turns[its.associations[JobId(each.job_id)]] for each in (job, other)]
    if turns[0] != turns[1]:
        raise InvalidInput(
            f"by the quotas of this cluster those come first who have used less (tenax quota show), and the owners of "
            f"job {job.job_id} and of job {other.job_id} have not used alike: give a priority instead"
        )


async def _to_pool(conn: Connection, settings: MasterSettings, job: JobRow, pool: str) -> None:
    """Its requests wait in the other pool from now on; what runs saves, leaves, and is placed there."""
    if settings.pool(pool) is None:
        known = ", ".join(sorted(known_pool.name for known_pool in settings.pools))
        raise InvalidInput(f"resourcePool: there is no pool {pool!r}; the pools are {known}")
    await pools.check_usable(conn, pool, job.workspace_id)
    size = await jobs.size(conn, job.job_id)
    if not size.preemptible:
        raise NotNow(f"job {job.job_id} cannot save and leave, so it cannot change its pool: end it and start it there")
    asks = Size(size.slots, size.single_node, size.constraints)
    if job.experiment_id is not None:
        asks = size_of((await experiments.plan(conn, job.experiment_id)).config)
    snapshot = await snapshot_of(conn, settings, pool)
    misfit = can_never_fit(asks.slots, snapshot, single_node=asks.single_node, constraints=asks.constraints)
    if misfit is not None and has_supply(snapshot):
        raise InvalidInput(f"resourcePool: {misfit}")
    reason = f"its job was moved to the pool {pool}"
    requests = [LeaveRequest(allocation_id, reason) for allocation_id in await jobs.set_pool(conn, job, pool)]
    await allocations.ask_to_leave(conn, requests, float(settings.preemption_timeout))


def has_supply(snapshot: PoolSnapshot) -> bool:
    """Whether anything could run in a pool: one without agents is one that nobody has started yet."""
    return bool(snapshot.prospects) or any(agent.state is not AgentState.DISABLED for agent in snapshot.agents)


async def snapshot_of(conn: Connection, settings: MasterSettings, pool: str) -> PoolSnapshot:
    """A pool as the scheduler sees it now."""
    return (await snapshots_of(conn, settings, pool))[pool]


async def snapshots_of(conn: Connection, settings: MasterSettings, pool: str | None = None) -> dict[str, PoolSnapshot]:
    """Every pool of the settings as the scheduler sees it now, and ``pool``, which may be in them no more."""
    its_rules = {known.name: rules(known) for known in settings.pools}
    places = {known.name: known.max_aux_containers_per_agent for known in settings.pools}
    is_renting = any(known.provider is not None for known in settings.pools)
    rentable = prospects(settings.pools, await offer_facts.all_of(conn)) if is_renting else {}
    snapshots = await placements.snapshots(conn, its_rules, places, prospects=rentable)
    empty = {
        name: PoolSnapshot(PoolName(name), (), {}, (), of_pool, prospects=tuple(rentable.get(name, ())))
        for name, of_pool in its_rules.items()
    }
    if pool is not None and pool not in empty:
        empty[pool] = PoolSnapshot(PoolName(pool), (), {}, ())
    return {**empty, **{known.pool: known for known in snapshots}}
