"""Launching a task that is no trial, from inside the master."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from asyncpg import Connection

from tenax.config import Layers
from tenax.config.command import parse_command
from tenax.config.master import MasterSettings
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.task import TaskKind
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import NewTask, PlacedFile
from tenax.master.submission.defaults import layers


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
    description: str = "",
) -> str:
    """Write a task of the cluster's own; it is placed when there is room, and started once. Its id.

    In the caller's transaction: the task exists exactly if that commits. ``config`` is complete, as `own_config` makes
    it: ``entrypoint`` is the command line (one word: a line for the shell), with ``{python}`` as its first word for the
    interpreter of the place where it runs; ``resources`` holds slots (0 for a place among the auxiliary containers),
    pool and priority. A ``checkpoint_storage`` section that is put into it is mounted as it is for trials. ``files``
    are there before the start, relative paths under ``$DET_RUN_DIR``; ``env`` is set beside the contract's variables.
    The task speaks to the master as ``owner_id``.

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
    priority, weight = requested.get("priority"), requested.get("weight")
    return await tasks.create(
        conn,
        NewTask(
            kind=kind,
            owner_id=owner_id,
            config=config,
            pool=str(named),
            priority=priority if isinstance(priority, int) else 42 if pool is None else pool.scheduler.default_priority,
            weight=float(weight) if isinstance(weight, (int, float)) and weight > 0 else 1.0,
            workspace_id=workspace_id,
            description=description,
            files=tuple(files),
            env=dict(env or {}),
            context_hash=context_hash,
        ),
    )
