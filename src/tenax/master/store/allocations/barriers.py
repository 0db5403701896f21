"""Where the members of an attempt meet: rows, so that any master can serve any member.

Rules: to arrive, or to bring something, twice is once; whoever waits is woken by ``allocation`` when another arrives or
anything happens to the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from asyncpg import Connection

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.listening import UNHEARD_S
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("allocations")

#: What one member brings, and what all of one gathering bring together, in bytes of JSON.
_MAX_MEMBER_BYTES, _MAX_GATHERING_BYTES = 1 << 20, 8 << 20
#: Complete gatherings of an attempt that are kept, for members whose answer was lost.
_MAX_KEPT = 4


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
    """Bring something to a gathering of ``num_peers``. In a transaction.

    Raises InvalidInput for what is too large, or where the members do not agree how many they are; NotNow once the
    attempt has ended.
    """
    size, most = len(msgspec.json.encode(data)), min(_MAX_MEMBER_BYTES, _MAX_GATHERING_BYTES // num_peers)
    if size > most:
        raise InvalidInput(
            f"a member brings {size} bytes to a gathering of {num_peers}, and at most {most} are taken: exchange what "
            "is large between the members, or over the checkpoint storage"
        )
    state = await conn.fetchval(Q.lock_allocation, allocation_id)
    if state is None or state == "TERMINATED":
        raise NotNow("the attempt has ended: nobody else will come")
    before = await _gatherings(conn, allocation_id)
    joined = next((each for each in before if request_uuid in each.requests), None)
    if joined is None and before and not before[-1].is_complete:
        joined = before[-1]
    if joined is not None and joined.num_peers != num_peers:
        other = joined.num_peers
        raise InvalidInput(f"this member gathers {num_peers}, another one {other}: all must name the same number")
    await conn.execute(Q.bring, allocation_id, request_uuid, num_peers, data)
    gatherings = await _gatherings(conn, allocation_id)
    complete = [each for each in gatherings if each.is_complete]
    if any(request_uuid in each.requests for each in complete):
        await allocations.set_ready(conn, allocation_id)
    for old in complete[:-_MAX_KEPT]:
        await conn.execute(Q.drop_gathering, allocation_id, old.requests)
    await notify(conn, "allocation", allocation_id)


async def gathered(conn: Connection, allocation_id: str, request_uuid: str) -> list[str] | None:
    """What all of one's gathering brought, each as the text of its JSON, in the order of arrival; None while some miss.

    An attempt may gather again and again: those who come are taken ``num_peers`` at a time. Who begins the next
    gathering has the answer of the one before; so the last `_MAX_KEPT` are kept, for whoever asks again. Raises NotNow
    for one that is not kept any more.
    """
    own = await _own_gathering(conn, allocation_id, request_uuid)
    if own is None:
        raise NotNow(f"that gathering is over, and so are {_MAX_KEPT} after it: gather again with a new requestUuid")
    if not own.is_complete:
        return None
    return [row["data"] for row in await conn.fetch(Q.gathered, allocation_id, own.requests)]


async def leave(conn: Connection, allocation_id: str, request_uuid: str) -> int:
    """Wait no longer in a gathering: how many were there. In a transaction.

    Who has left is not counted any more, or it would meet itself when it comes again. Nobody leaves a complete one.
    """
    await conn.fetchval(Q.lock_allocation, allocation_id)
    own = await _own_gathering(conn, allocation_id, request_uuid)
    if own is None:
        return 0
    if not own.is_complete:
        await conn.execute(Q.drop_gathering, allocation_id, [request_uuid])
    return len(own.requests)


@dataclass(slots=True)
class _Gathering:
    """Those who came to one, in the order of arrival."""

    num_peers: int
    requests: list[str]

    @property
    def is_complete(self) -> bool:
        return len(self.requests) >= self.num_peers


async def _gatherings(conn: Connection, allocation_id: str) -> list[_Gathering]:
    """Those that are kept, the oldest first; the last may be incomplete. Reads nothing of what was brought."""
    gatherings: list[_Gathering] = []
    for row in await conn.fetch(Q.gatherers, allocation_id):
        if not gatherings or gatherings[-1].is_complete:
            gatherings.append(_Gathering(row["num_peers"], []))
        gatherings[-1].requests.append(row["request_uuid"])
    return gatherings


async def _own_gathering(conn: Connection, allocation_id: str, request_uuid: str) -> _Gathering | None:
    return next((each for each in await _gatherings(conn, allocation_id) if request_uuid in each.requests), None)


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
