"""Removals where the master does not reach: a zero-slot task on an agent carries them out, as the files' owner.

There is one task for all removals of one owner and workspace in one storage. It has the image, the variables and the
mounts of the tasks that wrote the files, and runs in their pool and as whom they ran: it sees what they saw. It reports
what it did; what it has not reported when it ends is tried again, by the master first. `launch_task` starts a task from
inside the master.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

import structlog
from asyncpg import Connection

from tenax.config.command import parse_command
from tenax.config.master import MasterSettings
from tenax.config.resolve import Layers
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.task import TaskKind
from tenax.master.checkpoints.messages import RemovalReport
from tenax.master.checkpoints.removal import wait_s
from tenax.master.store.checkpoints import gc, removal_tasks
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.checkpoints.removal_tasks import AssignedRemoval, TaskSetup, UnassignedRemoval
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.logs import rows as logs
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import NewTask, PlacedFile
from tenax.master.submission.experiments import layers
from tenax.scheduler.snapshot import DEFAULT_PRIORITY
from tenax.wire.task_names import PYTHON, REMOVALS_FILE

log = structlog.get_logger("tenax.checkpoint_gc")

#: Removals of one task.
_MAX_REMOVALS = 1000


async def launch(conn: Connection, settings: MasterSettings) -> list[str]:
    """Launch a task for each owner, workspace and storage with unassigned removals; the ids of the tasks."""
    groups: dict[tuple[int, str], list[UnassignedRemoval]] = defaultdict(list)
    for removal in await removal_tasks.unassigned(conn, _MAX_REMOVALS):
        setup = removal.setup
        key = [removal.storage, setup.pool, setup.workspace_id, setup.environment, setup.bind_mounts]
        groups[removal.owner_id, json.dumps(key, sort_keys=True)].append(removal)
    return [await _launch(conn, settings, owner_id, removals) for (owner_id, _), removals in groups.items()]


async def reported(conn: Connection, task_id: str, reports: Mapping[str, RemovalReport]) -> None:
    """A task reports removals that it was given; what it says of others is ignored."""
    for removal in await removal_tasks.assigned(conn, task_id, sorted(reports)):
        report = reports[removal.uuid]
        if report.failure:
            await _failed(conn, removal, report.failure)
            continue
        if not removal.unreported:
            await checkpoints.set_files(conn, removal.uuid, dict(report.resources))
        await gc.finish_removal(conn, removal.uuid, unreported=removal.unreported)
    await notify(conn, gc.KIND, "")


async def take_back(conn: Connection) -> None:
    """Let the removals of tasks that have ended be tried again."""
    for removal in await removal_tasks.orphaned(conn, _MAX_REMOVALS):
        failure = (
            f"task {removal.by_task}, which was to delete it on an agent, has ended: {removal.exit_reason or 'killed'}"
        )
        await gc.removal_failed(conn, removal.uuid, failure, wait_s(removal.tries), untouched=False)


async def delete_tensorboard(
    conn: Connection,
    settings: MasterSettings,
    experiment: ExperimentRow,
    storage: JsonObject,
    cluster_id: str,
    trial_id: int | None = None,
) -> str:
    """Launch a task that deletes what TensorBoard wrote for an experiment, or for one trial of it; its id."""
    below = "" if trial_id is None else f"/trial/{trial_id}"
    folder = f"{cluster_id}/tensorboard/experiment/{experiment.id}{below}"
    document: JsonObject = {"removals": [], "tensorboards": [folder]}
    description = _name([experiment.id])
    plan = await experiments.plan(conn, experiment.id)
    setup = TaskSetup(plan.pool, plan.workspace_id, plan.config.get("environment"), plan.config.get("bind_mounts"))
    return await _start(conn, settings, experiment.owner_id, {**document, "storage": storage}, description, setup)


async def _launch(conn: Connection, settings: MasterSettings, owner_id: int, removals: list[UnassignedRemoval]) -> str:
    numbers = sorted({removal.experiment_id for removal in removals if removal.experiment_id is not None})
    description = _name(numbers)
    document: JsonObject = {
        "storage": removals[0].storage or {},
        "removals": [{"uuid": removal.uuid, "globs": list(removal.globs)} for removal in removals],
        "tensorboards": list(await removal_tasks.tensorboards(conn, numbers)),
    }
    task_id = await _start(conn, settings, owner_id, document, description, removals[0].setup)
    await removal_tasks.assign(conn, [removal.uuid for removal in removals], task_id)
    log.info("a task deletes what is out of reach", task=task_id, checkpoints=len(removals))
    return task_id


def _name(experiments: Sequence[int]) -> str:
    """In Determined's words, which scripts look for in the list of tasks."""
    several = "s" if len(experiments) > 1 else ""
    return f"Checkpoint GC (Experiment{several} {', '.join(map(str, experiments))})" if experiments else "Checkpoint GC"


async def _start(
    conn: Connection,
    settings: MasterSettings,
    owner_id: int,
    document: JsonObject,
    description: str,
    setup: TaskSetup,
) -> str:
    configured = settings.pool(setup.pool)
    # A pool that is not there any more sees nothing, and one without places for tasks without slots takes no such task.
    pool = setup.pool if configured is not None and configured.max_aux_containers_per_agent > 0 else ""
    config = own_config(settings, [PYTHON, "-m", "tenax.exec.gc"], pool=pool)
    config["checkpoint_storage"] = document["storage"]
    for name, section in (("environment", setup.environment), ("bind_mounts", setup.bind_mounts)):
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
        as_in_workspace=setup.workspace_id,
    )


async def _failed(conn: Connection, removal: AssignedRemoval, failure: str) -> None:
    await gc.removal_failed(conn, removal.uuid, failure, wait_s(removal.tries), untouched=False)
    if failure != removal.failure:
        text = f"checkpoint {removal.uuid} could not be deleted and is tried again ({removal.reason}): {failure}"
        await logs.append_system_line(conn, removal.task_id, text, "WARNING")


def own_config(settings: MasterSettings, entrypoint: Sequence[str], *, slots: int = 0, pool: str = "") -> JsonObject:
    """A complete configuration of a task of the cluster's own: image, mounts and variables are the cluster's defaults.

    ``pool``: empty for the default one. Raises ConfigError where the defaults of the cluster are wrong.
    """
    chosen = settings.pool(pool or (settings.default_compute_pool if slots else settings.default_aux_pool))
    config: JsonObject = {"entrypoint": list(entrypoint), "resources": {"slots": slots, "resource_pool": pool}}
    below = Layers() if chosen is None else layers(settings, chosen)
    return parse_command(config, rng=random.Random(0), title="Task", layers=below).document


async def launch_task(
    conn: Connection,
    settings: MasterSettings,
    *,
    kind: TaskKind,
    owner_id: int,
    config: JsonObject,
    files: Sequence[PlacedFile] = (),
    env: Mapping[str, str] | None = None,
    context_hash: str | None = None,
    workspace_id: int = 1,
    as_in_workspace: int | None = None,
    description: str = "",
) -> str:
    """Write a task of the cluster's own; it is placed when there is room, and started once. Its id.

    In the caller's transaction: the task exists exactly if that commits. ``config`` is complete, as `own_config` makes
    it: ``entrypoint`` is the command line (one word: a line for the shell), with ``{python}`` as its first word for the
    interpreter of the place where it runs; ``resources`` holds slots (0 for a place among the auxiliary containers),
    pool and priority. A ``checkpoint_storage`` section that is put into it is mounted as it is for trials. ``files``
    are there before the start, relative paths under ``$DET_RUN_DIR``; ``env`` is set beside the contract's variables.
    The task speaks to the master as ``owner_id``, and runs on the agent as tasks of ``as_in_workspace`` do.

    How it goes: the row of ``launched_tasks`` (state COMPLETED, CANCELED or ERROR, with ``reason``), each change
    announced as ``task`` with its id (`wakeups`). Output is in the task's log. `tasks.happen` with ``TaskEvent.KILL``
    on a locked task ends it. An owner or a workspace that is not there is the database's error.
    """
    resources = config.get("resources")
    requested = resources if isinstance(resources, dict) else {}
    named = requested.get("resource_pool") or (
        settings.default_compute_pool if requested.get("slots") else settings.default_aux_pool
    )
    pool = settings.pool(str(named))
    usual = DEFAULT_PRIORITY if pool is None else pool.scheduler.default_priority
    priority, weight = requested.get("priority"), requested.get("weight")
    return await tasks.create(
        conn,
        NewTask(
            kind=kind,
            owner_id=owner_id,
            config=config,
            pool=str(named),
            priority=priority if isinstance(priority, int) else usual,
            weight=float(weight) if isinstance(weight, (int, float)) and weight > 0 else 1.0,
            workspace_id=workspace_id,
            as_in_workspace=as_in_workspace,
            description=description,
            files=tuple(files),
            env=dict(env or {}),
            context_hash=context_hash,
        ),
    )
