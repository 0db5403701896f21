"""Rows of allocations: placement attempts of tasks, locked after their trial.

Rules: one open allocation per task (a unique index says it too); what a task was asked and has acknowledged is only
ever raised; a change of what an agent should run raises that agent's revision in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record

from tenax.errors import Stale
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.time_limit import leave_reason, within_s
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.scheduler.constraints import as_document
from tenax.scheduler.snapshot import Constraints

Q = load("allocations")

#: Seconds that a launched task has to save and leave where it names no ``preemption_timeout``: most do not listen.
TASK_PREEMPTION_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class AllocationRow:
    """The narrow row."""

    allocation_id: str
    task_id: str
    run_id: int
    state: AllocationState
    version: int
    preemption: Preemption
    #: Why it was asked to leave.
    preemption_reason: str
    #: That was for its time limit.
    over_time: bool
    ready: bool
    #: It has run for a minute, at least.
    lasted: bool


@dataclass(frozen=True, slots=True)
class AllocationOwner:
    """Whose an allocation is."""

    allocation_id: str
    task_id: str
    trial_id: int | None
    experiment_id: int | None


async def owners(conn: Connection, allocation_ids: Sequence[str]) -> list[AllocationOwner]:
    """Whose these allocations are; nothing of one that does not exist."""
    return [_owner(row) for row in await conn.fetch(Q.owners, list(allocation_ids))]


async def owners_of_containers(
    conn: Connection, container_ids: Sequence[str], agent_id: str | None = None
) -> dict[str, AllocationOwner]:
    """Whose allocation each container is a member of; nothing of one that is not known (as one of this agent)."""
    rows = await conn.fetch(Q.owners_of_containers, list(container_ids), agent_id)
    return {row["container_id"]: _owner(row) for row in rows}


def _owner(row: Record) -> AllocationOwner:
    return AllocationOwner(row["allocation_id"], row["task_id"], row["trial_id"], row["experiment_id"])


async def lock(conn: Connection, allocation_id: str) -> AllocationRow:
    """The allocation, locked until the transaction ends. Raises NotFound."""
    return _allocation(await existing(conn, f"allocation {allocation_id}", Q.lock, [allocation_id]))


async def lock_many(conn: Connection, allocation_ids: Sequence[str]) -> dict[str, AllocationRow]:
    """Those of these allocations that there are, locked until the transaction ends."""
    return {row["allocation_id"]: _allocation(row) for row in await conn.fetch(Q.lock, list(allocation_ids))}


def _allocation(row: Record) -> AllocationRow:
    return row_as(AllocationRow, row, state=AllocationState, preemption=Preemption)


@dataclass(frozen=True, slots=True)
class AllocationChange:
    """What a locked allocation was, and where it is now."""

    before: AllocationRow
    state: AllocationState
    reason: str = ""
    #: Its only member runs.
    ready: bool = False


async def set_states(conn: Connection, changes: Sequence[AllocationChange]) -> None:
    """Where locked allocations are now. Raises Stale."""
    if not changes:
        return
    names = [change.before.allocation_id for change in changes]
    written = await conn.fetch(
        Q.set_states,
        names,
        [change.before.version for change in changes],
        [change.state.value for change in changes],
        [change.reason for change in changes],
        [change.ready or change.before.ready for change in changes],
    )
    if len(written) < len(changes):
        raise Stale
    over = [each.before.allocation_id for each in changes if each.state is AllocationState.TERMINATED]
    if over:
        await conn.execute(Q.drop_task_sessions, over)
    for name in names:
        await notify(conn, "allocation", name)


async def withdraw(conn: Connection, reasons: Mapping[str, str]) -> frozenset[str]:
    """Take back requests, by id and with the reason: the ids of those that were. The others have been placed meanwhile,
    or have ended: whoever wanted them back must look again.

    The reason that one waited for is dropped by the scheduling loop, which alone writes those: many at a time, in an
    order of its own.
    """
    if not reasons:
        return frozenset()
    await conn.fetch(Q.hold, list(reasons))
    taken_back = await conn.fetch(Q.withdraw, list(reasons), list(reasons.values()))
    if taken_back:
        await notify(conn, "scheduling", "")
    return frozenset(row["allocation_id"] for row in taken_back)


@dataclass(frozen=True, slots=True)
class LeaveRequest:
    """An attempt is to save and leave."""

    allocation_id: str
    reason: str
    #: Seconds that it has. None: what its own ``preemption_timeout`` says, and nothing for what has not come up yet.
    within_s: float | None = None


async def ask_to_leave(conn: Connection, requests: Sequence[LeaveRequest], usual_s: float = 0.0) -> None:
    """Signal tasks to save and leave; nothing to one that has ended, or was asked before and has no more time.

    ``usual_s``: of a trial whose configuration says nothing.
    """
    if not requests:
        return
    names = [request.allocation_id for request in requests]
    await conn.fetch(Q.hold, names)
    signalled = await conn.fetch(
        Q.ask_to_leave,
        names,
        [request.reason for request in requests],
        [request.within_s for request in requests],
        usual_s,
        TASK_PREEMPTION_TIMEOUT_S,
    )
    for row in signalled:
        await notify(conn, "allocation", row["allocation_id"])
        await notify(conn, "deadline", row["allocation_id"])


@dataclass(frozen=True, slots=True)
class Size:
    """What an attempt asks of the cluster."""

    slots: int
    single_node: bool
    constraints: Constraints | None = None


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """The next attempt of a task."""

    allocation_id: str
    task_id: str
    run_id: int


async def request(conn: Connection, attempts: Sequence[AttemptRequest], size: Size, *, preemptible: bool) -> None:
    """Ask for slots, so many for each. A second open allocation of a task breaks a unique index."""
    if not attempts:
        return
    names, tasks = [each.allocation_id for each in attempts], [each.task_id for each in attempts]
    runs, constraints = [each.run_id for each in attempts], as_document(size.constraints)
    await conn.execute(Q.request, names, tasks, runs, size.slots, preemptible, size.single_node, constraints)
    await notify(conn, "scheduling", "")


async def acknowledge(conn: Connection, allocation_id: str) -> None:
    """The task says that it will leave because it was asked to. Idempotent."""
    await conn.fetchval(Q.acknowledge, allocation_id)


async def set_ready(conn: Connection, allocation_id: str) -> None:
    """All members have met. Idempotent."""
    if await conn.fetchval(Q.set_ready, allocation_id) is not None:
        await notify(conn, "allocation", allocation_id)


async def set_waiting(conn: Connection, allocation_id: str) -> None:
    """Its service waits for something, until it is ready. Idempotent."""
    if await conn.fetchval(Q.set_waiting, allocation_id) is not None:
        await notify(conn, "allocation", allocation_id)


async def set_proxy_address(conn: Connection, allocation_id: str, address: str) -> None:
    """Where the task says that it is reached. Idempotent."""
    if await conn.fetchval(Q.set_proxy_address, allocation_id, address) is not None:
        await notify(conn, "allocation", allocation_id)


@dataclass(frozen=True, slots=True)
class LimitedAttempt:
    """An attempt that holds its slots for a limited time."""

    allocation_id: str
    time_limit_s: float
    #: Seconds since it got them.
    held_s: float


async def limited(conn: Connection) -> list[LimitedAttempt]:
    """All of them."""
    return [LimitedAttempt(**row) for row in await conn.fetch(Q.limited)]


async def missed(conn: Connection, listened_s: float) -> list[LimitedAttempt]:
    """Attempts whose time to save was over before anybody listened, which is for so many seconds."""
    return [LimitedAttempt(**row) for row in await conn.fetch(Q.missed, listened_s)]


async def give_time_anew(conn: Connection, attempts: Sequence[LimitedAttempt]) -> None:
    """The time that they have for saving, from now on."""
    for each in attempts:
        await conn.execute(Q.lift_deadline, each.allocation_id, within_s(each.time_limit_s, each.time_limit_s))


async def end_in_time(conn: Connection, attempts: Sequence[LimitedAttempt]) -> None:
    """Ask attempts to save and leave before their time limits end; what was asked meanwhile leaves for that."""
    requests = [
        LeaveRequest(each.allocation_id, leave_reason(each.time_limit_s), within_s(each.time_limit_s, each.held_s))
        for each in attempts
    ]
    names = [each.allocation_id for each in attempts]
    await conn.fetch(Q.hold, names)
    await conn.execute(Q.are_over_time, names)
    await ask_to_leave(conn, requests)


async def overdue(conn: Connection) -> list[str]:
    """Allocations that were asked to leave and whose time is over."""
    return [row["allocation_id"] for row in await conn.fetch(Q.overdue)]


@dataclass(frozen=True, slots=True)
class Doubt:
    """An attempt of which a member failed while agents of others are not heard."""

    allocation_id: str
    task_id: str
    #: Of the member that failed.
    rank: int
    #: Agents, and the pools that they are in.
    unheard: tuple[str, ...]
    pools: tuple[str, ...]


async def in_doubt(conn: Connection, unheard_s: float, limit: int) -> list[Doubt]:
    """Attempts whose doubt was not noted yet; ``unheard_s``: for so long nothing came from an agent."""
    return [row_as(Doubt, row, unheard=tuple, pools=tuple) for row in await conn.fetch(Q.in_doubt, unheard_s, limit)]


async def note_doubts(conn: Connection, reasons: Mapping[str, str]) -> frozenset[str]:
    """Why it is not decided what the ends of attempts count for; those of which it was neither noted nor decided."""
    if not reasons:
        return frozenset()
    await conn.fetch(Q.hold, list(reasons))
    noted = await conn.fetch(Q.note_doubts, list(reasons), list(reasons.values()))
    for row in noted:
        await notify(conn, "allocation", row["allocation_id"])
    return frozenset(row["allocation_id"] for row in noted)


async def next_deadline_s(conn: Connection) -> float | None:
    """Seconds until the next deadline; None if none is set."""
    value: float | None = await conn.fetchval(Q.next_deadline)
    return value
