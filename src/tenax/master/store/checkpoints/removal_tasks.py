"""Removals that the master cannot reach: which a task on an agent has in hand, and what it told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.checkpoints.garbage import KIND
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("checkpoints")


@dataclass(frozen=True, slots=True)
class Around:
    """What was around a task that wrote files: where they are seen as it saw them."""

    pool: str
    #: Sections of its configuration; None: it had none.
    environment: Json = None
    bind_mounts: Json = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A removal that no task has in hand."""

    uuid: str
    globs: tuple[str, ...]
    #: As whom: whose task wrote the files.
    owner_id: int
    #: As reported, or as its experiment says; None: neither is known.
    storage: JsonObject | None
    experiment_id: int | None
    around: Around


@dataclass(frozen=True, slots=True)
class InHand:
    """A removal that a task has in hand."""

    uuid: str
    unreported: bool
    reason: str
    tries: int
    failure: str
    #: The task that wrote the files.
    task_id: str


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A removal whose task has ended without a word about it."""

    uuid: str
    by_task: str
    #: How that ended, in words.
    ended: str
    tries: int


async def send(conn: Connection, uuid: str, why: str, *, untouched: bool) -> None:
    """A task is to do it; ``why`` the master cannot. ``untouched``: nothing of it was deleted yet."""
    await conn.execute(Q.send_afar, uuid, why, untouched)
    await notify(conn, KIND, "")


async def any_there(conn: Connection) -> bool:
    """Whether a task has something in hand, or should have."""
    found: bool = await conn.fetchval(Q.any_afar)
    return found


async def wanted(conn: Connection, limit: int) -> list[Wanted]:
    """Those whose time has come, the oldest first."""
    rows = await conn.fetch(Q.afar, limit)
    return [
        Wanted(
            row["uuid"],
            tuple(row["globs"]),
            row["owner_id"],
            row["storage"],
            row["experiment_id"],
            Around(row["pool"], row["environment"], row["bind_mounts"]),
        )
        for row in rows
    ]


async def tensorboards(conn: Connection, experiment_ids: Sequence[int]) -> list[str]:
    """Paths below the storage of what TensorBoard wrote for those of these that are being deleted."""
    return [row["path"] for row in await conn.fetch(Q.tensorboards, list(experiment_ids))]


async def hand_over(conn: Connection, uuids: Sequence[str], task_id: str) -> None:
    """A task has them in hand."""
    await conn.execute(Q.hand_over, list(uuids), task_id)


async def in_hand(conn: Connection, task_id: str, uuids: Sequence[str]) -> list[InHand]:
    """Those of ``uuids`` that this task may report about, locked."""
    return [InHand(**row) for row in await conn.fetch(Q.in_hand, task_id, list(uuids))]


async def left_behind(conn: Connection, limit: int) -> list[LeftBehind]:
    """By tasks that have ended."""
    rows = await conn.fetch(Q.left_behind, limit)
    return [LeftBehind(row["uuid"], row["by_task"], row["ended"] or "", row["tries"]) for row in rows]
