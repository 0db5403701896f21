"""Rows of allocations: placement attempts of tasks, locked after their trial.

Rules: one open allocation per task (a unique index says it too); what a task was asked and has acknowledged is only
ever raised; a change of what an agent should run raises that agent's revision in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify

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
    ready: bool


@dataclass(frozen=True, slots=True)
class AllocationOwner:
    """Whose an allocation is."""

    allocation_id: str
    task_id: str
    trial_id: int | None
    experiment_id: int | None


async def owner(conn: Connection, allocation_id: str) -> AllocationOwner | None:
    """Whose this allocation is; None if there is no such allocation."""
    row = await conn.fetchrow(Q.owner, allocation_id)
    return (
        None if row is None else AllocationOwner(allocation_id, row["task_id"], row["trial_id"], row["experiment_id"])
    )


async def owner_of_container(
    conn: Connection, container_id: str, agent_id: str | None = None
) -> AllocationOwner | None:
    """Whose allocation this container is a member of; None for one that is not known (as one of this agent)."""
    row = await conn.fetchrow(Q.owner_of_container, container_id, agent_id)
    if row is None:
        return None
    return AllocationOwner(row["allocation_id"], row["task_id"], row["trial_id"], row["experiment_id"])


async def lock(conn: Connection, allocation_id: str) -> AllocationRow:
    """The allocation, locked until the transaction ends. Raises NotFound."""
    row = await existing(conn, f"allocation {allocation_id}", Q.lock, allocation_id)
    return row_as(AllocationRow, row, state=AllocationState, preemption=Preemption)


async def set_state(
    conn: Connection, allocation: AllocationRow, state: AllocationState, *, reason: str = "", ready: bool = False
) -> None:
    """Where a locked allocation is now. Raises Stale."""
    done = await conn.fetchval(
        Q.set_state, allocation.allocation_id, allocation.version, state.value, reason, ready or allocation.ready
    )
    if done is None:
        raise Stale
    if state is AllocationState.TERMINATED:
        await conn.execute(Q.drop_task_session, allocation.allocation_id)
    await notify(conn, "allocation", allocation.allocation_id)


async def withdraw(conn: Connection, allocation_id: str, reason: str) -> bool:
    """Take back a request that has not been placed; False if it has.

    The reason that it waited for is dropped by the scheduling loop, which alone writes those: many at a time, in an
    order of its own.
    """
    if await conn.fetchval(Q.withdraw, allocation_id, reason) is None:
        return False
    await notify(conn, "scheduling", "")
    return True


async def ask_to_leave(conn: Connection, allocation_id: str, reason: str, within_s: float) -> bool:
    """Signal the task to save and leave; False if it has ended, or was asked before and has no more time than this."""
    if await conn.fetchval(Q.ask_to_leave, allocation_id, reason, within_s) is None:
        return False
    await notify(conn, "allocation", allocation_id)
    await notify(conn, "deadline", allocation_id)
    return True


async def preempt(conn: Connection, allocation_id: str, reason: str, usual_s: float) -> bool:
    """As `ask_to_leave`, with the time that the task's own ``preemption_timeout`` gives it.

    ``usual_s``: of a trial whose configuration says nothing. What has not come up yet has nothing to save, and no time.
    """
    within_s: float | None = await conn.fetchval(Q.time_to_leave, allocation_id, usual_s, TASK_PREEMPTION_TIMEOUT_S)
    return within_s is not None and await ask_to_leave(conn, allocation_id, reason, within_s)


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


async def overdue(conn: Connection) -> list[str]:
    """Allocations that were asked to leave and whose time is over."""
    return [row["allocation_id"] for row in await conn.fetch(Q.overdue)]


async def next_deadline_s(conn: Connection) -> float | None:
    """Seconds until the next deadline; None if none is set."""
    value: float | None = await conn.fetchval(Q.next_deadline)
    return value
