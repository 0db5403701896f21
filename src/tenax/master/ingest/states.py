"""What a task reports besides metrics: one function per kind, for the spool and for Determined's own routes alike.

Rules:
- Whoever speaks is the attempt of the token. What an attempt that is not its trial's current one says changes no state;
  its checkpoints are kept, superseded.
- Each may be said twice and has then happened once.
Each runs inside the caller's transaction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from asyncpg import Connection

from tenax.errors import Forbidden, InvalidInput, NotNow
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.checkpoints import gc
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.rows import CheckpointRow, Reporter
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import progress as experiment_progress
from tenax.master.store.experiments import unmanaged
from tenax.master.store.trials import rows as trials
from tenax.master.store.users.sessions import TaskOf
from tenax.storage.port import claimed_id, is_claimed

#: Keys of a checkpoint storage that are credentials or policies, and not where it is.
_NOT_THE_PLACE = re.compile(r"^save_|secret|password|key_id$|access_key|connection_string|credential|token")
#: Of what is said of a hang.
_MAX_SENTENCE = 4000
_INVALID_HP = "EXITED_REASON_INVALID_HP"


async def run_started(conn: Connection, task: TaskOf, checkpoint_storage: Mapping[str, Json] | None) -> int | None:
    """A run has begun; returns the number of its checkpoint storage, the same for the same place."""
    if checkpoint_storage is None:
        return None
    place: JsonObject = {name: value for name, value in checkpoint_storage.items() if not _NOT_THE_PLACE.search(name)}
    return await checkpoints.storage_backend(conn, place)


async def hparams_declared(conn: Connection, task: TaskOf, hparams: JsonObject) -> None:
    """The hyperparameters that a script outside of the cluster trains with; those of a search are the search's.

    Raises InvalidInput.
    """
    if task.trial_id is not None and not task.allocation_id:
        await unmanaged.set_hparams(conn, task.trial_id, task.run_id, hparams)


async def progress_reported(conn: Connection, task: TaskOf, progress: float) -> None:
    """How far the script says it is. Raises InvalidInput outside 0..1."""
    if not 0.0 <= progress <= 1.0:
        raise InvalidInput(f"progress is {progress}, and must be between 0 and 1")
    if task.trial_id is not None:
        await trials.set_progress(conn, task.trial_id, task.run_id, progress)
    if task.experiment_id is not None:
        await experiment_progress.trial_reported(conn, task.experiment_id)


async def runner_state_reported(conn: Connection, task: TaskOf, state: str) -> None:
    """What the script is doing: "training", "validating", any word."""
    if task.trial_id is not None:
        await trials.set_runner_state(conn, task.trial_id, task.run_id, state[:200])


async def hang_reported(conn: Connection, task: TaskOf, sentence: str, ends: bool) -> None:
    """Ranks stand still, as the sentence says, or do no longer; ``ends``: the task ends itself for it."""
    if task.trial_id is not None:
        clean = sentence.replace("\x00", "")[:_MAX_SENTENCE]
        await trials.set_hang(conn, task.trial_id, task.run_id, clean, ends)


async def checkpoint_reported(conn: Connection, task: TaskOf, report: checkpoints.CheckpointReport) -> None:
    """A checkpoint is complete. Raises InvalidInput, Forbidden (another uploads it), NotNow (another's, or deleted)."""
    reporter = Reporter(task.task_id, task.allocation_id or None, task.trial_id, task.run_id if task.trial_id else None)
    _check_claim(report.uuid, report.claim)
    upload_s = await gc.upload_ends(conn, report.uuid, task.task_id)
    await checkpoints.upsert(conn, reporter, report, upload_s)
    if task.experiment_id is not None:
        await gc.mark(conn, task.experiment_id)


async def upload_announced(
    conn: Connection, task: TaskOf, uuid: str, place: Mapping[str, Json], claim: str = ""
) -> None:
    """Files of a checkpoint to be are about to be written: if it never comes to be, they can be found.

    Raises InvalidInput, Forbidden (the uuid is another task's).
    """
    _check_claim(uuid, claim)
    if not task.allocation_id:
        raise Forbidden("what runs elsewhere announces no uploads: nobody here could delete what is left of one")
    storage_id = await run_started(conn, task, place)
    assert storage_id is not None
    await gc.announce(conn, uuid, task.task_id, task.allocation_id, storage_id)


def _check_claim(uuid: str, claim: str) -> None:
    if is_claimed(uuid) and claimed_id(claim) != uuid.lower():
        raise Forbidden(f"checkpoint {uuid} is another task's: only the one that made its uuid can report it")


async def upload_abandoned(conn: Connection, task: TaskOf, uuid: str) -> None:
    """The task has thrown away what it had uploaded; nothing if it was reported, or never announced."""
    await gc.withdraw(conn, uuid, task.task_id)


async def checkpoint_files_left(conn: Connection, uuid: str, resources: dict[str, int]) -> CheckpointRow:
    """What is left of a checkpoint after a (partial) delete. Raises NotFound, InvalidInput (it is registered)."""
    before = await checkpoints.get(conn, uuid)
    if before.resources != checkpoints.kept_files(resources, before.resources):
        await checkpoints.check_none_registered(conn, [uuid])
    if not resources:
        await gc.drop_removal(conn, uuid)
    return await checkpoints.set_files(conn, uuid, resources)


async def checkpoint_trimmed(conn: Connection, task: TaskOf, uuid: str, resources: dict[str, int]) -> None:
    """A task has deleted files of a checkpoint of its owner.

    Raises NotFound, Forbidden (another's, or new files), InvalidInput (it is registered).
    """
    view = await checkpoint_lists.get(conn, uuid)
    if view.owner_id != task.owner.id:
        raise Forbidden(f"checkpoint {uuid} belongs to someone else: only its owner's tasks may delete its files")
    added = sorted(set(resources) - set(view.resources))
    if added:
        raise Forbidden(f"checkpoint {uuid} never had {added[0]!r}: files cannot be added")
    await checkpoint_files_left(conn, uuid, resources)


async def preemption_acknowledged(conn: Connection, task: TaskOf) -> None:
    """The task will leave because it was asked to: its exit with 0 then means "resume me", not "finished"."""
    await allocations.acknowledge(conn, task.allocation_id)


async def exited_early(conn: Connection, task: TaskOf, reason: str) -> None:
    """The script gives up these hyperparameters. Raises InvalidInput for any other reason."""
    if reason != _INVALID_HP:
        raise InvalidInput(f"{reason!r} is no reason for an early exit: {_INVALID_HP} is the only one")
    if task.trial_id is None:
        raise NotNow("only a trial has hyperparameters to give up")
    if await trials.set_invalid_hp(conn, task.trial_id, task.run_id):
        await notify(conn, "experiment", task.experiment_id or "")


async def checkpoint_missing(conn: Connection, task: TaskOf, uuid: str) -> None:
    """A trial was to go on from a checkpoint of its own that has no files any more; nothing if that is known.

    Raises NotFound, Forbidden (another trial's), NotNow (no older copy of the database explains it), InvalidInput (it
    is registered).
    """
    checkpoint = await checkpoints.get(conn, uuid)
    if checkpoint.trial_id != task.trial_id:
        raise Forbidden(f"checkpoint {uuid} is another trial's")
    if not await checkpoints.is_in_doubt(conn, uuid):
        raise NotNow(f"checkpoint {uuid} was saved to this very database: look for its files where they should be")
    if checkpoint.state == "COMPLETED":
        await checkpoint_files_left(conn, uuid, {})
