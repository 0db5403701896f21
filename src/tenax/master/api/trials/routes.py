"""Trials: shown with a summary of their metrics, killed, and what their scripts report besides metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.http import callers
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.trials import messages
from tenax.master.api.trials.rendering import trial_message
from tenax.master.ingest import states
from tenax.master.store.experiments import unmanaged
from tenax.master.store.metrics import summaries
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import TrialView
from tenax.wire.message import Empty

routes = Routes("Trials")


@routes.get("/api/v1/trials/{trial_id}", "GetTrial", allow=Allow.USER)
async def get_trial(master: MasterDep, trial_id: int) -> messages.GetTrialResponse:
    """One trial."""
    async with master.db.connection() as conn:
        return messages.GetTrialResponse(trial=await whole_trial(conn, trial_id))


@routes.post("/api/v1/trials/{trial_id}/kill", "KillTrial", allow=Allow.USER)
async def kill_trial(master: MasterDep, caller: CallerDep, trial_id: int) -> Empty:
    """End it at once; the search goes on without it."""
    async with master.db.transaction() as conn:
        owner_id, experiment_id = await trial_lists.owner(conn, trial_id)
        caller.may_change(owner_id, f"trial {trial_id}")
        await unmanaged.kill(conn, trial_id, experiment_id)
    return Empty()


@routes.post("/api/v1/runs/start", "RunPrepareForReporting", allow=Allow.REPORTER)
async def start_run(master: MasterDep, caller: CallerDep, body: messages.PrepareRequest) -> messages.PrepareResponse:
    """A run begins; every rank says so, and gets the same number of its checkpoint storage."""
    async with master.db.transaction() as conn:
        named = body.run_id or caller.task is None
        task = await callers.for_trial(conn, caller, body.run_id) if named else caller.attempt
        return messages.PrepareResponse(storage_id=await states.run_started(conn, task, body.checkpoint_storage))


@routes.post("/api/v1/trials/{trial_id}/runner/metadata", "PostTrialRunnerMetadata", allow=Allow.REPORTER)
async def runner_metadata(master: MasterDep, caller: CallerDep, trial_id: int, body: messages.RunnerMetadata) -> Empty:
    """What the script is doing."""
    async with master.db.transaction() as conn:
        task = await callers.for_trial(conn, caller, trial_id)
        await states.runner_state_reported(conn, task, body.state)
    return Empty()


@routes.post("/api/v1/trials/{trial_id}/progress", "ReportTrialProgress", allow=Allow.REPORTER)
async def report_progress(
    master: MasterDep, caller: CallerDep, trial_id: int, body: messages.ReportProgressRequest
) -> Empty:
    """How far the script is, from 0 to 1."""
    async with master.db.transaction() as conn:
        task = await callers.for_trial(conn, caller, trial_id)
        await states.progress_reported(conn, task, body.progress)
    return Empty()


@routes.post("/api/v1/trials/{trial_id}/early_exit", "ReportTrialSearcherEarlyExit", allow=Allow.REPORTER)
async def early_exit(master: MasterDep, caller: CallerDep, trial_id: int, body: messages.EarlyExit) -> Empty:
    """The script gives up its hyperparameters: the search puts another sample in its place."""
    async with master.db.transaction() as conn:
        task = await callers.for_trial(conn, caller, trial_id)
        await states.exited_early(conn, task, body.reason)
    return Empty()


#: Under which name the summary of a group stands; any other group keeps its own.
SUMMARY_NAMES = {"training": "avg_metrics", "validation": "validation_metrics"}


async def whole_trial(conn: Connection, trial_id: int) -> messages.Trial:
    """One trial. Raises NotFound."""
    return (await whole_trials(conn, [await trial_lists.get(conn, trial_id)]))[0]


async def whole_trials(conn: Connection, views: Sequence[TrialView]) -> list[messages.Trial]:
    """Trials in the order that is given."""
    return [trial_message(*entry) for entry in await with_summaries(conn, views)]


async def with_summaries(
    conn: Connection, views: Sequence[TrialView], columns: Sequence[str] | None = None
) -> list[tuple[TrialView, JsonObject]]:
    """Trials in the order that is given, each with what its metrics come to; of some columns, or of all."""
    summed = await summaries.of_trials(conn, [view.id for view in views], columns)
    return [(view, summary_message(summed[view.id])) for view in views]


def summary_message(summed: Mapping[str, Mapping[str, JsonObject]]) -> JsonObject:
    """group -> metric -> what its values come to."""
    return {SUMMARY_NAMES.get(group, group): dict(metrics) for group, metrics in summed.items()}
