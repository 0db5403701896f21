"""Rows as messages. A secret of a configuration is shown to its owner and to administrators only."""

from __future__ import annotations

from typing import cast

from tenax.config import stored_experiment, without_secrets
from tenax.jsonvalue import Json, JsonObject
from tenax.master.auth import Caller
from tenax.master.store.listings_checkpoints import CheckpointView
from tenax.master.store.listings_experiments import Advance, ExperimentView
from tenax.master.store.listings_trials import TrialView
from tenax.master.store.users import User
from tenax.search import grid
from tenax.search.methods.registry import is_on_grid
from tenax.wire.api import checkpoints as wire_checkpoints
from tenax.wire.api import experiments as wire_experiments
from tenax.wire.api import trials as wire_trials
from tenax.wire.api import users as wire_users
from tenax.wire.api.message import Document

#: The states of a trial that is about to run, or runs.
_AT_WORK = ("PULLING", "STARTING", "RUNNING")
_ASKED = "it is asked to save and leave, and has not left yet"
#: What the attempt of an ACTIVE trial is shown as.
_ATTEMPTS = {
    "PENDING": "QUEUED",
    "PULLING": "PULLING",
    "ASSIGNED": "STARTING",
    "STARTING": "STARTING",
    "RUNNING": "RUNNING",
    "TERMINATING": "RUNNING",
}


def user_message(user: User) -> wire_users.User:
    """A user as clients see one; nothing of the password."""
    group = None
    if user.agent_uid is not None or user.agent_gid is not None:
        group = wire_users.AgentUserGroup(
            agent_uid=user.agent_uid,
            agent_gid=user.agent_gid,
            agent_user=user.agent_user,
            agent_group=user.agent_group,
        )
    return wire_users.User(
        id=user.id,
        username=user.username,
        admin=user.admin,
        active=user.active,
        display_name=user.display_name,
        agent_user_group=group,
        modified_at=user.modified_at,
        last_auth_at=user.last_login_at,
        remote=user.remote,
    )


def may_see_secrets(caller: Caller, owner_id: int | None) -> bool:
    """Whether a configuration of ``owner_id`` is shown to ``caller`` as it is."""
    return caller.is_admin or (caller.user is not None and caller.user.id == owner_id)


def shown_config(config: JsonObject, caller: Caller, owner_id: int | None) -> Document:
    """A configuration as ``caller`` may see it."""
    return cast(Document, config if may_see_secrets(caller, owner_id) else without_secrets(config))


def experiment_reason(view: ExperimentView) -> str:
    """Why it waits, or how it ended, and of one that failed the first cause."""
    if view.wait_reason and view.shown_state in (None, "QUEUED"):
        return view.wait_reason
    if not view.first_failure:
        return view.reason
    return f"{view.reason}: {view.first_failure}" if view.trials == 1 else f"{view.reason}; first: {view.first_failure}"


def experiment_message(
    view: ExperimentView, caller: Caller, trial_ids: list[int] | None = None
) -> wire_experiments.Experiment:
    """An experiment as ``caller`` may see it."""
    stored = view.config
    config = shown_config(stored, caller, view.owner_id)
    shown = cast(JsonObject, config)
    message = outlined(view, _object(shown.get("searcher")), _object(shown.get("integrations")), trial_ids)
    message.config = config
    # Its text cannot be masked line by line: where something is hidden, the text is.
    message.original_config = view.original_config if config == stored else ""
    message.hyperparameters = cast(Document, _object(shown.get("hyperparameters")))
    return message


def outlined(
    view: ExperimentView, searcher: JsonObject, integrations: JsonObject, trial_ids: list[int] | None = None
) -> wire_experiments.Experiment:
    """An experiment without its configuration, of which only the two sections given are looked at."""
    return wire_experiments.Experiment(
        id=view.id,
        job_id=view.job_id,
        name=view.name,
        display_name=view.display_name,
        description=view.description,
        notes=view.notes,
        labels=view.labels,
        state=wire_experiments.State(f"STATE_{view.shown_state or view.state}"),
        reason=experiment_reason(view),
        archived=view.archived,
        unmanaged=view.unmanaged,
        start_time=view.created_at,
        end_time=view.ended_at,
        duration=int(view.age_s),
        searcher_type=str(searcher.get("name") or ""),
        searcher_metric=str(searcher.get("metric") or ""),
        resource_pool=view.pool,
        progress=experiment_progress(view),
        num_trials=view.trials,
        trial_ids=trial_ids or [],
        best_trial_id=view.best_trial_id,
        best_trial_searcher_metric=view.best_metric,
        checkpoint_count=view.checkpoints,
        checkpoint_size=view.checkpoint_bytes,
        model_definition_size=view.code_bytes,
        forked_from=view.parent_id,
        parent_archived=view.parent_archived,
        user_id=view.owner_id,
        username=view.username,
        project_id=view.project_id,
        project_name=view.project_name,
        project_owner_id=view.project_owner_id,
        workspace_id=view.workspace_id,
        workspace_name=view.workspace_name,
        external_experiment_id=view.external_id,
        external_trial_id=view.external_trial_id,
        pachyderm_integration=cast("Document | None", integrations.get("pachyderm")),
    )


def experiment_progress(view: ExperimentView | Advance) -> float:
    """Share of the trials that the search may make which are over, with what live ones told of themselves."""
    if view.state == "COMPLETED":
        return 1.0
    expected = view.expected_trials
    if expected is None and is_on_grid(_object(view.config.get("searcher")).get("name")):
        # Written by a release that did not count the points of a grid.
        expected = grid.size(stored_experiment(view.config).search.hyperparameters)
    return min(1.0, (view.trials_ended + view.progress_told) / max(expected or 1, view.trials, 1))


def trial_reason(view: TrialView) -> str:
    """Why it waits, how it ended, that it is asked to leave; of one that runs again, how the run before failed."""
    state = trial_state(view)
    asked = view.experiment_state != "ACTIVE" or state.startswith("STOPPING")
    if asked and state != "STOPPING_KILLED" and view.attempt_state in ("STARTING", "RUNNING"):
        return _ASKED
    if state == "QUEUED" and view.wait_reason:
        return view.wait_reason
    if state in _AT_WORK:
        return f"its run before: {view.reason}" if view.restarts and view.reason else ""
    return view.reason


def trial_message(view: TrialView, summary: Document) -> wire_trials.Trial:
    """A trial as clients see one."""
    return wire_trials.Trial(
        id=view.id,
        experiment_id=view.experiment_id,
        state=wire_experiments.State(f"STATE_{trial_state(view)}"),
        reason=trial_reason(view),
        hparams=cast(Document, view.hparams),
        restarts=view.restarts,
        start_time=view.created_at,
        end_time=view.ended_at,
        total_batches_processed=view.total_batches,
        best_validation=_workload(view.best_validation),
        latest_validation=_workload(view.latest_validation),
        best_checkpoint=_best_checkpoint(view),
        searcher_metric_value=view.best_metric,
        runner_state=view.runner_state,
        progress=view.progress,
        run_id=view.run_id,
        wall_clock_time=view.held_s,
        warm_start_checkpoint_uuid=view.warm_start_checkpoint or "",
        task_id=view.task_id,
        task_ids=[view.task_id],
        checkpoint_count=view.checkpoints,
        total_checkpoint_size=view.checkpoint_bytes,
        summary_metrics=summary,
        log_retention_days=view.log_retention_days,
        log_policy_matched=view.log_policy,
        metadata=cast("Document | None", view.metadata),
    )


def trial_state(view: TrialView) -> str:
    """The state that a trial is shown in: its own once it ended, else what it is on the way to, else its attempt's."""
    if view.state != "ACTIVE":
        return view.state
    if view.unmanaged:
        return "RUNNING" if view.run_id else "QUEUED"
    if view.wish == "KILL" or view.experiment_state == "STOPPING_KILLED":
        return "STOPPING_KILLED"
    if view.wish == "CANCEL" or view.experiment_state == "STOPPING_CANCELED":
        return "STOPPING_CANCELED"
    if view.wish == "STOP":
        return "STOPPING_COMPLETED"
    if view.attempt_state is None:
        return "PAUSED" if view.experiment_state == "PAUSED" else "QUEUED"
    return _ATTEMPTS[view.attempt_state]


def checkpoint_message(view: CheckpointView, caller: Caller) -> wire_checkpoints.Checkpoint:
    """A checkpoint as ``caller`` may see it."""
    config = None if view.config is None else shown_config(view.config, caller, view.owner_id)
    validation = (
        None if view.metrics is None else wire_checkpoints.TrainingMetrics(avg_metrics=cast(Document, view.metrics))
    )
    return wire_checkpoints.Checkpoint(
        uuid=view.uuid,
        task_id=view.task_id,
        allocation_id=view.allocation_id,
        report_time=view.reported_at,
        resources=view.resources,
        metadata=cast(Document, view.metadata),
        state=wire_checkpoints.CheckpointState(f"STATE_{view.state}"),
        storage_id=view.storage_id,
        going=": ".join(words for words in (view.going, view.going_failure) if words) or None,
        training=wire_checkpoints.CheckpointTraining(
            trial_id=view.trial_id,
            experiment_id=view.experiment_id,
            experiment_config=config,
            hparams=cast("Document | None", view.hparams),
            training_metrics=wire_checkpoints.TrainingMetrics(avg_metrics=cast(Document, view.trained or {})),
            validation_metrics=validation or wire_checkpoints.TrainingMetrics(),
            searcher_metric=view.metric,
        ),
    )


def _best_checkpoint(view: TrialView) -> wire_trials.CheckpointWorkload | None:
    if view.best_uuid is None:
        return None
    return wire_trials.CheckpointWorkload(
        uuid=view.best_uuid,
        end_time=view.best_at,
        state=wire_checkpoints.CheckpointState(f"STATE_{view.best_state}"),
        resources=view.best_resources or {},
        total_batches=view.best_steps or 0,
        metadata=cast(Document, view.best_metadata or {}),
    )


def _workload(validation: JsonObject | None) -> wire_trials.MetricsWorkload | None:
    if validation is None:
        return None
    step, at = validation.get("step"), validation.get("at")
    return wire_trials.MetricsWorkload(
        end_time=at if isinstance(at, str) else None,
        metrics=wire_trials.Metrics(avg_metrics=cast(Document, _object(validation.get("metrics")))),
        total_batches=step if isinstance(step, int) else 0,
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
