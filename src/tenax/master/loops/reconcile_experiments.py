"""Reconciles experiments and their trials: compares what they should be with what they are, and brings them there.

Rule: a transaction is about a hundred trials at most, however many there are; each decides anew on what it has locked.
"""

from __future__ import annotations

from dataclasses import replace

from asyncpg import Connection

from tenax.errors import Stale
from tenax.lifecycle import reconcile
from tenax.lifecycle.experiment import ENDED, STOPPING, ExperimentEvent
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import AT_ONCE
from tenax.master.allocations.verdicts import size_of
from tenax.master.loops.loop import PassContext, each
from tenax.master.loops.quarantine import quarantine_in
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Conclusion

_KEPT = 10_000


class ReconcileExperiments:
    """Brings experiments and their trials to their desired state."""

    name = "reconcile_experiments"
    kind = "experiment"

    def __init__(self, preemption_timeout_s: float) -> None:
        self._timeout_s = preemption_timeout_s
        #: Experiment -> how many of its trials may run at a time.
        self._at_once: dict[int, int | None] = {}

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Reconcile the experiments that were named, or all that live."""
        # A wake-up without an id is about all of them.
        named = {name for name in woken.ids if name}
        everything = woken.full or not named or named != woken.ids
        async with context.reading() as conn:
            released, wait = await trials.held_back(conn)
            due = await experiments.live_ids(conn) if everything else released
        ids = named | {str(number) for number in due}
        await each(
            sorted(ids, key=int),
            lambda name: self._reconcile(context, int(name)),
            loop=self.name,
            noun="experiment",
            quarantine=quarantine_in(context, self.name),
        )
        return wait

    async def _reconcile(self, context: PassContext, experiment_id: int) -> None:
        """Raises Stale, when what could be done is done, where it must be looked at again."""
        # Mostly there is nothing to do: that should neither wait for the experiment's lock nor hold it.
        async with context.reading() as conn:
            scene = await trials.scene(conn, experiment_id)
            if scene is None or scene.unmanaged or scene.state in ENDED:
                return
            crowded = len(scene.trials) > 1 and any(trial.allocation is None for trial in scene.trials)
            most = await self._most(conn, experiment_id) if crowded else None
        due = [trial.trial_id for trial in reconcile.unsettled(scene.state, scene.trials, most)]
        settled = True
        for first in range(0, len(due), AT_ONCE):
            async with context.transaction() as conn:
                settled &= await self._settle(conn, experiment_id, due[first : first + AT_ONCE])
        if not settled:
            raise Stale(f"a trial of experiment {experiment_id} was placed meanwhile")
        if scene.state in STOPPING and not scene.trials:
            async with context.transaction() as conn:
                await self._end(conn, experiment_id)

    async def _settle(self, conn: Connection, experiment_id: int, due: list[int]) -> bool:
        """Do what must be done for trials of an experiment, as they are now that it is locked.

        False if a request that was to be taken back had just been placed: what it became needs something else.
        """
        experiment = await experiments.lock(conn, experiment_id)
        if experiment.state in ENDED:
            return True
        live = await trials.live(conn, experiment_id, due)
        actions = reconcile.reconcile(experiment.state, live)
        unwanted = {each.allocation_id: each.reason for each in actions if isinstance(each, reconcile.Withdraw)}
        withdrawn = await allocations.withdraw(conn, unwanted)
        if withdrawn:
            await experiments.announce(conn, experiment.id)
        requested = [action.trial_id for action in actions if isinstance(action, reconcile.RequestAllocation)]
        if requested:
            plan = await experiments.plan(conn, experiment_id)
            await trials.request_runs(conn, requested, size_of(plan.config))
        verdicts = {action.trial_id: action.verdict for action in actions if isinstance(action, reconcile.EndTrial)}
        locked = await trials.lock_many(conn, verdicts)
        ended = [(trial, replace(verdicts[name], restarts=trial.restarts)) for name, trial in locked.items()]
        await trials.conclude(conn, [Conclusion(trial, verdict, experiment.state) for trial, verdict in ended])
        leaving = [action for action in actions if isinstance(action, reconcile.AskToLeave)]
        requests = [LeaveRequest(action.allocation_id, action.reason, action.within_s) for action in leaving]
        await allocations.ask_to_leave(conn, requests, self._timeout_s)
        kills = [action for action in actions if isinstance(action, reconcile.Kill)]
        for desired in sorted({action.desired for action in kills}):
            names = [action.allocation_id for action in kills if action.desired is desired]
            await allocation_events.end_members(conn, names, desired)
        return withdrawn == unwanted.keys()

    async def _end(self, conn: Connection, experiment_id: int) -> None:
        """End an experiment that is stopping, if no trial of it lives."""
        experiment = await experiments.lock(conn, experiment_id)
        if experiment.state in STOPPING and not await trials.live(conn, experiment_id):
            await experiments.happen(conn, experiment, ExperimentEvent.TRIALS_ENDED, keep_reason=True)

    async def _most(self, conn: Connection, experiment_id: int) -> int | None:
        """How many trials its search lets run at a time, which never changes; None: any number."""
        if experiment_id not in self._at_once:
            if len(self._at_once) >= _KEPT:
                self._at_once.clear()
            self._at_once[experiment_id] = await trials.at_once(conn, experiment_id)
        return self._at_once[experiment_id]
