"""What is done to runs one by one: archived, moved with their experiment, deleted with all that they left.

Rules: the caller holds the lock of the run's experiment; a run goes only after its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.master.store.experiments.deletion import CheckpointFiles
from tenax.master.store.logs import rows as logs
from tenax.master.store.metrics import rows as metrics

Q = load("runs")


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a run that is to go has left, or why it cannot go."""

    checkpoints: tuple[CheckpointFiles, ...]
    #: What forbids it, as a sentence; empty for nothing.
    obstacle: str


async def set_archived(conn: Connection, trial_id: int, archived: bool) -> None:
    """Hide it from lists, or show it again."""
    await conn.execute(Q.set_archived, trial_id, archived)


async def leftover(conn: Connection, trial_id: int) -> Leftover:
    """What has to go with a run that has ended."""
    rows = await conn.fetch(Q.checkpoints, trial_id)
    uploads = await conn.fetch(Q.uploads, trial_id)
    stored = (
        *(CheckpointFiles(row["uuid"], row["storage"]) for row in rows),
        *(CheckpointFiles(row["uuid"], row["storage"], unreported=True) for row in uploads),
    )
    if await conn.fetchval(Q.held, trial_id):
        return Leftover(stored, "Its last processes are still on a machine: try again in a moment.")
    registered = next((row["uuid"] for row in rows if row["registered"]), None)
    if registered is not None:
        return Leftover(stored, f"Its checkpoint {registered} is in the model registry: delete that version first.")
    needed = await conn.fetchval(Q.needed_by, trial_id)
    if needed is not None:
        return Leftover(stored, f"Trial {needed} starts from its checkpoint: end that one first.")
    return Leftover(stored, "")


async def delete(conn: Connection, trial_id: int) -> None:
    """All rows of a run. In a transaction."""
    await metrics.delete_trials(conn, [trial_id])
    await logs.delete_tasks(conn, [row["task_id"] for row in await conn.fetch(Q.tasks, trial_id)])
    await conn.execute(Q.delete, trial_id)


async def of_experiments(conn: Connection, experiment_ids: Sequence[int]) -> list[int]:
    """All runs of these experiments."""
    return [row["id"] for row in await conn.fetch(Q.of_experiments, list(experiment_ids))]
