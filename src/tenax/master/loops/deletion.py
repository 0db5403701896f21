"""Deletes experiments, and workspaces and projects once the experiments in them are gone.

Files go before rows: a row without files can be deleted again, files without a row are found by nobody. What the master
does not reach becomes removals, which checkpoint gc hands to a task on an agent; what TensorBoard may have written
there, a task deletes afterwards. What cannot be done makes the experiment, or the workspace or project, DELETE_FAILED,
with the reason; its deletion can be requested again.
"""

from __future__ import annotations

import asyncio

import structlog
from asyncpg import Connection

from tenax.config.master import MasterSettings
from tenax.errors import NotNow
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.checkpoints import removal_tasks
from tenax.master.checkpoints.files import delete_checkpoint, delete_tensorboard
from tenax.master.checkpoints.removal import configured_place
from tenax.master.checkpoints.roots import CheckpointRoots, checkpoint_roots
from tenax.master.loops.loop import LONG_STEP_S, PassContext, each
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import deletion
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.deletion import Remains
from tenax.master.store.workspaces import removal as workspace_removal
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_bound_to_machine, is_reachable_by_agents

log = structlog.get_logger("tenax.deletion")

#: How soon an experiment is tried again whose containers are still on a machine.
_AGAIN_S = 1.0


class Deletion:
    """Deletes what users have asked to delete."""

    name = "deletion"
    kind = "deletion"
    step_s = LONG_STEP_S

    def __init__(self, settings: MasterSettings) -> None:
        #: Those of pools may change while it runs.
        self.settings = settings
        self._roots = checkpoint_roots(settings)

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Delete what can be; what is still on a machine is tried again soon."""
        async with context.reading() as conn:
            experiment_ids = await deletion.requested(conn)
        held: list[int] = []

        async def handle(name: str) -> None:
            if not await self._delete(context, int(name)):
                held.append(int(name))

        await each([str(number) for number in experiment_ids], handle, loop=self.name, noun="experiment")
        await delete_folders(context)
        return _AGAIN_S if held else None

    async def _delete(self, context: PassContext, experiment_id: int) -> bool:
        """False: not yet."""
        async with context.transaction() as conn:
            left = await deletion.remains(conn, experiment_id)
        if left is None:
            return True
        if left.held:
            return False
        failure, out_of_reach = left.obstacle, False
        if failure is None:
            undone = await asyncio.to_thread(_delete_checkpoints, left, self._roots)
            if undone:
                return await _leave_to_a_task(context, experiment_id, left, undone)
            try:
                await asyncio.to_thread(_delete_tensorboard, left, experiment_id, self._roots)
            except StorageFailed as error:
                failure = str(error)
            except NotNow as error:
                log.info("TensorBoard files were not searched for", experiment=experiment_id, reason=str(error))
                out_of_reach = True
        async with context.transaction() as conn:
            if failure is None:
                if out_of_reach:
                    await _leave_tensorboard_to_a_task(conn, self.settings, experiment_id, left)
                await deletion.delete_rows(conn, experiment_id)
                log.info("experiment deleted", experiment=experiment_id, checkpoints=len(left.checkpoints))
            else:
                await experiments.ask(conn, experiment_id, ExperimentEvent.DELETE_FAILED, failure)
        return True


async def _leave_to_a_task(context: PassContext, experiment_id: int, left: Remains, undone: dict[str, str]) -> bool:
    """What the master cannot delete becomes removals for a task on an agent; False: they have not ended yet."""
    async with context.transaction() as conn:
        # Whoever changes an experiment locks it before what belongs to it.
        await experiments.lock(conn, experiment_id)
        pending = {removal.uuid: removal for removal in await gc.removals_of_experiment(conn, experiment_id)}
        failures = [removal for removal in pending.values() if removal.uuid in undone and removal.failure]
        failed = next((removal for removal in failures if removal.tries), None)
        if failed is not None:
            # Requested again, they begin anew.
            await deletion.hold_removals(conn, experiment_id)
            for uuid in pending:
                await gc.drop_removal(conn, uuid)
            if _stays_with_its_owner(left):
                await deletion.delete_rows(conn, experiment_id)
                log.info(
                    "experiment deleted, files left to its owner", experiment=experiment_id, checkpoints=len(undone)
                )
                return True
            failure = f"checkpoint {failed.uuid} could not be deleted: {failed.failure}"
            await experiments.ask(conn, experiment_id, ExperimentEvent.DELETE_FAILED, failure)
            return True
        unrequested = [file for file in left.checkpoints if file.uuid in undone and file.uuid not in pending]
        new = {file.uuid: file.unreported for file in unrequested}
        reason = f"experiment {experiment_id} is deleted"
        await gc.request_removals(conn, {uuid: reason for uuid, unreported in new.items() if not unreported})
        await gc.request_upload_removals(conn, [uuid for uuid, unreported in new.items() if unreported], reason)
        if new:
            progress = "being deleted, with a task on an agent for what the master cannot reach"
            await deletion.set_reason(conn, experiment_id, f"{progress}: {undone[min(new)]}")
    return False


def _stays_with_its_owner(left: Remains) -> bool:
    """Whether its files are in a directory of the machine that trained it, which is not part of this cluster.

    Nobody here could ever delete them, and that must not keep the experiment forever.
    """
    own = configured_place(left.config)
    return left.unmanaged and is_bound_to_machine(own)


def _delete_checkpoints(left: Remains, roots: CheckpointRoots) -> dict[str, str]:
    """Delete the files of all checkpoints; those that could not be, each with the reason."""
    own = configured_place(left.config)
    undone: dict[str, str] = {}
    for checkpoint in left.checkpoints:
        try:
            delete_checkpoint(roots.place_of(checkpoint.storage, own, left.owner), checkpoint.uuid)
        except (NotNow, StorageFailed) as error:
            undone[checkpoint.uuid] = str(error)
    return undone


def _delete_tensorboard(left: Remains, experiment_id: int, roots: CheckpointRoots) -> None:
    """Delete what TensorBoard wrote. Raises StorageFailed, NotNow."""
    own = configured_place(left.config)
    if own is not None:
        delete_tensorboard(roots.place_of(None, own, left.owner), left.cluster_id, experiment_id)


async def _leave_tensorboard_to_a_task(
    conn: Connection, settings: MasterSettings, experiment_id: int, left: Remains
) -> None:
    """Where something of it ran on an agent, and agents reach its storage; its rows are there still."""
    own = configured_place(left.config)
    if own is not None and left.ran and is_reachable_by_agents(own):
        experiment = await experiments.lock(conn, experiment_id)
        await removal_tasks.delete_tensorboard(conn, settings, experiment, own, left.cluster_id)


async def delete_folders(context: PassContext) -> None:
    """Delete workspaces and projects that are empty by now; one that an experiment stays in is DELETE_FAILED."""
    async with context.reading() as conn:
        folders = await workspace_removal.deleting(conn)
    for folder in folders:
        async with context.transaction() as conn:
            if await workspace_removal.delete_if_empty(conn, folder):
                log.info("folder deleted", workspace=folder.workspace_id, project=folder.project_id)
