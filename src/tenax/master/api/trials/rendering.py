"""Trials as messages: the state that each is shown in, and why."""

from __future__ import annotations

from tenax.jsonvalue import JsonObject, as_object
from tenax.master.api.checkpoints.messages import CheckpointState
from tenax.master.api.experiments.messages import State
from tenax.master.api.trials import messages as trials_messages
from tenax.master.store.trials.lists import TrialView
from tenax.wire.message import Document

#: The states of a trial that is about to run, or runs.
_AT_WORK = ("PULLING", "STARTING", "RUNNING")
_LEAVING = "it is asked to save and leave, and has not left yet"


def trial_reason(view: TrialView) -> str:
    """Why it waits, how it ended, that it is asked to leave; of one that runs again, how the run before failed."""
    state = view.shown_state
    leaving = view.experiment_state != "ACTIVE" or state.startswith("STOPPING")
    if leaving and state != "STOPPING_KILLED" and view.attempt_state in ("STARTING", "RUNNING"):
        return _LEAVING
    if state == "QUEUED" and view.wait_reason:
        return view.wait_reason
    if state in _AT_WORK:
        return f"its run before: {view.reason}" if view.restarts and view.reason else ""
    return view.reason


def trial_message(view: TrialView, summary: Document, *, validations: bool = True) -> trials_messages.Trial:
    """A trial as clients see one; ``validations``: with the best and the latest one, and all metrics of these."""
    return trials_messages.Trial(
        id=view.id,
        experiment_id=view.experiment_id,
        state=State(f"STATE_{view.shown_state}"),
        reason=trial_reason(view),
        hparams=view.hparams,
        restarts=view.restarts,
        start_time=view.created_at,
        end_time=view.ended_at,
        total_batches_processed=view.total_batches,
        best_validation=_workload(view.best_validation) if validations else None,
        latest_validation=_workload(view.latest_validation) if validations else None,
        best_checkpoint=_best_checkpoint(view),
        searcher_metric_value=view.best_metric,
        runner_state=view.runner_state,
        progress=view.progress,
        run_id=view.run_id,
        wall_clock_time=view.held_s,
        running_seconds=view.ran_s,
        warm_start_checkpoint_uuid=view.warm_start_checkpoint or "",
        task_id=view.task_id,
        task_ids=view.task_ids,
        checkpoint_count=view.checkpoints,
        total_checkpoint_size=view.checkpoint_bytes,
        summary_metrics=summary,
        log_retention_days=view.log_retention_days,
        log_policy_matched=view.log_policy,
        metadata=view.metadata,
    )


def _best_checkpoint(view: TrialView) -> trials_messages.CheckpointWorkload | None:
    if view.best_uuid is None:
        return None
    return trials_messages.CheckpointWorkload(
        uuid=view.best_uuid,
        end_time=view.best_at,
        state=CheckpointState(f"STATE_{view.best_state}"),
        resources=view.best_resources or {},
        total_batches=view.best_steps or 0,
        metadata=view.best_metadata or {},
    )


def _workload(validation: JsonObject | None) -> trials_messages.MetricsWorkload | None:
    if validation is None:
        return None
    step, at = validation.get("step"), validation.get("at")
    return trials_messages.MetricsWorkload(
        end_time=at if isinstance(at, str) else None,
        metrics=trials_messages.Metrics(avg_metrics=as_object(validation.get("metrics"))),
        total_batches=step if isinstance(step, int) else 0,
    )
