"""Where the members of an attempt meet: rows, so that any master can serve any member.

Rules: to arrive, or to bring something, twice is once; whoever waits is woken by ``allocation`` when another arrives or
anything happens to the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.listening import UNHEARD_S
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("allocations")


@dataclass(frozen=True, slots=True)
class BarrierMember:
    """One container of an attempt, as its peers need to know it."""

    container_id: str
    rank: int
    agent_id: str
    state: str
    address: str
    slots: int
    exit_reason: str | None
    arrived: bool
    allocation_state: str
    allocation_reason: str


async def arrive(conn: Connection, allocation_id: str, container_id: str) -> None:
    """A member is there; once all are, the attempt is ready. In a transaction. Raises NotFound."""
    await check_member(conn, allocation_id, container_id)
    await allocations.lock(conn, allocation_id)
    await conn.execute(Q.arrive, container_id, allocation_id)
    if all(member.arrived for member in await members(conn, allocation_id)):
        await allocations.set_ready(conn, allocation_id)
    await notify(conn, "allocation", allocation_id)


async def members(conn: Connection, allocation_id: str) -> list[BarrierMember]:
    """In the order of rank."""
    return [BarrierMember(**row) for row in await conn.fetch(Q.members, allocation_id)]


async def bring(conn: Connection, allocation_id: str, request_uuid: str, num_peers: int, data: JsonObject) -> None:
    """Bring something to a gathering of ``num_peers``. Raises NotNow once the attempt has ended. In a transaction."""
    state = await conn.fetchval(Q.lock_allocation, allocation_id)
    if state is None or state == "TERMINATED":
        raise NotNow("the attempt has ended: nobody else will come")
    await conn.execute(Q.bring, allocation_id, request_uuid, num_peers, data)
    if await gathered(conn, allocation_id, request_uuid, num_peers) is not None:
        await allocations.set_ready(conn, allocation_id)
    await notify(conn, "allocation", allocation_id)


async def gathered(conn: Connection, allocation_id: str, request_uuid: str, num_peers: int) -> list[JsonObject] | None:
    """What all of one's gathering brought, in the order of arrival; None while some are missing.

    An attempt may gather again and again: those who come are taken ``num_peers`` at a time. Raises InvalidInput when
    the members do not agree how many they are.
    """
    rows = await conn.fetch(Q.gathered, allocation_id)
    place = next((place for place, row in enumerate(rows) if row["request_uuid"] == request_uuid), None)
    if place is None:
        return None
    first = place - place % num_peers
    group = rows[first : first + num_peers]
    others = sorted({row["num_peers"] for row in group} - {num_peers})
    if others:
        raise InvalidInput(f"this member gathers {num_peers}, another one {others[0]}: all must name the same number")
    return [row["data"] for row in group] if len(group) == num_peers else None


async def arrived_at_gathering(conn: Connection, allocation_id: str, request_uuid: str, num_peers: int) -> int:
    """How many of one's gathering are there."""
    rows = await conn.fetch(Q.gathered, allocation_id)
    place = next((place for place, row in enumerate(rows) if row["request_uuid"] == request_uuid), len(rows))
    first = place - place % num_peers
    return len(rows[first : first + num_peers])


async def listens(conn: Connection, allocation_id: str) -> None:
    """The script wants to be told when it is to leave, and it lives. In a transaction."""
    row = await conn.fetchrow(Q.signal, allocation_id, UNHEARD_S)
    if row is not None and not row["listens"]:
        await conn.execute(Q.listens, allocation_id)
    if row is not None and row["unheard"]:
        await agents.tasks_heard(conn, allocation_id)


@dataclass(frozen=True, slots=True)
class PreemptionSignal:
    """What an attempt's script asks for all the time."""

    #: It was asked to leave.
    leave: bool
    #: An attempt that is not known has ended.
    ended: bool
    #: Its agent is not heard: who asks again shows that the task lives.
    unheard: bool


async def signal(conn: Connection, allocation_id: str) -> PreemptionSignal:
    """Whether the attempt was asked to leave, and how it stands."""
    row = await conn.fetchrow(Q.signal, allocation_id, UNHEARD_S)
    if row is None:
        return PreemptionSignal(leave=False, ended=True, unheard=False)
    return PreemptionSignal(
        leave=row["preemption"] != "NONE", ended=row["state"] == "TERMINATED", unheard=row["unheard"]
    )


async def put_accelerators(conn: Connection, allocation_id: str, container_id: str, data: JsonObject) -> None:
    """The devices of a member, as it sees them. Raises NotFound."""
    await check_member(conn, allocation_id, container_id)
    await conn.execute(Q.put_accelerators, allocation_id, container_id, data)


async def check_member(conn: Connection, allocation_id: str, container_id: str) -> None:
    """Raises NotFound for a container that is not a member of the attempt."""
    if not await conn.fetchval(Q.is_member, allocation_id, container_id):
        raise NotFound(f"container {container_id} not found among the members of {allocation_id}")
