"""Continuing experiments that have ended."""

from __future__ import annotations

import anyio.to_thread

from tenax.config import ResolvedExperiment, wishes_of
from tenax.config.master import PoolSettings
from tenax.errors import NotNow, TryAgain
from tenax.lifecycle.experiment import ExperimentEvent, ExperimentState, step
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import experiment_message
from tenax.master.context import Master
from tenax.master.continuing import check_offered, continued, overlaid
from tenax.master.store import continuing, experiments, listings_experiments, projects
from tenax.master.store.listings_experiments import ExperimentView
from tenax.master.submission import SLOTS_EXCEEDED, pool_of, unfit_for
from tenax.wire.api.experiments import ContinueExperimentRequest, ContinueExperimentResponse

routes = Routes("Experiments")


@routes.post("/api/v1/experiments/continue", "ContinueExperiment", allow=Allow.USER)
async def continue_experiment(
    master: MasterDep, caller: CallerDep, body: ContinueExperimentRequest
) -> ContinueExperimentResponse:
    """Let an experiment that has ended go on, from where its trials saved, with other settings if need be."""
    async with master.db.connection() as conn:
        view = await listings_experiments.get(conn, body.id)
    caller.may_change(view.owner_id, f"experiment {body.id}")
    _check_continuable(view)
    pool, resolved = await anyio.to_thread.run_sync(_overlaid, master, view, body.override_config)
    async with master.db.transaction() as conn:
        await projects.hold(conn, view.project_id)
        experiment = await experiments.lock(conn, body.id)
        stored = (await experiments.plan(conn, body.id)).config
        if stored != view.config:
            raise TryAgain("the experiment was changed meanwhile: continue it again")
        unfit = await unfit_for(conn, master.settings, pool, view.workspace_id, resolved)
        new = continued(body.id, stored, resolved, pool, await continuing.trials_of(conn, body.id))
        await continuing.go_on(conn, experiment, new)
        made = await listings_experiments.get(conn, body.id)
    notices = [*resolved.notices, f"it will wait: {unfit}"] if unfit else list(resolved.notices)
    return ContinueExperimentResponse(
        experiment=experiment_message(made, caller), warnings=[SLOTS_EXCEEDED] if unfit else [], notices=notices
    )


def _check_continuable(view: ExperimentView) -> None:
    """What needs no lock to be known: it is said before the configuration is looked at. Raises NotNow."""
    if view.unmanaged:
        raise NotNow(f"experiment {view.id} is trained outside of this cluster: continue it where its script runs")
    step(ExperimentState(view.state), ExperimentEvent.CONTINUE)
    if view.archived:
        raise NotNow(f"experiment {view.id} is archived: unarchive it before you continue it")
    check_offered(view.id, view.config)


def _overlaid(master: Master, view: ExperimentView, override: str) -> tuple[PoolSettings, ResolvedExperiment]:
    wished = wishes_of(override, template=view.config)
    pool = pool_of(master.settings, wished.resource_pool, wished.slots_per_trial)
    return pool, overlaid(view.config, override, pool)
