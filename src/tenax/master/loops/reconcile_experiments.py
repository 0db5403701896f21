"""The tending loop: what experiments and their trials should be, against what they are; and what brings them there."""

from __future__ import annotations

from dataclasses import replace

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.lifecycle import reconcile
from tenax.lifecycle.container import Desired
from tenax.lifecycle.experiment import ENDED, ExperimentEvent, ExperimentState
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.exclusion import size_of
from tenax.master.loops.loop import Desk, each
from tenax.master.loops.quarantine import setting_aside
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import Experiment
from tenax.master.store.trials import rows as trials

_KEPT = 10_000


class Tending:
    """Brings experiments and their trials to what they should be."""

    name = "tending"
    kind = "experiment"

    def __init__(self, preemption_timeout_s: float) -> None:
        self._timeout_s = preemption_timeout_s
        #: Experiment -> how many of its trials may run at a time.
        self._at_once: dict[int, int | None] = {}

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Tend the experiments that were named, or all that live."""
        # A wake-up without an id is about all of them.
        named = {name for name in woken.ids if name}
        everything = woken.full or not named or named != woken.ids
        async with desk.looking() as conn:
            released, wait = await trials.held_back(conn)
            due = await experiments.live_ids(conn) if everything else released
        ids = named | {str(number) for number in due}
        await each(
            sorted(ids, key=int),
            lambda name: self._tend(desk, int(name)),
            loop=self.name,
            set_aside=setting_aside(desk, self.name),
        )
        return wait

    async def _tend(self, desk: Desk, experiment_id: int) -> None:
        # Most looks find nothing to do: they should neither wait for the experiment's lock nor hold it.
        async with desk.looking() as conn:
            now = await trials.scene(conn, experiment_id)
            if now is None or not await self._due(conn, experiment_id, now.state, now.unmanaged, now.trials):
                return
        async with desk.transaction() as conn:
            experiment = await experiments.lock(conn, experiment_id)
            live = await trials.live(conn, experiment_id)
            actions = await self._due(conn, experiment_id, experiment.state, experiment.unmanaged, live)
            if not actions:
                return
            plan = await experiments.plan(conn, experiment_id)
            # What is being placed just now is waited for before an agent is locked, as its placement locks one, too.
            for action in sorted(actions, key=lambda one: not isinstance(one, reconcile.Withdraw)):
                await self._act(conn, experiment, plan.config, action)

    async def _act(
        self, conn: Connection, experiment: Experiment, config: JsonObject, action: reconcile.ExperimentAction
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
        """What brings an experiment to what it should be."""
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
