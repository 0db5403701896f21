"""The rows of a new experiment, without those of its search."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import IO

from asyncpg import Connection

from tenax.errors import NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.tasks import contexts
from tenax.master.store.workspaces import projects

Q = load("experiments")


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """What is written."""

    owner_id: int
    project_id: int
    parent_id: int | None
    name: str
    description: str
    labels: tuple[str, ...]
    original_config: str
    config: JsonObject
    seed: int
    notices: tuple[str, ...]
    pool: str
    priority: int
    weight: float
    max_slots: int | None
    time_limit_s: float | None
    #: How many trials its search will make.
    expected_trials: int
    #: As `ResolvedExperiment` has it.
    max_restarts_given: bool
    #: Hash, archive and size of its code where it came with it; only a hash where the code is there already.
    context_hash: str | None = None
    archive: IO[bytes] | None = None
    archive_size: int = 0


async def check_fork(conn: Connection, experiment_id: int) -> None:
    """Raises NotFound, and NotNow for one in an archived project or workspace."""
    place = await existing(conn, f"experiment {experiment_id}", Q.place, experiment_id)
    if place["project_archived"]:
        raise NotNow(
            "forking an experiment in an archived workspace/project is not possible: "
            f"experiment {experiment_id} is in {place['project_name']!r}, unarchive that first"
        )


async def create(conn: Connection, new: NewExperiment, *, activate: bool) -> int:
    """Write a new experiment, PAUSED, then ACTIVE if asked; its id. In one transaction of the caller's.

    Raises NotFound, NotNow for a project that was archived or deleted meanwhile.
    """
    await projects.hold(conn, new.project_id)
    if new.context_hash is not None and new.archive is not None:
        await contexts.put(conn, new.context_hash, new.archive, new.archive_size)
    job_id = str(uuid.uuid4())
    await conn.execute(
        Q.create_job, job_id, new.pool, new.priority, new.weight, new.max_slots, new.owner_id, new.time_limit_s
    )
    experiment_id: int = await conn.fetchval(Q.create_experiment, job_id, new.owner_id, new.project_id, new.parent_id)
    await conn.execute(
        Q.create_documents,
        experiment_id,
        new.name,
        new.description,
        list(new.labels),
        new.original_config,
        new.config,
        new.seed,
        new.context_hash,
        list(new.notices),
        new.max_restarts_given,
    )
    await conn.execute(Q.expect_trials, experiment_id, new.expected_trials)
    if activate:
        await experiments.ask(conn, experiment_id, ExperimentEvent.ACTIVATE)
    else:
        await notify(conn, "experiment", experiment_id)
    return experiment_id
