"""What a policy keeps of an experiment's checkpoints, and why; what TensorBoard wrote for it, deleted."""

from __future__ import annotations

from typing import Annotated, cast

import anyio.to_thread
import msgspec
from asyncpg import Connection
from fastapi import Query, Response

from tenax.errors import NotNow
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.experiment import ENDED
from tenax.lifecycle.garbage import Judgement, RetentionPolicy
from tenax.master.access.authorization import Allow
from tenax.master.api.checkpoints import messages
from tenax.master.api.http.callers import CallerDep, MasterDep, TaskDep
from tenax.master.api.http.routing import Routes
from tenax.master.checkpoints import removal_tasks as checkpoint_removal_tasks
from tenax.master.checkpoints.files import delete_tensorboard
from tenax.master.checkpoints.removal import configured_place
from tenax.master.store.checkpoints import gc
from tenax.master.store.checkpoints import lists as checkpoint_lists
from tenax.master.store.checkpoints.gc import GcInputs
from tenax.master.store.checkpoints.lists import CheckpointView
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.users import rows as users
from tenax.storage.port import StorageFailed
from tenax.storage.registry import is_reachable_by_agents
from tenax.wire.message import Empty, rfc3339

routes = Routes("Checkpoints")

#: One number of a policy; absent: as it is.
Count = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


@routes.get("/experiments/{experiment_id}/preview_gc", "PreviewCheckpointGC", allow=Allow.USER, response_class=Response)
async def preview_gc(
    master: MasterDep,
    experiment_id: int,
    save_experiment_best: Count = None,
    save_trial_best: Count = None,
    save_trial_latest: Count = None,
) -> Response:
    """The checkpoints that a policy would delete, in the form of Determined's client."""
    async with master.db.snapshot() as conn:
        now, fates = await _fates(conn, experiment_id, save_experiment_best, save_trial_best, save_trial_latest)
        gone = await checkpoint_lists.get_all(conn, [fate.uuid for fate in fates if not fate.keep])
    body = {"checkpoints": [_previewed(view, now.metric) for view in gone], "metric_name": now.metric}
    return Response(msgspec.json.encode(body), media_type="application/json")


@routes.get("/api/v1/experiments/{experiment_id}/garbage", "GetExperimentGarbage", allow=Allow.USER)
async def get_garbage(
    master: MasterDep,
    experiment_id: int,
    save_experiment_best: Count = None,
    save_trial_best: Count = None,
    save_trial_latest: Count = None,
) -> messages.GetExperimentGarbageResponse:
    """What would go under its policy, or another one; why each of the others is kept; what is being deleted now."""
    async with master.db.snapshot() as conn:
        now, fates = await _fates(conn, experiment_id, save_experiment_best, save_trial_best, save_trial_latest)
        policy = _policy(now, save_experiment_best, save_trial_best, save_trial_latest)
        removals = await gc.removals_of_experiment(conn, experiment_id)
    by_uuid = {checkpoint.uuid: checkpoint for checkpoint in now.saved}
    fate_messages = [
        messages.CheckpointFate(
            uuid=fate.uuid,
            trial_id=by_uuid[fate.uuid].trial_id,
            steps_completed=by_uuid[fate.uuid].steps,
            searcher_metric=by_uuid[fate.uuid].metric,
            size=now.sizes[fate.uuid],
            keep=fate.keep,
            reasons=list(fate.reasons),
        )
        for fate in fates
    ]
    return messages.GetExperimentGarbageResponse(
        policy=messages.CheckpointPolicy(
            save_experiment_best=policy.experiment_best,
            save_trial_best=policy.trial_best,
            save_trial_latest=policy.trial_latest,
        ),
        metric=now.metric,
        smaller_is_better=now.smaller_is_better,
        checkpoints=fate_messages,
        kept_size=sum(message.size for message in fate_messages if message.keep),
        freed_size=sum(message.size for message in fate_messages if not message.keep),
        removals=[
            messages.CheckpointRemoval(
                uuid=removal.uuid,
                unreported=removal.unreported,
                reason=removal.reason,
                tries=removal.tries,
                failure=removal.failure,
                asked_at=removal.asked_at,
                next_try_at=removal.retry_at,
            )
            for removal in removals
        ],
    )


@routes.delete("/api/v1/experiments/{experiment_id}/tensorboard-files", "DeleteTensorboardFiles", allow=Allow.USER)
async def delete_tensorboard_files(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty:
    """Delete what TensorBoard wrote for it; it must have ended. What is gone already is no error.

    Where the master does not reach it, a task on an agent does it later.
    """
    async with master.db.connection() as conn:
        experiment = await experiments.get(conn, experiment_id)
        caller.may_change(experiment.owner_id, f"experiment {experiment_id}")
        config = (await experiments.plan(conn, experiment_id)).config
        owner = await users.file_owner(conn, experiment.owner_id, elsewhere=experiment.unmanaged)
    if experiment.state not in ENDED:
        raise NotNow(f"experiment {experiment_id} still writes TensorBoard files: cancel or kill it first")
    own, roots = configured_place(config), master.checkpoint_roots
    cluster_id = str(master.cluster.cluster_id)
    try:
        await anyio.to_thread.run_sync(
            lambda: delete_tensorboard(roots.place_of(None, own, owner), cluster_id, experiment_id)
        )
    except (NotNow, StorageFailed):
        if own is None or not is_reachable_by_agents(own):
            raise
        async with master.db.transaction() as conn:
            await checkpoint_removal_tasks.delete_tensorboard(conn, master.settings, experiment, own, cluster_id)
    return Empty()


@routes.post("/api/v1/checkpoints/removals", "ReportRemovals", allow=Allow.TASK)
async def report_removals(master: MasterDep, task: TaskDep, body: messages.ReportRemovalsRequest) -> Empty:
    """A task that deletes files on an agent tells what became of them."""
    async with master.db.transaction() as conn:
        await checkpoint_removal_tasks.reported(conn, task.task_id, {report.uuid: report for report in body.removals})
    return Empty()


async def _fates(
    conn: Connection, experiment_id: int, best: int | None, trial_best: int | None, latest: int | None
) -> tuple[GcInputs, tuple[Judgement, ...]]:
    """What becomes of each checkpoint under its policy with these numbers in place. Raises NotFound."""
    now = await gc.load_inputs(conn, experiment_id)
    return now, await anyio.to_thread.run_sync(now.fates, _policy(now, best, trial_best, latest))


def _policy(now: GcInputs, best: int | None, trial_best: int | None, latest: int | None) -> RetentionPolicy:
    return RetentionPolicy(
        now.policy.experiment_best if best is None else best,
        now.policy.trial_best if trial_best is None else trial_best,
        now.policy.trial_latest if latest is None else latest,
    )


def _previewed(view: CheckpointView, metric: str) -> JsonObject:
    values: JsonObject = {} if view.metric is None else {metric: view.metric}
    shown: JsonObject = {
        "TrialID": view.trial_id,
        "StepsCompleted": view.steps_completed,
        "State": view.state,
        "ValidationMetrics": values,
        "UUID": view.uuid,
        "Resources": cast("dict[str, Json]", view.resources),
        "ReportTime": rfc3339(view.reported_at),
    }
    # The client lists those that have it.
    return {**shown, "step": {"validation": {"metrics": values}}} if values else shown
