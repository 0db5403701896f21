"""Quarantine of an experiment that a loop cannot handle: it ends with the error as its reason, and the loop goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
from asyncpg import Connection

from tenax.lifecycle.allocation import AllocationState
from tenax.lifecycle.container import Desired
from tenax.lifecycle.experiment import ENDED, RUNNING, ExperimentEvent
from tenax.lifecycle.trial import TrialExit, TrialState, TrialVerdict
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import AT_ONCE
from tenax.master.loops.loop import PassContext
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Conclusion

log = structlog.get_logger("tenax.loops")


def quarantine_in(context: PassContext, loop: str) -> Callable[[str, str], Awaitable[None]]:
    """For `each`: takes the experiment's id and the error in a line."""

    async def quarantine(name: str, error: str) -> None:
        try:
            await _quarantine(context, int(name), f"an error of the platform in {loop}: {error}")
        except Exception:
            log.exception("this experiment could not even be quarantined", loop=loop, experiment=name)

    return quarantine


async def _quarantine(context: PassContext, experiment_id: int, reason: str) -> None:
    async with context.transaction() as conn:
        experiment = await experiments.lock(conn, experiment_id)
        if experiment.state in RUNNING:
            # From here on its search makes no more trials.
            await experiments.happen(conn, experiment, ExperimentEvent.SEARCH_FAILED, reason)
    async with context.reading() as conn:
        live = [trial.trial_id for trial in await trials.live(conn, experiment_id)]
    for first in range(0, len(live), AT_ONCE):
        async with context.transaction() as conn:
            await _end_trials(conn, experiment_id, live[first : first + AT_ONCE], reason)
    async with context.transaction() as conn:
        experiment = await experiments.lock(conn, experiment_id)
        if experiment.state not in ENDED:
            await experiments.happen(conn, experiment, ExperimentEvent.BROKEN, reason)


async def _end_trials(conn: Connection, experiment_id: int, trial_ids: list[int], reason: str) -> None:
    experiment = await experiments.lock(conn, experiment_id)
    if experiment.state in ENDED:
        return
    live = await trials.live(conn, experiment_id, trial_ids)
    locked = await trials.lock_many(conn, [trial.trial_id for trial in live])
    verdict = TrialVerdict(TrialState.ERROR, 0, reason, TrialExit.ERRORED)
    await trials.conclude(
        conn,
        [Conclusion(trial, replace(verdict, restarts=trial.restarts), experiment.state) for trial in locked.values()],
    )
    attempts = [trial.allocation for trial in live if trial.allocation is not None]
    waiting = [each.allocation_id for each in attempts if each.state is AllocationState.PENDING]
    withdrawn = await allocations.withdraw(conn, dict.fromkeys(waiting, reason))
    placed = [each.allocation_id for each in attempts if each.allocation_id not in withdrawn]
    await allocation_events.end_members(conn, placed, Desired.KILL)
