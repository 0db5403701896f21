"""What an experiment leaves behind when it is deleted, and the end of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.store.checkpoints import gc
from tenax.master.store.checkpoints import rows as checkpoint_rows
from tenax.master.store.database.queries import load
from tenax.master.store.logs import rows as logs
from tenax.master.store.metrics import rows as metrics
from tenax.master.store.tasks import contexts
from tenax.master.store.users import rows as users
from tenax.master.store.users.rows import FileOwner

Q = load("experiments")


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A checkpoint, or an upload that never became one, whose files may be there."""

    uuid: str
    #: As reported; None: as the experiment says.
    storage: JsonObject | None
    #: It never became a checkpoint.
    unreported: bool = False


@dataclass(frozen=True, slots=True)
class Remains:
    """What has to go, or why it cannot."""

    config: JsonObject
    cluster_id: str
    checkpoints: tuple[CheckpointFiles, ...]
    #: Something of it is still on a machine: look again later.
    held: bool
    #: What forbids it, as a sentence.
    obstacle: str | None
    #: It was trained outside of this cluster, on a machine that nobody here may reach.
    unmanaged: bool = False
    #: Something of it was placed on an agent.
    ran: bool = False
    #: Whose its files are on disk; None: that is not asked.
    owner: FileOwner | None = None


async def requested(conn: Connection) -> list[int]:
    """Experiments whose deletion was requested."""
    return [row["id"] for row in await conn.fetch(Q.deletion_requested)]


async def remains(conn: Connection, experiment_id: int) -> Remains | None:
    """What is left of an experiment; None for one that is gone."""
    row = await conn.fetchrow(Q.documents, experiment_id)
    if row is None:
        return None
    needed = await conn.fetchrow(Q.needed_elsewhere, experiment_id)
    obstacle = await checkpoint_rows.registered_of_experiment(conn, experiment_id)
    if obstacle is None and needed is not None:
        obstacle = (
            f"trial {needed['trial_id']} of experiment {needed['experiment_id']} starts from its checkpoint "
            f"{needed['uuid']}: delete it again once that trial has ended"
        )
    stored = [
        CheckpointFiles(checkpoint["uuid"], checkpoint["storage"])
        for checkpoint in await conn.fetch(Q.checkpoints, experiment_id)
    ]
    stored += [CheckpointFiles(uuid, place, unreported=True) for uuid, place in await gc.uploads(conn, experiment_id)]
    held = bool(await conn.fetchval(Q.held, experiment_id))
    owner = await users.file_owner(conn, row["owner_id"], elsewhere=row["unmanaged"])
    return Remains(row["config"], row["cluster_id"], tuple(stored), held, obstacle, row["unmanaged"], row["ran"], owner)


async def set_reason(conn: Connection, experiment_id: int, reason: str) -> None:
    """Why an experiment that is being deleted is still there."""
    await conn.execute(Q.set_deletion_reason, experiment_id, reason)


async def hold_removals(conn: Connection, experiment_id: int) -> None:
    """Lock the checkpoints of an experiment and then their removals, as everyone does who changes several."""
    await conn.execute(Q.hold_checkpoints, experiment_id)
    await conn.execute(Q.hold_removals, experiment_id)


async def delete_rows(conn: Connection, experiment_id: int) -> None:
    """All rows of an experiment that is DELETING; nothing if it is not. In a transaction."""
    row = await conn.fetchrow(Q.documents, experiment_id)
    if row is None:
        return
    if await conn.fetchval(Q.lock_deleting, experiment_id) is None:
        return
    await hold_removals(conn, experiment_id)
    trials = await conn.fetch(Q.deletion_trials, experiment_id)
    # Output first: in which months it is goes with its tasks, and those with the experiment.
    await logs.delete_tasks(conn, [task_id for trial in trials for task_id in trial["task_ids"]])
    await conn.execute(Q.delete_experiment, experiment_id)
    await metrics.delete_trials(conn, [trial["id"] for trial in trials])
    await conn.execute(Q.delete_job, row["job_id"])
    if row["context_hash"] is not None:
        await contexts.delete_unused(conn, row["context_hash"])
