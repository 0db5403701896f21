"""The scheduler's snapshots, loaded from rows; and its placements and reasons, written.

Rules: a placement is one transaction: the allocation, its containers, the slots they hold, the credentials of the task,
the revision of the agents. A slot that is in use breaks a primary key, and with it the placement.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asyncpg import Connection, Record
from asyncpg.exceptions import ForeignKeyViolationError, UniqueViolationError

from tenax.errors import Stale
from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.master.store.agents import rows as agent_rows
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.containers import NewMember
from tenax.master.store.database.connection import now
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.quotas import rows as quotas
from tenax.scheduler.constraints import constraints_of
from tenax.scheduler.devices import DeviceKind, SlotDevice
from tenax.scheduler.quotas import LimitBook, with_quotas
from tenax.scheduler.reasons import is_for_another
from tenax.scheduler.registry import can_preempt, counts_attained
from tenax.scheduler.snapshot import (
    AgentState,
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolRules,
    PoolSnapshot,
    SlotRequest,
)

Q = load("allocations")
_AGENTS = load("agents")


@dataclass(frozen=True, slots=True)
class TaskCredentials:
    """Hashes of what a task authenticates with."""

    allocation_token: bytes
    task_session: bytes


async def snapshots(
    conn: Connection,
    rules: Mapping[str, PoolRules],
    aux_places: Mapping[str, int],
    attained: Mapping[JobId, float] | None = None,
) -> list[PoolSnapshot]:
    """Every pool with an agent or a request, as the scheduler sees it, by what quotas say now.

    ``attained``: what jobs have held, where it was counted a moment ago.
    """
    at = (await now(conn)).timestamp()
    held = await conn.fetch(Q.placements)
    agents = _agents(await conn.fetch(_AGENTS.for_scheduling), held, aux_places)
    members: dict[str, list[PlacedMember]] = defaultdict(list)
    for row in held:
        slots = tuple(SlotId(slot) for slot in row["slots"])
        members[row["allocation_id"]].append(PlacedMember(AgentId(row["agent_id"]), slots))
    jobs: dict[str, dict[JobId, PoolJob]] = defaultdict(dict)
    requests: dict[str, list[SlotRequest]] = defaultdict(list)
    if attained is None:
        attained = await held_so_far(conn, rules)
    for row in await conn.fetch(Q.open_requests):
        pool = row["pool"]
        jobs[pool][JobId(row["job_id"])] = PoolJob(
            JobId(row["job_id"]),
            row["priority"],
            float(row["queue_position"]),
            row["max_slots"],
            row["weight"],
            asks_more=row["asks_more"],
            attained=attained.get(JobId(row["job_id"]), 0.0),
        )
        request = _request(row, tuple(members.get(row["allocation_id"], ())))
        # Each run of a limited time takes a turn of its own, where places are kept; elsewhere one whose time was over.
        preempts = can_preempt(rules.get(pool, PoolRules()))
        again = row["was_over_time"] or (row["has_run"] and request.time_limit is not None and not preempts)
        requests[pool].append(replace(request, again=again) if again else request)
    made = [
        PoolSnapshot(
            PoolName(pool),
            tuple(agents.get(pool, ())),
            jobs.get(pool, {}),
            tuple(requests.get(pool, ())),
            rules.get(pool, PoolRules()),
            at=at,
        )
        for pool in sorted({*agents, *requests})
    ]
    its = await quotas.rules_of_jobs(conn)
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
    return {AllocationId(row["allocation_id"]): row["reason"] for row in await conn.fetch(Q.waits)}


async def write_waits(conn: Connection, reasons: Mapping[AllocationId, str]) -> None:
    """Why each request waits; written only where it changed."""
    written = await waits(conn)
    changed = {name: reason for name, reason in reasons.items() if written.get(name) != reason}
    if changed:
        await conn.execute(Q.put_waits, list(changed), list(changed.values()))
    placed = [allocation_id for allocation_id in written if allocation_id not in reasons]
    if placed:
        await conn.execute(Q.drop_wait, placed)
    if changed or placed:
        await notify(conn, "queue", "")


def _agents(rows: list[Record], held: list[Record], aux_places: Mapping[str, int]) -> dict[str, list[PoolAgent]]:
    in_use: dict[str, set[SlotId]] = defaultdict(set)
    aux: dict[str, int] = defaultdict(int)
    for row in held:
        in_use[row["agent_id"]].update(SlotId(slot) for slot in row["slots"])
        aux[row["agent_id"]] += not row["slots"]
    pools: dict[str, list[PoolAgent]] = defaultdict(list)
    for row in rows:
        slots = row["slots"]
        name = row["agent_id"]
        pools[row["pool"]].append(
            PoolAgent(
                AgentId(name),
                tuple(SlotId(slot["id"]) for slot in slots),
                frozenset(in_use[name]),
                aux_places.get(row["pool"], 100),
                aux[name],
                _state(row),
                DeviceKind(slots[0]["kind"]) if slots else DeviceKind.CPU,
                row["labels"] or {},
                {SlotId(slot["id"]): SlotDevice(slot["name"], slot["memory"]) for slot in slots},
            )
        )
    return pools


def _state(row: Record) -> AgentState:
    """A disabled agent is not waited for, whether it is connected or not."""
    state = AgentState(row["state"])
    return state if row["connected"] or state is AgentState.DISABLED else AgentState.AWAY


def _request(row: Record, members: tuple[PlacedMember, ...]) -> SlotRequest:
    pending = row["state"] == "PENDING"
    releasing = row["state"] == "TERMINATING" or row["preemption"] != "NONE"
    return SlotRequest(
        AllocationId(row["allocation_id"]),
        JobId(row["job_id"]),
        row["slots"],
        row["requested_at"],
        row["preemptible"],
        row["single_node"],
        frozenset(AgentId(name) for name in row["blocked_agents"]),
        constraints_of(row["constraints"]),
        row["time_limit_s"],
        Phase.PENDING if pending else Phase.RELEASING if releasing else Phase.PLACED,
        members,
        ends_at=row["ends_at"],
        left_before=is_for_another(row["left_because"]),
        waited=row["waited_s"] or 0.0,
    )
