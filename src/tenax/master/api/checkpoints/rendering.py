"""Checkpoints as messages. A secret of a configuration is shown to its owner and to administrators only."""

from __future__ import annotations

from tenax.config.resolve import written_secrets
from tenax.master.access.authorization import Caller, may_see_secrets, shown_config
from tenax.master.api.checkpoints import messages as checkpoints_messages
from tenax.master.store.checkpoints.lists import CheckpointView


def checkpoint_message(view: CheckpointView, caller: Caller) -> checkpoints_messages.Checkpoint:
    """A checkpoint as ``caller`` may see it."""
    owner = may_see_secrets(caller, view.owner_id) and not caller.is_admin
    own = written_secrets(view.original_config) if owner and view.original_config else None
    config = None if view.config is None else shown_config(view.config, caller, view.owner_id, own=own)
    validation = None if view.metrics is None else checkpoints_messages.TrainingMetrics(avg_metrics=view.metrics)
    return checkpoints_messages.Checkpoint(
        uuid=view.uuid,
        task_id=view.task_id,
        allocation_id=view.allocation_id,
        report_time=view.reported_at,
        resources=view.resources,
        metadata=view.metadata,
        state=checkpoints_messages.CheckpointState(f"STATE_{view.state}"),
        storage_id=view.storage_id,
        going=": ".join(part for part in (view.removal_reason, view.removal_failure) if part) or None,
        training=checkpoints_messages.CheckpointTraining(
            trial_id=view.trial_id,
            experiment_id=view.experiment_id,
            experiment_config=config,
            hparams=view.hparams,
            training_metrics=checkpoints_messages.TrainingMetrics(avg_metrics=view.trained or {}),
            validation_metrics=validation or checkpoints_messages.TrainingMetrics(),
            searcher_metric=view.metric,
        ),
    )
