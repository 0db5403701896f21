"""Rows of containers and the slots they hold; locked after their allocation.

Rules: a slot is free only when its container is reported gone; every change of a desired state raises its agent's
revision in the same transaction and is announced as ``agent``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.queue import usage

Q = load("allocations")
_AGENTS = load("agents")

#: The id in a wake-up of the loop `scheduling` where slots are free again, and nothing else has changed.
FREED = "freed"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A container's row: its machine, where it is, and the version that guards it."""

    container: Container
    agent_id: str
    rank: int
    slots: tuple[int, ...]
    version: int


async def lock_members(conn: Connection, allocation_id: str) -> tuple[MemberRow, ...]:
    """The members of an allocation in rank order, locked until the transaction ends."""
    return tuple(
        MemberRow(
            Container(
                row["container_id"],
                ContainerState(row["state"]),
                Desired(row["want"]),
                _ending(row["exit"]),
                row["daemon"],
            ),
            row["agent_id"],
            row["rank"],
            tuple(row["slots"]),
            row["version"],
        )
        for row in await conn.fetch(Q.lock_members, allocation_id)
    )


async def save(conn: Connection, before: MemberRow, after: Container, address: str = "") -> None:
    """Write what a member has become. Raises Stale. The caller announces changes of the desired state."""
    done = await conn.fetchval(
        Q.container_set_state,
        after.container_id,
        before.version,
        after.state.value,
        after.desired.value,
        None if after.ending is None else _document(after.ending),
        address,
        after.daemon,
    )
    if done is None:
        raise Stale
    if after.state is ContainerState.TERMINATED:
        await usage.end(conn, after.container_id)


async def create(
    conn: Connection, container_id: str, allocation_id: str, rank: int, agent_id: str, slots: list[int]
) -> None:
    """Place a member: its row, a row for each slot that it holds from now on, and one in the accounts."""
    await conn.execute(Q.create, container_id, allocation_id, rank, agent_id, slots)
    await usage.begin(conn, container_id)


async def gone(conn: Connection, container_id: str, agent_id: str) -> bool:
    """Its agent says that nothing of it is left: its slots are free. False if it is not so far, or was said before."""
    if await conn.fetchval(Q.gone, container_id, agent_id) is None:
        return False
    await notify(conn, "scheduling", FREED)
    return True


async def desired_state_changed(conn: Connection, agent_ids: Iterable[str]) -> None:
    """Raise the revision of these agents, and announce it. Sorted, so that two transactions cannot deadlock."""
    agents = sorted(set(agent_ids))
    if not agents:
        return
    await conn.execute(_AGENTS.raise_revision, agents)
    for agent_id in agents:
        await notify(conn, "agent", agent_id)


def _document(ending: Ending) -> JsonObject:
    return {
        "v": 1,
        "code": ending.code,
        "signal": ending.signal,
        "reason": ending.reason,
        "platform": ending.platform,
        "asked": ending.requested,
    }


def _ending(document: JsonObject | None) -> Ending | None:
    if document is None:
        return None
    code, signal = document.get("code"), document.get("signal")
    return Ending(
        code if isinstance(code, int) else None,
        signal if isinstance(signal, int) else None,
        str(document.get("reason") or ""),
        document.get("platform") is True,
        document.get("asked") is True,
    )
