"""Quarantine of an experiment that a loop cannot handle: it ends with the error as its reason, and the loop goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from tenax.lifecycle.allocation import AllocationState
from tenax.lifecycle.container import Desired
from tenax.lifecycle.experiment import ENDED, ExperimentEvent
from tenax.lifecycle.trial import TrialExit, TrialState, TrialVerdict
from tenax.master.allocations import events as allocation_events
from tenax.master.loops.loop import PassContext
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import rows as trials

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
        if experiment.state in ENDED:
            return
        for live in await trials.live(conn, experiment_id):
            trial = await trials.lock(conn, live.trial_id)
            verdict = TrialVerdict(TrialState.ERROR, trial.restarts, reason, TrialExit.ERRORED)
            await trials.conclude(conn, trial, verdict, experiment.state)
            if live.allocation is None:
                continue
            if live.allocation.state is AllocationState.PENDING:
                await allocations.withdraw(conn, live.allocation.allocation_id, reason)
            else:
                await allocation_events.end_members(conn, live.allocation.allocation_id, Desired.KILL)
        await experiments.happen(conn, experiment, ExperimentEvent.BROKEN, reason)
