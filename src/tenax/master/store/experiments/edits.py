"""Editing an experiment: name, description, notes, labels, project, archived, priority, slots, log retention, and
what ranks the trials of an unmanaged one.

Rules: whoever changes more than texts holds the experiment's lock; what is changed is shown in its configuration, too,
and the text that was typed stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.queue import jobs
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.workspaces import projects

Q = load("experiments")


@dataclass(frozen=True, slots=True)
class ExperimentEdit:
    """Its texts; None: as they are."""

    name: str | None = None
    description: str | None = None
    notes: str | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the cluster it may have, and how soon; None: as it is."""

    max_slots: int | None = None
    #: Take its limit away.
    unlimited: bool = False
    #: Seconds for each of its runs.
    time_limit: float | None = None
    #: Take that away.
    without_time_limit: bool = False
    weight: float | None = None
    priority: int | None = None


async def edit(conn: Connection, experiment_id: int, changes: ExperimentEdit) -> None:
    """Raises NotFound."""
    labels = None if changes.labels is None else list(changes.labels)
    if await conn.fetchval(Q.edit, experiment_id, changes.name, changes.description, changes.notes, labels) is None:
        raise NotFound(f"experiment {experiment_id} not found")


async def add_label(conn: Connection, experiment_id: int, label: str) -> list[str]:
    """Its labels after it; one that it has is not added again. Raises NotFound."""
    await conn.execute(Q.add_label, experiment_id, label)
    return await _labels(conn, experiment_id)


async def remove_label(conn: Connection, experiment_id: int, label: str) -> list[str]:
    """Its labels after it; one that it does not have is no error. Raises NotFound."""
    await conn.execute(Q.remove_label, experiment_id, label)
    return await _labels(conn, experiment_id)


async def popular_labels(conn: Connection, project_id: int | None) -> list[str]:
    """Every label in use, of a project or of all, the most used first."""
    return [row["label"] for row in await conn.fetch(Q.popular_labels, project_id)]


async def set_archived(conn: Connection, experiment_id: int, archived: bool) -> None:
    """Hide it from lists, or show it again. Raises NotNow before it has ended."""
    if await conn.fetchval(Q.set_archived, experiment_id, archived) is None:
        raise NotNow(f"experiment {experiment_id} has not ended: cancel or kill it before you archive it")


async def move(conn: Connection, experiment_id: int, project_id: int) -> None:
    """File it in another project. Locks the project, then the experiment. Raises NotFound, NotNow, and InvalidInput
    where it is more urgent than quotas allow there."""
    target = await projects.hold(conn, project_id)
    await experiments.lock(conn, experiment_id)
    place = await conn.fetchrow(Q.place, experiment_id)
    if place["archived"]:
        raise NotNow(f"experiment {experiment_id} is archived: unarchive it before you move it")
    if place["project_archived"]:
        raise NotNow(
            f"experiment {experiment_id} is in the archived project {place['project_name']!r}: unarchive that first"
        )
    await quotas.check_move(conn, target.workspace_id, [experiment_id])
    await conn.execute(Q.move, experiment_id, project_id)
    await notify(conn, "scheduling", "")


async def set_share(conn: Connection, experiment_id: int, share: Share) -> None:
    """Change the line of the queue that it is. Raises NotFound, NotNow where it has ended."""
    experiment = await experiments.lock(conn, experiment_id)
    job = await jobs.find(conn, experiment.job_id)
    if job.ended:
        raise NotNow(f"experiment {experiment_id} has ended: its share of the cluster does not matter any more")
    if share.priority is not None:
        await jobs.set_priority(conn, job, share.priority)
    if share.weight is not None:
        await jobs.set_weight(conn, job, share.weight)
    if share.max_slots is not None or share.unlimited:
        await conn.execute(Q.set_max_slots, job.job_id, share.max_slots)
        await conn.execute(Q.note_in_config, experiment_id, "max_slots", share.max_slots)
        await notify(conn, "scheduling", "")
    if share.time_limit is not None or share.without_time_limit:
        await conn.execute(Q.set_time_limit, job.job_id, share.time_limit)
        await conn.execute(Q.note_in_config, experiment_id, "time_limit", share.time_limit)
        await notify(conn, "scheduling", "")
        await notify(conn, "deadline", "")


async def set_searcher_metric(conn: Connection, experiment_id: int, metric: str, smaller_is_better: bool) -> None:
    """What ranks the trials of an unmanaged experiment, as long as none has a value of what does now.

    Raises NotFound, NotNow, and InvalidInput where a search decides by it.
    """
    experiment = await experiments.lock(conn, experiment_id)
    if not experiment.unmanaged:
        raise InvalidInput(f"the search of experiment {experiment_id} decides by its metric: submit another one")
    row = await conn.fetchrow(Q.searcher_metric, experiment_id)
    if (row["metric"], row["smaller_is_better"]) == (metric, smaller_is_better):
        return
    if row["has_values"]:
        raise NotNow(f"experiment {experiment_id} has values of {row['metric']!r}: its trials stay ranked by it")
    await conn.execute(Q.set_searcher_metric, experiment_id, metric, smaller_is_better)


async def set_log_retention(conn: Connection, experiment_id: int, days: int) -> None:
    """Keep the output of its trials that many days after their end; -1: for ever. Raises NotFound."""
    await experiments.lock(conn, experiment_id)
    await conn.execute(Q.set_log_retention, experiment_id, days)
    await conn.execute(Q.inherit_log_retention, experiment_id)


async def _labels(conn: Connection, experiment_id: int) -> list[str]:
    labels: list[str] | None = await conn.fetchval(Q.labels, experiment_id)
    if labels is None:
        raise NotFound(f"experiment {experiment_id} not found")
    return labels
