"""Rows of containers and the slots they hold; locked after their allocation.

Rules: a slot is free only when its container is reported gone; every change of a desired state raises its agent's
revision in the same transaction, as its last statement, and is announced as ``agent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.queue import usage

Q = load("allocations")
_DATABASE = load("database")

#: Begins the id in a wake-up of the loop `scheduling` where slots are free again, and nothing else has changed; whose
#: they are follows.
FREED = "freed-"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A container's row: its machine, where it is, and the version that guards it."""

    container: Container
    allocation_id: str
    agent_id: str
    rank: int
    slots: tuple[int, ...]
    version: int
    #: Seconds on the database's clock.
    ended_at: float | None


async def lock_members(conn: Connection, allocation_ids: Sequence[str]) -> dict[str, tuple[MemberRow, ...]]:
    """The members of each of these allocations in rank order, locked until the transaction ends."""
    members: dict[str, tuple[MemberRow, ...]] = dict.fromkeys(allocation_ids, ())
    for row in await conn.fetch(Q.lock_members, list(allocation_ids)):
        container = Container(
            row["container_id"], ContainerState(row["state"]), Desired(row["want"]), _ending(row["exit"]), row["daemon"]
        )
        name, slots = row["allocation_id"], tuple(row["slots"])
        member = MemberRow(container, name, row["agent_id"], row["rank"], slots, row["version"], row["ended_at"])
        members[name] += (member,)
    return members


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt of which a member has failed; it may not have ended."""

    allocation_id: str
    task_id: str
    #: In rank order: all of an attempt that is open, those that failed of one from before.
    members: tuple[str, ...]


async def failed_attempts(
    conn: Connection, container_ids: Sequence[str], failing: Sequence[str] = ()
) -> list[FailedAttempt]:
    """Of the open attempts of these containers: those of which a member has failed, or is ``failing``."""
    rows = await conn.fetch(Q.failed_attempts, list(container_ids), list(failing))
    return [FailedAttempt(row["allocation_id"], row["task_id"], tuple(row["members"])) for row in rows]


async def failed_before(conn: Connection, allocation_ids: Sequence[str]) -> dict[str, FailedAttempt]:
    """By attempt of a trial: the newest run before it that failed, too, at the same step, none having saved since."""
    rows = await conn.fetch(Q.failed_before, list(allocation_ids))
    return {row["attempt"]: FailedAttempt(row["allocation_id"], row["task_id"], tuple(row["members"])) for row in rows}


async def last_failed(conn: Connection, trial_id: int) -> list[str]:
    """Of the newest attempt of a trial that came to have members those that failed; all of them where none has."""
    return [row["container_id"] for row in await conn.fetch(Q.last_failed, trial_id)]


@dataclass(frozen=True, slots=True)
class MemberChange:
    """What a member was, and has become."""

    before: MemberRow
    after: Container
    #: As its agent has just said; empty for what it said before.
    address: str = ""


async def save(conn: Connection, changes: Sequence[MemberChange]) -> None:
    """Write what members have become. Raises Stale. The caller announces changes of the desired state."""
    if not changes:
        return
    written = await conn.fetch(
        Q.set_states_of_members,
        [change.after.container_id for change in changes],
        [change.before.version for change in changes],
        [change.after.state.value for change in changes],
        [change.after.desired.value for change in changes],
        [None if change.after.ending is None else _document(change.after.ending) for change in changes],
        [change.address for change in changes],
        [change.after.daemon for change in changes],
    )
    if len(written) < len(changes):
        raise Stale
    await usage.end(
        conn, [each.after.container_id for each in changes if each.after.state is ContainerState.TERMINATED]
    )


@dataclass(frozen=True, slots=True)
class NewMember:
    """A member that is placed."""

    container_id: str
    rank: int
    agent_id: str
    slots: Sequence[int]


async def create(conn: Connection, allocation_id: str, members: Sequence[NewMember]) -> None:
    """Place members: their rows, a row for each slot that they hold from now on, and one each in the accounts."""
    names = [member.container_id for member in members]
    ranks, agents = [member.rank for member in members], [member.agent_id for member in members]
    # As text: an array of arrays has only rows of one length.
    slots = [f"{{{','.join(map(str, member.slots))}}}" for member in members]
    await conn.execute(Q.create, allocation_id, names, ranks, agents, slots)
    await usage.begin(conn, names)


async def gone(conn: Connection, container_ids: Sequence[str], agent_id: str) -> None:
    """Their agent says that nothing of them is left: their slots are free. Not of what has not ended."""
    if await conn.fetch(Q.gone, list(container_ids), agent_id):
        await notify(conn, "scheduling", f"{FREED}{agent_id}")


async def desired_state_changed(conn: Connection, agent_ids: Iterable[str]) -> None:
    """Raise the revision of these agents, and announce it: as the last thing before the commit."""
    agents = sorted(set(agent_ids))
    if not agents:
        return
    if not conn.raise_with_commit(agents):
        await conn.execute(_DATABASE.raise_revisions, agents)
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
        "disk_full": ending.disk_full,
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
        document.get("disk_full") is True,
    )
