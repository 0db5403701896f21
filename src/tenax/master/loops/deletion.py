"""The deleting loop: experiments that are to go, first their files, then their rows.

Files go first: a row without files can be deleted again, files without a row are found by nobody. What the master does
not reach is left to the collecting loop, and so to a task on an agent. What cannot be done makes the experiment
DELETE_FAILED, with the reason; it can be asked for again.

Workspaces and projects that are to go, once the experiments in them have gone; part of the deleting loop.
"""

from __future__ import annotations

import asyncio

import structlog

from tenax.errors import NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.checkpoints.files import delete_checkpoint, delete_tensorboard, place_of
from tenax.master.checkpoints.removal import configured_place
from tenax.master.loops.loop import Desk, each
from tenax.master.store.checkpoints import garbage
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import deletion
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.deletion import Remains
from tenax.master.store.workspaces import removal as workspace_removal
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_bound_to_machine

log = structlog.get_logger("tenax.deleting")

#: How soon one is looked at again whose containers are still on a machine.
_AGAIN_S = 1.0


class Deleting:
    """Deletes what was asked to be deleted."""

    name = "deleting"
    kind = "deletion"

    def __init__(self, clusters_storage: JsonObject | None = None) -> None:
        self._clusters = clusters_storage

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Delete what can be; what is still on a machine is looked at again soon."""
        async with desk.looking() as conn:
            asked = await deletion.asked(conn)
        held: list[int] = []

        async def handle(name: str) -> None:
            if not await self._delete(desk, int(name)):
                held.append(int(name))

        await each([str(one) for one in asked], handle, loop=self.name)
        await empty_folders(desk)
        return _AGAIN_S if held else None

    async def _delete(self, desk: Desk, experiment_id: int) -> bool:
        """False: not yet."""
        async with desk.transaction() as conn:
            left = await deletion.remains(conn, experiment_id)
        if left is None:
            return True
        if left.held:
            return False
        failure = left.obstacle
        if failure is None:
            undone = await asyncio.to_thread(_delete_checkpoints, left, self._clusters)
            if undone:
                return await _leave_to_a_task(desk, experiment_id, left, undone)
            failure = await asyncio.to_thread(_delete_tensorboard, left, experiment_id, self._clusters)
        async with desk.transaction() as conn:
            if failure is None:
                await deletion.delete_rows(conn, experiment_id)
                log.info("experiment deleted", experiment=experiment_id, checkpoints=len(left.checkpoints))
            else:
                await experiments.ask(conn, experiment_id, ExperimentEvent.DELETE_FAILED, failure)
        return True


async def _leave_to_a_task(desk: Desk, experiment_id: int, left: Remains, undone: dict[str, str]) -> bool:
    """What the master cannot delete becomes removals, which end on an agent; False: they have not ended yet."""
    async with desk.transaction() as conn:
        # Whoever changes an experiment locks it before what belongs to it.
        await experiments.lock(conn, experiment_id)
        pending = {one.uuid: one for one in await garbage.of_experiment(conn, experiment_id)}
        failed = next((one for one in pending.values() if one.uuid in undone and one.tries and one.failure), None)
        if failed is not None:
            for uuid in pending:
                # Asked again it begins anew.
                await garbage.forget(conn, uuid)
            if _is_its_makers(left):
                await deletion.delete_rows(conn, experiment_id)
                log.info("experiment deleted, its files left to its maker", experiment=experiment_id, files=len(undone))
                return True
            failure = f"checkpoint {failed.uuid} could not be deleted: {failed.failure}"
            await experiments.ask(conn, experiment_id, ExperimentEvent.DELETE_FAILED, failure)
            return True
        new = {one.uuid: one.unreported for one in left.checkpoints if one.uuid in undone and one.uuid not in pending}
        reason = f"experiment {experiment_id} is deleted"
        await garbage.doom(conn, {uuid: reason for uuid, unreported in new.items() if not unreported})
        await garbage.doom_uploads(conn, [uuid for uuid, unreported in new.items() if unreported], reason)
        if new:
            words = "being deleted, with a task on an agent for what the master cannot reach"
            await deletion.tell(conn, experiment_id, f"{words}: {undone[min(new)]}")
    return False


def _is_its_makers(left: Remains) -> bool:
    """Whether its files are in a directory of the machine that trained it, which is no machine of this cluster's.

    Nobody here could ever delete them, and that shall not keep the experiment for ever.
    """
    own = configured_place(left.config)
    return left.unmanaged and is_bound_to_machine(own)


def _delete_checkpoints(left: Remains, clusters: JsonObject | None) -> dict[str, str]:
    """Delete the files of all checkpoints; those that could not be, with the reason in words."""
    own = configured_place(left.config)
    undone: dict[str, str] = {}
    for checkpoint in left.checkpoints:
        try:
            delete_checkpoint(place_of(checkpoint.storage, own, clusters), checkpoint.uuid)
        except (NotNow, StorageFailed) as error:
            undone[checkpoint.uuid] = str(error)
    return undone


def _delete_tensorboard(left: Remains, experiment_id: int, clusters: JsonObject | None) -> str | None:
    """Delete what TensorBoard wrote; why it could not be, in words."""
    own = configured_place(left.config)
    if own is None:
        return None
    try:
        delete_tensorboard(place_of(None, own, clusters), left.cluster_id, experiment_id)
    except StorageFailed as error:
        return str(error)
    except NotNow as error:
        # A storage out of reach may hold none of them: what was never asked for does not keep the experiment.
        log.info("no TensorBoard files were looked for", experiment=experiment_id, reason=str(error))
    return None


async def empty_folders(desk: Desk) -> None:
    """Delete those that are empty by now; one with an experiment that stays is DELETE_FAILED, with that reason."""
    async with desk.looking() as conn:
        going = await workspace_removal.going(conn)
    for folder in going:
        async with desk.transaction() as conn:
            if await workspace_removal.settle(conn, folder):
                log.info("folder deleted", workspace=folder.workspace_id, project=folder.project_id)
