"""Removals of files that the master cannot reach: delegated to agents, and assigned to a task on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.checkpoints.gc import KIND
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("checkpoints")


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """What the task that wrote the files ran with: a task with the same finds them in the same place."""

    pool: str
    #: Whose mapping to a user of the machines holds, before the owner's; None: the owner's does.
    workspace_id: int | None
    #: Sections of its configuration; None: it had none.
    environment: Json = None
    bind_mounts: Json = None


@dataclass(frozen=True, slots=True)
class UnassignedRemoval:
    """A delegated removal that no task has yet."""

    uuid: str
    globs: tuple[str, ...]
    #: As whom: whose task wrote the files.
    owner_id: int
    #: As reported, or as its experiment says; None: neither is known.
    storage: JsonObject | None
    experiment_id: int | None
    setup: TaskSetup


@dataclass(frozen=True, slots=True)
class AssignedRemoval:
    """A removal that a task has."""

    uuid: str
    unreported: bool
    reason: str
    tries: int
    failure: str
    #: The task that wrote the files.
    task_id: str


@dataclass(frozen=True, slots=True)
class OrphanedRemoval:
    """A removal whose task has ended without reporting it."""

    uuid: str
    by_task: str
    #: Why that task ended.
    exit_reason: str
    tries: int


async def delegate(conn: Connection, uuid: str, failure: str, *, untouched: bool) -> None:
    """Let a task do it; ``failure``: why the master cannot. ``untouched``: nothing of it was deleted yet."""
    await conn.execute(Q.delegate, uuid, failure, untouched)
    await notify(conn, KIND, "")


async def any_delegated(conn: Connection) -> bool:
    """Whether a task has a removal, or should have."""
    return bool(await conn.fetchval(Q.any_delegated))


async def unassigned(conn: Connection, limit: int) -> list[UnassignedRemoval]:
    """Those whose time has come, the oldest first; held."""
    rows = await conn.fetch(Q.unassigned, limit)
    held = {row["uuid"] for row in await conn.fetch(Q.hold_unassigned, [row["uuid"] for row in rows])}
    return [
        UnassignedRemoval(
            row["uuid"],
            tuple(row["globs"]),
            row["owner_id"],
            row["storage"],
            row["experiment_id"],
            TaskSetup(row["pool"], row["workspace_id"], row["environment"], row["bind_mounts"]),
        )
        for row in rows
        if row["uuid"] in held
    ]


async def tensorboards(conn: Connection, experiment_ids: Sequence[int]) -> list[str]:
    """Paths below the storage of what TensorBoard wrote for those of these that are being deleted."""
    return [row["path"] for row in await conn.fetch(Q.tensorboards, list(experiment_ids))]


async def assign(conn: Connection, uuids: Sequence[str], task_id: str) -> None:
    """Give them to a task."""
    await conn.execute(Q.assign, list(uuids), task_id)


async def assigned(conn: Connection, task_id: str, uuids: Sequence[str]) -> list[AssignedRemoval]:
    """Those of ``uuids`` that this task may report about, locked, and their checkpoints before them."""
    await conn.execute(Q.hold_checkpoints, list(uuids))
    return [AssignedRemoval(**row) for row in await conn.fetch(Q.assigned, task_id, list(uuids))]


async def orphaned(conn: Connection, limit: int) -> list[OrphanedRemoval]:
    """Removals whose task has ended without reporting them."""
    rows = await conn.fetch(Q.orphaned, limit)
    return [OrphanedRemoval(row["uuid"], row["by_task"], row["ended"] or "", row["tries"]) for row in rows]
