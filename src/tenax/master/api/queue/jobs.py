"""The queue: shown to everyone; owners move their own jobs, administrators all jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Annotated

from asyncpg import Connection
from fastapi import Query, Response

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.ids import JobId
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Window, WindowDep, shared_answer
from tenax.master.api.http.routing import Routes
from tenax.master.api.queue import messages
from tenax.master.context import Master
from tenax.master.store.queue import jobs, pools, usage
from tenax.master.store.queue.jobs import JobView
from tenax.master.store.queue.spans import spans_of
from tenax.master.submission import queue_control
from tenax.master.submission.forecasts import MAX_QUEUE
from tenax.master.submission.messages import QueueControl
from tenax.scheduler.explain import RemedyKind, explain
from tenax.scheduler.outlook import likely_start
from tenax.scheduler.queueing import JobStanding, QueueLine, Rooms, holders, lines, with_held
from tenax.scheduler.reasons import class_of
from tenax.scheduler.registry import in_turns
from tenax.wire.message import Empty

routes = Routes("Jobs")

#: Days over which waiting is told.
_DAYS = 30
_MAX_UPDATES = 1000
#: Of those who hold the slots of a pool, so many are named.
_HOLDERS = 5
#: And so many of those that are ahead of a job.
_AHEAD = 20

Pool = Annotated[str, Query()]
States = Annotated[list[messages.JobState] | None, Query()]


@routes.get("/api/v1/job-queues-v2", "GetJobsV2", allow=Allow.USER, response_model=messages.GetJobsV2Response)
async def get_jobs_v2(
    master: MasterDep, window: WindowDep, resource_pool: Pool = "", states: States = None
) -> Response:
    """The queue of a pool (the default one for slots where none is named), in the order of turns."""

    async def make() -> messages.GetJobsV2Response:
        page = await _page(master, window, resource_pool, states)
        jobs_shown = [messages.RbacJob(full=job) for job in page.jobs]
        return messages.GetJobsV2Response(
            jobs=jobs_shown, pagination=page.pagination, holders=page.holders, holding=page.holding
        )

    return await shared_answer(master, ("GetJobsV2", window, resource_pool, frozenset(states or ())), make)


@routes.get("/api/v1/job-queues", "GetJobs", allow=Allow.USER)
async def get_jobs(
    master: MasterDep, window: WindowDep, resource_pool: Pool = "", states: States = None
) -> messages.GetJobsResponse:
    """As `get_jobs_v2`, in the older form."""
    return await _page(master, window, resource_pool, states)


@routes.get("/api/v1/job-queues/stats", "GetJobQueueStats", allow=Allow.USER)
async def get_stats(
    master: MasterDep, resource_pools: Annotated[list[str] | None, Query()] = None
) -> messages.GetJobQueueStatsResponse:
    """How many jobs wait and run in each pool, and how long attempts waited there, by day."""
    async with master.db.connection() as conn:
        waited = await usage.waited(conn, _DAYS)
    counted = await queue_stats(master, master.settings, resource_pools)
    return messages.GetJobQueueStatsResponse(
        results=[
            messages.PoolQueueStats(
                resource_pool=pool,
                stats=stats,
                aggregates=[
                    messages.AggregateQueueStats(period_start=day, seconds=seconds)
                    for day, seconds in waited.get(pool, [])
                ],
            )
            for pool, stats in counted.items()
        ]
    )


@routes.get("/api/v1/job-queues/{job_id}/explanation", "ExplainJob", allow=Allow.USER)
async def explain_job(master: MasterDep, job_id: str) -> messages.ExplainJobResponse:
    """Why it waits, who is before it, who holds what it needs, and what would help: found by trying."""
    async with master.db.snapshot() as conn:
        job = await jobs.find(conn, job_id)
        snapshots = await queue_control.snapshots_of(conn, master.settings, job.pool)
        if job.ended:
            raise NotNow(f"job {job_id} has ended: it waits for nothing")
        snapshot = snapshots[job.pool]
        if len(snapshot.requests) > MAX_QUEUE:
            raise NotNow(
                f"the queue of the pool {job.pool} is too long to try what would help: its list has the reason"
            )
        bound = await pools.bindings(conn)
        its_spans = await spans_of(conn, job.pool)
    explained = await master.examiners.run(explain, JobId(job_id), job.pool, snapshots)
    holding = holders(lines(snapshot)) if explained is not None else ()
    ahead = explained.ahead if explained is not None else ()
    named = (JobId(job_id), *ahead[:_AHEAD], *(line.job_id for line in holding[:_HOLDERS]))
    async with master.db.snapshot() as conn:
        views = await jobs.shown(conn, named)
    if JobId(job_id) not in views:
        raise NotFound(f"job {job_id} not found")
    view = views[JobId(job_id)]
    if explained is None:
        return messages.ExplainJobResponse(
            job_id=job_id, name=view.name, resource_pool=job.pool, reason=view.reason or ""
        )
    likely = await master.examiners.run(likely_start, snapshot, explained.request.allocation_id, its_spans)
    return messages.ExplainJobResponse(
        job_id=job_id,
        name=view.name,
        resource_pool=job.pool,
        waiting_slots=explained.request.slots,
        reason=explained.reason,
        wait_class=class_of(explained.reason),
        ahead=[_named(views[other]) for other in ahead[:_AHEAD] if other in views],
        ahead_total=len(ahead),
        holders=[_holder(line, views[line.job_id]) for line in holding[:_HOLDERS] if line.job_id in views],
        holding=len(holding),
        starts_by=None if explained.starts_by is None else datetime.fromtimestamp(explained.starts_by, timezone.utc),
        likely_start=None if likely is None else datetime.fromtimestamp(likely.at, timezone.utc),
        sureness=None if likely is None else likely.sureness,
        remedies=[
            messages.QueueRemedy(kind=remedy.kind, value=remedy.value, leaving=remedy.leaving)
            for remedy in explained.remedies
            if remedy.kind is not RemedyKind.POOL
            or remedy.value not in bound
            or view.workspace_id in bound[remedy.value]
        ],
    )


def _named(view: JobView) -> messages.NamedJob:
    return messages.NamedJob(
        job_id=view.job_id, type=_kind(view), entity_id=_entity(view), name=view.name, username=view.username
    )


@routes.post("/api/v1/job-queues", "UpdateJobQueue", allow=Allow.USER)
async def update_queue(master: MasterDep, caller: CallerDep, body: messages.UpdateJobQueueRequest) -> Empty:
    """Change places in the queue; all changes are made, or none."""
    if len(body.updates) > _MAX_UPDATES:
        raise InvalidInput(f"updates has {len(body.updates)} entries, and may have {_MAX_UPDATES}: send less at a time")
    for update in body.updates:
        queue_control.check(update)
    async with master.db.transaction() as conn:
        for update in body.updates:
            caller.may_change((await jobs.find(conn, update.job_id)).owner_id, f"job {update.job_id}")
        await _check_expected(conn, [update for update in body.updates if update.expected is not None])
        await queue_control.apply(conn, master.settings, body.updates)
    return Empty()


async def _check_expected(conn: Connection, updates: Sequence[QueueControl]) -> None:
    """Raises Overtaken."""
    await jobs.lock_owners(conn, [await jobs.find(conn, update.job_id) for update in updates])
    views = await jobs.shown(conn, [update.job_id for update in updates])
    for update in updates:
        view = views[JobId(update.job_id)]
        place = messages.JobPlace(priority=view.priority, weight=view.weight, resource_pool=view.pool)
        check_expected(update.expected, place, f"job {update.job_id}")


async def queue_stats(
    master: Master, settings: MasterSettings, names: Sequence[str] | None = None
) -> dict[str, messages.QueueStats]:
    """Of each pool of ``settings``, or of those named that there are; the master may go by others meanwhile."""
    stats: dict[str, messages.QueueStats] = {}
    queues = await _queues(master, settings)
    for pool in settings.pools:
        if not names or pool.name in names:
            queue = queues[pool.name].lines
            waiting = sum(1 for line in queue if line.standing is JobStanding.QUEUED)
            stats[pool.name] = messages.QueueStats(queued_count=waiting, scheduled_count=len(queue) - waiting)
    return stats


async def _page(
    master: Master, window: Window, pool: str, states: list[messages.JobState] | None
) -> messages.GetJobsResponse:
    chosen = set(states or ()) - {messages.JobState.UNSPECIFIED}
    settings = master.settings
    name = pool or settings.default_compute_pool
    if settings.pool(name) is None:
        raise NotFound(f"resource pool {name!r} not found")
    whole = (await _queues(master, settings))[name]
    queue = [line for line in whole.lines if not chosen or _state(line) in chosen]
    if window.descending:
        queue.reverse()
    page, pagination = window.of(len(queue))
    shown = queue[page.offset : page.offset + (page.limit or 0)]
    holding = holders(whole.lines)
    async with master.db.snapshot() as conn:
        views = await jobs.shown(conn, [line.job_id for line in (*shown, *holding[:_HOLDERS])])
        bound = await pools.bindings(conn)
    return messages.GetJobsResponse(
        jobs=[_message(line, views[line.job_id], whole, bound) for line in shown if line.job_id in views],
        pagination=pagination,
        holders=[_holder(line, views[line.job_id]) for line in holding[:_HOLDERS] if line.job_id in views],
        holding=len(holding),
    )


@dataclass(frozen=True, slots=True)
class _Queue:
    """That of one pool, at one instant."""

    lines: tuple[QueueLine, ...]
    #: Of all pools, this one among them.
    rooms: Rooms


async def _queues(master: Master, settings: MasterSettings) -> dict[str, _Queue]:
    """By pool."""

    async def load() -> dict[str, _Queue]:
        async with master.db.snapshot() as conn:
            hidden = await jobs.hidden(conn)
            snapshots = await queue_control.snapshots_of(conn, settings)
            held = await jobs.held(conn)
        rooms = Rooms(snapshots)
        return {
            pool: _Queue(
                with_held(
                    lines(
                        replace(
                            snapshot, requests=tuple(each for each in snapshot.requests if each.job_id not in hidden)
                        )
                    ),
                    {job.job_id: job.slots for job in held if job.pool == pool},
                    in_turns=in_turns(snapshot.rules.policy),
                ),
                rooms,
            )
            for pool, snapshot in snapshots.items()
        }

    # Read again, they are other settings; who shares this keeps them.
    return await master.single_flight.share(("queues", id(settings)), load)


def _state(line: QueueLine) -> messages.JobState:
    return messages.JobState(f"STATE_{line.standing.value}")


def _kind(view: JobView) -> messages.JobType:
    return messages.JobType.EXPERIMENT if view.kind == "TRIAL" else messages.JobType(f"TYPE_{view.kind}")


def _entity(view: JobView) -> str:
    return view.task_id or "" if view.experiment_id is None else str(view.experiment_id)


def _holder(line: QueueLine, view: JobView) -> messages.JobHolder:
    return messages.JobHolder(
        job_id=view.job_id,
        type=_kind(view),
        entity_id=_entity(view),
        name=view.name,
        username=view.username,
        slots=line.allocated_slots,
    )


def _message(line: QueueLine, view: JobView, queue: _Queue, bound: Mapping[str, list[int]]) -> messages.Job:
    waiting = line.waiting
    elsewhere = queue.rooms.elsewhere(view.pool, waiting) if waiting is not None else ()
    return messages.Job(
        summary=messages.JobSummary(state=_state(line), jobs_ahead=line.ahead),
        type=_kind(view),
        submission_time=view.submitted_at,
        username=view.username,
        user_id=view.owner_id,
        resource_pool=view.pool,
        is_preemptible=line.preemptible,
        priority=view.priority,
        weight=view.weight,
        entity_id=_entity(view),
        job_id=view.job_id,
        requested_slots=line.requested_slots,
        allocated_slots=line.allocated_slots,
        name=view.name,
        progress=view.progress or 0.0,
        workspace_id=view.workspace_id,
        reason=view.reason or "",
        wait_class=class_of(view.reason or ""),
        waiting_slots=None if waiting is None else waiting.slots,
        waiting_since=None if waiting is None else datetime.fromtimestamp(waiting.requested_at, timezone.utc),
        room_in=[name for name in elsewhere if name not in bound or view.workspace_id in bound[name]],
    )
