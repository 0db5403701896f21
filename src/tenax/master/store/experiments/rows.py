"""Rows of experiments: locked, changed by guarded writes, announced.

Rules: the experiment's lock comes before its trials' (order: `docs/internals.md`); a row changes only by a transition
that ``tenax.lifecycle.experiment`` allows; each change is announced as ``experiment``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import NotFound, NotNow, Stale
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ENDED, RUNNING, ExperimentEvent, ExperimentState, step
from tenax.master.store.checkpoints import gc
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import searches
from tenax.master.store.webhooks import events as webhook_events

Q = load("experiments")


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """The narrow row."""

    id: int
    state: ExperimentState
    version: int
    job_id: str
    owner_id: int
    unmanaged: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment was submitted with, as far as searching and placing it need to know."""

    #: The resolved configuration document.
    config: JsonObject
    #: ``experiment_seed``.
    seed: int
    #: Hash of the model code; None for none.
    context_hash: str | None
    pool: str
    priority: int
    workspace_id: int
    #: ``max_restarts`` is not what holds where nobody sets it.
    max_restarts_given: bool


class ExperimentGone(NotFound):
    """There is no such experiment: it was never made, or deleted meanwhile."""


async def get(conn: Connection, experiment_id: int) -> ExperimentRow:
    """The experiment as it is. Raises ExperimentGone."""
    row = await conn.fetchrow(Q.get, experiment_id)
    if row is None:
        raise ExperimentGone(f"experiment {experiment_id} not found")
    return row_as(ExperimentRow, row, state=ExperimentState)


async def lock(conn: Connection, experiment_id: int) -> ExperimentRow:
    """The experiment, locked until the transaction ends. Raises ExperimentGone."""
    locked = await lock_many(conn, [experiment_id])
    if not locked:
        raise ExperimentGone(f"experiment {experiment_id} not found")
    return locked[experiment_id]


async def lock_many(conn: Connection, experiment_ids: Collection[int]) -> dict[int, ExperimentRow]:
    """Those of these experiments that there are, locked until the transaction ends."""
    rows = await conn.fetch(Q.lock, list(experiment_ids)) if experiment_ids else []
    return {row["id"]: row_as(ExperimentRow, row, state=ExperimentState) for row in rows}


async def happen(
    conn: Connection, experiment: ExperimentRow, event: ExperimentEvent, reason: str = "", *, keep_reason: bool = False
) -> ExperimentState:
    """Let ``event`` happen to a locked experiment; its state after it. Raises NotNow, Impossible, Stale."""
    after = step(experiment.state, event)
    if after is experiment.state:
        return after
    new_reason = None if keep_reason else reason
    if await conn.fetchval(Q.set_state, experiment.id, experiment.version, after.value, new_reason) is None:
        raise Stale
    if after in ENDED:
        await conn.execute(Q.end_job, experiment.job_id)
        await gc.mark(conn, experiment.id)
    await webhook_events.experiment_changed(conn, experiment.id, after)
    await notify(conn, "experiment", experiment.id)
    if after in RUNNING:
        await notify(conn, searches.KIND, experiment.id)
    if after is ExperimentState.DELETING:
        await notify(conn, "deletion", experiment.id)
    return after


async def ask(conn: Connection, experiment_id: int, event: ExperimentEvent, reason: str = "") -> ExperimentState:
    """A user's verb (activate, pause, cancel, kill, delete) on an experiment. Raises NotFound, NotNow."""
    experiment = await lock(conn, experiment_id)
    if experiment.unmanaged and event in (ExperimentEvent.ACTIVATE, ExperimentEvent.PAUSE):
        raise NotNow(
            f"experiment {experiment_id} is trained outside of this cluster, which cannot {event.value} it: "
            "do that where its script runs"
        )
    if experiment.unmanaged and event in (ExperimentEvent.CANCEL, ExperimentEvent.KILL):
        return await _end_unmanaged(conn, experiment, reason or "it was canceled here; its script is not informed")
    kept = await checkpoints.registered_of_experiment(conn, experiment_id) if event is ExperimentEvent.DELETE else None
    if kept is not None:
        raise NotNow(f"experiment {experiment_id} cannot be deleted: {kept}")
    return await happen(conn, experiment, event, reason)


async def _end_unmanaged(conn: Connection, experiment: ExperimentRow, reason: str) -> ExperimentState:
    """End the record of what is trained elsewhere; what its script reports from now on is refused."""
    if experiment.state in ENDED:
        return experiment.state
    await conn.execute(Q.end_unmanaged_trials, experiment.id, reason)
    for row in await conn.fetch(Q.end_unmanaged_tasks, experiment.id):
        await notify(conn, "logs", row["task_id"])
    after = ExperimentState.CANCELED
    if await conn.fetchval(Q.set_state, experiment.id, experiment.version, after.value, reason) is None:
        raise Stale
    await gc.mark(conn, experiment.id)
    await webhook_events.experiment_changed(conn, experiment.id, after)
    await notify(conn, "experiment", experiment.id)
    return after


async def announce(conn: Connection, experiment_id: int) -> None:
    """Wake whoever waits for a change of this experiment."""
    await notify(conn, "experiment", experiment_id)


async def live_ids(conn: Connection) -> list[int]:
    """Managed experiments that have not ended."""
    return [row["id"] for row in await conn.fetch(Q.live_ids)]


async def plan(conn: Connection, experiment_id: int) -> Plan:
    """The documents of an experiment. Raises NotFound."""
    return row_as(Plan, await existing(conn, f"experiment {experiment_id}", Q.plan, [experiment_id]))


async def plans(conn: Connection, experiment_ids: Collection[int]) -> dict[int, Plan]:
    """The documents of those of these experiments that there are."""
    return {row["experiment_id"]: row_as(Plan, row) for row in await conn.fetch(Q.plan, list(experiment_ids))}
