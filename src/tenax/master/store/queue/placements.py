"""The scheduler's snapshots, as rows and quotas say; and its placements and reasons, written.

Rules: a placement is one transaction: the allocation, its containers, the slots they hold, the credentials of the task,
the revision of the agents. A slot that is in use breaks a primary key, and with it the placement.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record
from asyncpg.exceptions import ForeignKeyViolationError, UniqueViolationError

from tenax.errors import Stale
from tenax.ids import AllocationId, JobId
from tenax.master.store.agents import rows as agent_rows
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.containers import NewMember
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.queue.cluster_cache import ClusterCache, read_all
from tenax.master.store.quotas import rows as quotas
from tenax.scheduler.quotas import LimitBook, QuotaRules, with_quotas
from tenax.scheduler.registry import counts_attained
from tenax.scheduler.snapshot import PlacedMember, PoolAgent, PoolRules, PoolSnapshot

Q = load("allocations")


@dataclass(frozen=True, slots=True)
class TaskCredentials:
    """Hashes of what a task authenticates with."""

    allocation_token: bytes
    task_session: bytes


async def snapshots(
    conn: Connection,
    rules: Mapping[str, PoolRules],
    aux_places: Mapping[str, int],
    prospects: Mapping[str, Sequence[PoolAgent]] | None = None,
) -> list[PoolSnapshot]:
    """Every pool with an agent or a request, as the scheduler sees it, by what quotas say now.

    ``prospects``: as `ClusterCache` takes them.
    """
    cache = ClusterCache(rules, aux_places, prospects)
    cache.take(await read_all(conn))
    return by_quotas(cache.snapshots(await held_so_far(conn, rules)), await quotas.rules_of_jobs(conn))


def by_quotas(made: list[PoolSnapshot], its: QuotaRules | None) -> list[PoolSnapshot]:
    """Pools with what quotas say of their jobs; None: there are no quotas."""
    if its is None:
        return made
    bound = [with_quotas(snapshot, its) for snapshot in made]
    book = LimitBook(bound)
    return [book.with_elsewhere(snapshot) for snapshot in bound]


async def held_so_far(conn: Connection, rules: Mapping[str, PoolRules]) -> dict[JobId, float]:
    """Slot seconds of the open jobs in the pools whose policy asks for it; all their attempts are gone through."""
    counting = [pool for pool, its in rules.items() if counts_attained(its.policy)]
    rows = await conn.fetch(Q.attained, counting) if counting else []
    return {JobId(row["job_id"]): row["slot_seconds"] for row in rows}


async def place(
    conn: Connection, allocation_id: AllocationId, members: Sequence[PlacedMember], credentials: TaskCredentials
) -> float:
    """Place a pending allocation; returns for how many seconds it waited.

    Raises Stale where it is not pending any more, or a slot was taken or closed.
    """
    row = await conn.fetchrow(Q.place, allocation_id)
    if row is None:
        raise Stale
    try:
        new = [NewMember(str(uuid.uuid4()), rank, each.agent_id, each.slots) for rank, each in enumerate(members)]
        await containers.create(conn, allocation_id, new)
    except (UniqueViolationError, ForeignKeyViolationError) as error:
        raise Stale from error
    await conn.execute(Q.put_credentials, credentials.allocation_token, credentials.task_session, allocation_id)
    await containers.desired_state_changed(conn, (member.agent_id for member in members))
    await agent_rows.check_open(conn, allocation_id, (member.agent_id for member in members))
    await notify(conn, "allocation", allocation_id)
    if row["time_limit_s"] is not None:
        await notify(conn, "deadline", allocation_id)
    waited_s: float = row["waited_s"]
    return waited_s


async def any_waits(conn: Connection) -> bool:
    """Whether a request waits, or a reason is written of one."""
    return bool(await conn.fetchval(Q.any_waits))


async def waits(conn: Connection) -> dict[AllocationId, str]:
    """Why each request waits, as it was last written."""
    return {AllocationId(row["allocation_id"]): row["reason"] for row in await wait_rows(conn)}


async def wait_rows(conn: Connection) -> list[Record]:
    """``allocation_id`` and ``reason`` of each request that waits."""
    rows: list[Record] = await conn.fetch(Q.waits)
    return rows


async def write_waits(
    conn: Connection, reasons: Mapping[AllocationId, str], over: Sequence[AllocationId] = ()
) -> set[AllocationId]:
    """Why these wait, and ``over``: what waits no more. Those of which it was written, since they still wait."""
    if over:
        await conn.execute(Q.drop_wait, list(over))
    rows = await conn.fetch(Q.put_waits, list(reasons), list(reasons.values())) if reasons else []
    if over or rows:
        await notify(conn, "queue", "")
    return {AllocationId(row["allocation_id"]) for row in rows}
