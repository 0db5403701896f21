"""Trials: looked at, killed; and what their scripts say besides metrics."""

from __future__ import annotations

from typing import cast

from tenax.jsonvalue import JsonObject
from tenax.master.api import speaking
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.trial_shapes import whole_trial
from tenax.master.ingest import states
from tenax.master.store import listings_trials, unmanaged
from tenax.wire.api.message import Empty
from tenax.wire.api.trials import (
    EarlyExit,
    GetTrialResponse,
    PrepareRequest,
    PrepareResponse,
    ReportProgressRequest,
    RunnerMetadata,
)

routes = Routes("Trials")


@routes.get("/api/v1/trials/{trial_id}", "GetTrial", allow=Allow.USER)
async def get_trial(master: MasterDep, trial_id: int) -> GetTrialResponse:
    """One trial."""
    async with master.db.connection() as conn:
        return GetTrialResponse(trial=await whole_trial(conn, trial_id))


@routes.post("/api/v1/trials/{trial_id}/kill", "KillTrial", allow=Allow.USER)
async def kill_trial(master: MasterDep, caller: CallerDep, trial_id: int) -> Empty:
    """End it at once; the search goes on without it."""
    async with master.db.transaction() as conn:
        owner_id, experiment_id = await listings_trials.owner(conn, trial_id)
        caller.may_change(owner_id, f"trial {trial_id}")
        await unmanaged.kill(conn, trial_id, experiment_id)
    return Empty()


@routes.post("/api/v1/runs/start", "RunPrepareForReporting", allow=Allow.REPORTER)
async def start_run(master: MasterDep, caller: CallerDep, body: PrepareRequest) -> PrepareResponse:
    """A run begins; every rank says so, and gets the same number of its checkpoint storage."""
    async with master.db.transaction() as conn:
        told = body.run_id or caller.task is None
        task = await speaking.for_trial(conn, caller, body.run_id) if told else caller.attempt
        storage = cast("JsonObject | None", body.checkpoint_storage)
        return PrepareResponse(storage_id=await states.run_started(conn, task, storage))


@routes.post("/api/v1/trials/{trial_id}/runner/metadata", "PostTrialRunnerMetadata", allow=Allow.REPORTER)
async def runner_metadata(master: MasterDep, caller: CallerDep, trial_id: int, body: RunnerMetadata) -> Empty:
    """What the script is doing."""
    async with master.db.transaction() as conn:
        task = await speaking.for_trial(conn, caller, trial_id)
        await states.runner_state_reported(conn, task, body.state)
    return Empty()


@routes.post("/api/v1/trials/{trial_id}/progress", "ReportTrialProgress", allow=Allow.REPORTER)
async def report_progress(master: MasterDep, caller: CallerDep, trial_id: int, body: ReportProgressRequest) -> Empty:
    """How far the script is, from 0 to 1."""
    async with master.db.transaction() as conn:
        task = await speaking.for_trial(conn, caller, trial_id)
        await states.progress_reported(conn, task, body.progress)
    return Empty()


@routes.post("/api/v1/trials/{trial_id}/early_exit", "ReportTrialSearcherEarlyExit", allow=Allow.REPORTER)
async def early_exit(master: MasterDep, caller: CallerDep, trial_id: int, body: EarlyExit) -> Empty:
    """The script gives up its hyperparameters: the search puts another sample in its place."""
    async with master.db.transaction() as conn:
        task = await speaking.for_trial(conn, caller, trial_id)
        await states.exited_early(conn, task, body.reason)
    return Empty()
