"""Rows of launched tasks (commands, generic tasks, the cluster's own): made whole, changed by guarded writes.

Rules: a launched task is locked where a trial is, before its allocation; what is run is written once; each change of
state is announced as ``task``.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from asyncpg import Connection, Record

from tenax.errors import NotFound, NotNow, Stale
from tenax.ids import TaskId, allocation_id
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.reconcile import OpenAllocation
from tenax.lifecycle.task import ENDED, TRANSITIONS, LiveTask, TaskEvent, TaskKind, TaskState, TaskVerdict, step
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import AttemptRequest, Size
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.tasks import contexts
from tenax.scheduler.constraints import constraints_of

Q = load("tasks")

#: One transaction changes so many at most.
AT_ONCE = 100
#: States in which a kill changes something.
_KILLABLE = [
    state.value for (state, event), after in TRANSITIONS.items() if event is TaskEvent.KILL and after is not state
]


@dataclass(frozen=True, slots=True)
class LaunchedTask:
    """The narrow row."""

    task_id: str
    kind: TaskKind
    job_id: str
    state: TaskState
    reason: str
    version: int
    run_id: int
    pausable: bool


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A small file that is there before the program starts; a relative path is under the run directory."""

    path: str
    content: str
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class NewTask:
    """What is written."""

    kind: TaskKind
    owner_id: int
    #: Complete, as `tenax.config.command` makes it.
    config: JsonObject
    pool: str
    priority: int
    weight: float = 1.0
    time_limit_s: float | None = None
    workspace_id: int = 1
    project_id: int | None = None
    description: str = ""
    #: What of the secrets of ``config`` its owner has written.
    own: JsonObject = field(default_factory=dict)
    #: As it came, where that is what is shown of it.
    submitted: JsonObject | None = None
    pausable: bool = False
    parent_id: str | None = None
    forked_from: str | None = None
    files: tuple[PlacedFile, ...] = ()
    #: Variables beside those of the contract.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Hash, archive and size of its code where it came with it; only a hash where the code is there already.
    context_hash: str | None = None
    archive: IO[bytes] | None = None
    archive_size: int = 0
    #: Runs as tasks of that workspace do, where it is in another one.
    as_in_workspace: int | None = None


async def create(conn: Connection, new: NewTask) -> str:
    """Write a new task, ACTIVE: it is placed as soon as there is room. Its id. In the caller's transaction."""
    if new.context_hash is not None and new.archive is not None:
        await contexts.put(conn, new.context_hash, new.archive, new.archive_size)
    task_id, job_id = str(uuid.uuid4()), str(uuid.uuid4())
    files: list[Json] = [{"path": file.path, "content": file.content, "mode": file.mode} for file in new.files]
    spec: JsonObject = {"v": 1, "config": new.config, "own": new.own, "files": files, "env": dict(new.env)}
    if new.submitted is not None:
        spec["submitted"] = new.submitted
    if new.as_in_workspace is not None:
        spec["as_in_workspace"] = new.as_in_workspace
    await conn.execute(Q.create_job, job_id, new.pool, new.priority, new.weight, new.owner_id, new.time_limit_s)
    await conn.execute(Q.create_task, task_id, new.kind.value, job_id, spec)
    await conn.execute(
        Q.create_launched,
        task_id,
        new.workspace_id,
        new.project_id,
        new.parent_id,
        new.forked_from,
        new.description,
        new.pausable,
        new.context_hash,
    )
    await notify(conn, "task", task_id)
    return task_id


async def lock(conn: Connection, task_id: str) -> LaunchedTask:
    """The task, locked until the transaction ends. Raises NotFound, also for the task of a trial."""
    return _task(await existing(conn, f"task {task_id}", Q.lock, [task_id]))


async def lock_many(conn: Connection, task_ids: Collection[str]) -> dict[str, LaunchedTask]:
    """Those of these tasks that there are and that are no trial's, locked."""
    return {row["task_id"]: _task(row) for row in await conn.fetch(Q.lock, list(task_ids))} if task_ids else {}


async def lock_family(conn: Connection, task_id: str, *, from_root: bool = False) -> list[LaunchedTask]:
    """The task and all that came from it (``from_root``: from its topmost ancestor), locked. Raises NotFound."""
    start = (await conn.fetchval(Q.root, task_id) if from_root else None) or task_id
    rows = await conn.fetch(Q.lock_family, start)
    # A child whose parent was waited for is seen only now.
    while len(more := await conn.fetch(Q.lock_family, start)) > len(rows):
        rows = more
    if not rows:
        raise NotFound(f"task {task_id} not found, or of another kind")
    return [_task(row) for row in more]


async def kill_in_workspace(conn: Connection, workspace_id: int, reason: str) -> int:
    """End commands and generic tasks that live in a locked workspace, `AT_ONCE` at most; how many that were."""
    rows = await conn.fetch(Q.live_in_workspace, workspace_id, _KILLABLE, AT_ONCE)
    live = await lock_many(conn, [row["task_id"] for row in rows])
    killed = TaskVerdict(TaskState.STOPPING_CANCELED, reason)
    await _set(conn, [(task, killed) for task in live.values() if task.state.value in _KILLABLE])
    return len(rows)


async def happen(conn: Connection, task: LaunchedTask, event: TaskEvent, reason: str = "") -> TaskState:
    """Let ``event`` happen to a locked task; its state after it. Raises NotNow, Stale."""
    if event is TaskEvent.PAUSE and not task.pausable and task.state not in ENDED:
        raise NotNow(f"the task {task.task_id} was created as one that cannot be paused: kill it instead")
    after = step(task.state, event)
    if after is not task.state:
        await _set(conn, [(task, TaskVerdict(after, reason))])
    return after


async def conclude(conn: Connection, verdicts: Sequence[tuple[LaunchedTask, TaskVerdict]]) -> None:
    """What locked tasks become after an attempt, or without one. Raises Stale."""
    # The reason of a kill is written with its request, and stays.
    kept = [
        (task, replace(verdict, reason=task.reason) if verdict.state is TaskState.CANCELED and task.reason else verdict)
        for task, verdict in verdicts
    ]
    await _set(conn, kept)


async def _set(conn: Connection, verdicts: Sequence[tuple[LaunchedTask, TaskVerdict]]) -> None:
    if not verdicts:
        return
    written = await conn.fetch(
        Q.set_states,
        [task.task_id for task, _ in verdicts],
        [task.version for task, _ in verdicts],
        [verdict.state.value for _, verdict in verdicts],
        [verdict.reason for _, verdict in verdicts],
    )
    if len(written) < len(verdicts):
        raise Stale
    ended = [task for task, verdict in verdicts if verdict.state in ENDED]
    if ended:
        await conn.execute(Q.end_tasks, [task.task_id for task in ended])
        await conn.execute(Q.end_jobs, [task.job_id for task in ended])
    for task in ended:
        await notify(conn, "logs", task.task_id)
        if task.kind is TaskKind.CHECKPOINT_GC:
            # What it has not reported is taken back from it.
            await notify(conn, "checkpoint_gc", "")
    for task, _ in verdicts:
        await notify(conn, "task", task.task_id)


async def announce(conn: Connection, task_id: str) -> None:
    """Wake whoever waits for a change of this task."""
    await notify(conn, "task", task_id)


async def set_priority(conn: Connection, task_id: str, priority: int) -> None:
    """Its place in the queue from now on. Raises NotNow where it has ended."""
    if await conn.fetchval(Q.set_priority, task_id, priority) is None:
        raise NotNow(f"the task {task_id} has ended: its priority matters to nobody any more")
    await notify(conn, "scheduling", "")


async def request_run(conn: Connection, task: LaunchedTask) -> str | None:
    """Ask for slots for the next attempt of a locked task: the new allocation's id; None if it must not run now.

    All members on one machine: such a task has one container.
    """
    run_id = await conn.fetchval(Q.next_run, task.task_id)
    if run_id is None:
        return None
    name = allocation_id(TaskId(task.task_id), run_id)
    row = await conn.fetchrow(Q.size, task.task_id)
    size = Size(row["slots"], True, constraints_of(row["constraints"]))
    attempt = AttemptRequest(name, task.task_id, run_id)
    await allocations.request(conn, [attempt], size, preemptible=task.pausable)
    return name


async def unsettled(conn: Connection, task_ids: Sequence[str] | None = None) -> tuple[LiveTask, ...]:
    """The tasks (of these, or of all) that may need something."""
    names = None if task_ids is None else list(task_ids)
    return tuple(_live(row) for row in await conn.fetch(Q.unsettled, names))


def _task(row: Record) -> LaunchedTask:
    return row_as(LaunchedTask, row, kind=TaskKind, state=TaskState)


def _live(row: Record) -> LiveTask:
    allocation = None
    if row["allocation_id"] is not None:
        allocation = OpenAllocation(
            row["allocation_id"],
            AllocationState(row["allocation_state"]),
            Preemption(row["preemption"]),
            row["ready"],
            row["ending"],
            listens=row["listens"],
        )
    return LiveTask(row["task_id"], TaskState(row["state"]), allocation)
