"""Reconciles experiments and their trials: compares what they should be with what they are, and brings them there."""

from __future__ import annotations

from dataclasses import replace

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.lifecycle import reconcile
from tenax.lifecycle.container import Desired
from tenax.lifecycle.experiment import ENDED, ExperimentEvent, ExperimentState
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import size_of
from tenax.master.loops.loop import PassContext, each
from tenax.master.loops.quarantine import quarantine_in
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.trials import rows as trials

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
            quarantine=quarantine_in(context, self.name),
        )
        return wait

    async def _reconcile(self, context: PassContext, experiment_id: int) -> None:
        # Mostly there is nothing to do: that should neither wait for the experiment's lock nor hold it.
        async with context.reading() as conn:
            scene = await trials.scene(conn, experiment_id)
            if scene is None or not await self._due(conn, experiment_id, scene.state, scene.unmanaged, scene.trials):
                return
        async with context.transaction() as conn:
            experiment = await experiments.lock(conn, experiment_id)
            live = await trials.live(conn, experiment_id)
            actions = await self._due(conn, experiment_id, experiment.state, experiment.unmanaged, live)
            if not actions:
                return
            plan = await experiments.plan(conn, experiment_id)
            # What is being placed just now is waited for before an agent is locked, as its placement locks one, too.
            for action in sorted(actions, key=lambda action: not isinstance(action, reconcile.Withdraw)):
                await self._act(conn, experiment, plan.config, action)

    async def _act(
        self, conn: Connection, experiment: ExperimentRow, config: JsonObject, action: reconcile.ExperimentAction
    ) -> None:
        match action:
            case reconcile.RequestAllocation(trial_id):
                await trials.request_run(conn, trial_id, size_of(config))
            case reconcile.EndTrial(trial_id, verdict):
                trial = await trials.lock(conn, trial_id)
                await trials.conclude(conn, trial, replace(verdict, restarts=trial.restarts), experiment.state)
            case reconcile.Withdraw(_, allocation_id, reason):
                await allocations.withdraw(conn, allocation_id, reason)
                await experiments.announce(conn, experiment.id)
            case reconcile.AskToLeave(allocation_id, reason, within_s) if within_s is not None:
                await allocations.ask_to_leave(conn, allocation_id, reason, within_s)
            case reconcile.AskToLeave(allocation_id, reason):
                await allocations.preempt(conn, allocation_id, reason, self._timeout_s)
            case reconcile.Kill(allocation_id, _):
                await allocation_events.end_members(conn, allocation_id, Desired.KILL)
            case reconcile.EndExperiment():
                await experiments.happen(conn, experiment, ExperimentEvent.TRIALS_ENDED, keep_reason=True)

    async def _due(
        self,
        conn: Connection,
        experiment_id: int,
        state: ExperimentState,
        unmanaged: bool,
        live: tuple[reconcile.LiveTrial, ...],
    ) -> tuple[reconcile.ExperimentAction, ...]:
        """The actions that bring an experiment to its desired state."""
        if unmanaged or state in ENDED:
            return ()
        crowded = len(live) > 1 and any(trial.allocation is None for trial in live)
        return reconcile.reconcile(state, live, await self._most(conn, experiment_id) if crowded else None)

    async def _most(self, conn: Connection, experiment_id: int) -> int | None:
        """How many trials its search lets run at a time, which never changes; None: any number."""
        if experiment_id not in self._at_once:
            if len(self._at_once) >= _KEPT:
                self._at_once.clear()
            self._at_once[experiment_id] = await trials.at_once(conn, experiment_id)
        return self._at_once[experiment_id]
