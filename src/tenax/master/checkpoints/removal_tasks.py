"""Removals where the master does not reach: a zero-slot task on an agent carries them out, as the files' owner.

One task for all that is wanted of one owner in one place. It has the image, the variables and the mounts of the tasks
that wrote the files, and runs in their pool: it sees what they saw. It reports what it did; what it says nothing of
before it ends is tried again, by the master first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

import structlog
from asyncpg import Connection

from tenax.config.master import MasterSettings
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.task import TaskKind
from tenax.master.checkpoints.messages import RemovalReport
from tenax.master.checkpoints.removal import wait_s
from tenax.master.store.checkpoints import garbage, removal_tasks
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.removal_tasks import Around, InHand, Wanted
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import Experiment
from tenax.master.store.logs import rows as logs
from tenax.master.store.tasks.rows import PlacedFile
from tenax.master.submission.launch import launch_task, own_config
from tenax.wire.task_names import PYTHON, REMOVALS_FILE

log = structlog.get_logger("tenax.collecting")

#: Removals of one task.
_MOST = 1000


async def launch(conn: Connection, settings: MasterSettings) -> list[str]:
    """Launch a task for each owner and place of which something is wanted; their ids."""
    groups: dict[tuple[int, str], list[Wanted]] = defaultdict(list)
    for one in await removal_tasks.wanted(conn, _MOST):
        place = [one.storage, one.around.pool, one.around.environment, one.around.bind_mounts]
        groups[one.owner_id, json.dumps(place, sort_keys=True)].append(one)
    return [await _launch(conn, settings, owner_id, found) for (owner_id, _), found in groups.items()]


async def reported(conn: Connection, task_id: str, reports: Mapping[str, RemovalReport]) -> None:
    """A task tells of removals that it has in hand; what it says of others counts for nothing."""
    for removal in await removal_tasks.in_hand(conn, task_id, sorted(reports)):
        report = reports[removal.uuid]
        if report.failure:
            await _failed(conn, removal, report.failure)
            continue
        if not removal.unreported:
            await checkpoints.set_files(conn, removal.uuid, dict(report.resources))
        await garbage.finish(conn, removal.uuid, unreported=removal.unreported)
    await notify(conn, garbage.KIND, "")


async def take_back(conn: Connection) -> None:
    """What tasks left behind is tried again."""
    for removal in await removal_tasks.left_behind(conn, _MOST):
        failure = f"task {removal.by_task}, which was to delete it on an agent, has ended: {removal.ended or 'killed'}"
        await garbage.failed(conn, removal.uuid, failure, wait_s(removal.tries), untouched=False)


async def delete_tensorboard(
    conn: Connection, settings: MasterSettings, experiment: Experiment, storage: JsonObject, cluster_id: str
) -> str:
    """Launch a task that deletes what TensorBoard wrote for an experiment; its id."""
    document: JsonObject = {"removals": [], "tensorboards": [f"{cluster_id}/tensorboard/experiment/{experiment.id}"]}
    words = f"deletes the TensorBoard files of experiment {experiment.id}"
    plan = await experiments.plan(conn, experiment.id)
    around = Around(plan.pool, plan.config.get("environment"), plan.config.get("bind_mounts"))
    return await _start(conn, settings, experiment.owner_id, {**document, "storage": storage}, words, around)


async def _launch(conn: Connection, settings: MasterSettings, owner_id: int, found: list[Wanted]) -> str:
    numbers = sorted({one.experiment_id for one in found if one.experiment_id is not None})
    named = f" of experiment {numbers[0]}" if len(numbers) == 1 else ""
    document: JsonObject = {
        "storage": found[0].storage or {},
        "removals": [{"uuid": one.uuid, "globs": list(one.globs)} for one in found],
        "tensorboards": list(await removal_tasks.tensorboards(conn, numbers)),
    }
    task_id = await _start(
        conn, settings, owner_id, document, f"deletes files of {len(found)} checkpoints{named}", found[0].around
    )
    await removal_tasks.hand_over(conn, [one.uuid for one in found], task_id)
    log.info("a task deletes what is out of reach", task=task_id, checkpoints=len(found))
    return task_id


async def _start(
    conn: Connection,
    settings: MasterSettings,
    owner_id: int,
    document: JsonObject,
    description: str,
    around: Around,
) -> str:
    known = settings.pool(around.pool)
    # A pool that is not there any more sees nothing, and one without places for tasks without slots takes no such task.
    pool = around.pool if known is not None and known.max_aux_containers_per_agent > 0 else ""
    config = own_config(settings, [PYTHON, "-m", "tenax.exec.gc"], pool=pool)
    config["checkpoint_storage"] = document["storage"]
    for name, section in (("environment", around.environment), ("bind_mounts", around.bind_mounts)):
        if section is not None:
            config[name] = section
    return await launch_task(
        conn,
        settings,
        kind=TaskKind.CHECKPOINT_GC,
        owner_id=owner_id,
        config=config,
        files=[PlacedFile(REMOVALS_FILE, json.dumps(document))],
        description=description,
    )


async def _failed(conn: Connection, removal: InHand, failure: str) -> None:
    await garbage.failed(conn, removal.uuid, failure, wait_s(removal.tries), untouched=False)
    if failure != removal.failure:
        text = f"checkpoint {removal.uuid} could not be deleted and is tried again ({removal.reason}): {failure}"
        await logs.append_system_line(conn, removal.task_id, text, "WARNING")
