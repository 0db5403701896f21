"""Experiments as messages. A secret of a configuration is shown to its owner and to administrators only."""

from __future__ import annotations

from typing import cast

from tenax.config.display import may_name_secrets
from tenax.config.resolve import written_secrets
from tenax.jsonvalue import JsonObject, as_object
from tenax.master.access.authorization import Caller, may_see_secrets, shown_config
from tenax.master.api.experiments import messages as experiments_messages
from tenax.master.store.experiments.lists import ExperimentView, shown_reason
from tenax.search.methods.registry import is_continuable
from tenax.wire.message import Document


def experiment_reason(view: ExperimentView) -> str:
    """Why it waits, or how it ended, and of one that failed the first cause."""
    return shown_reason(view.shown_state, view.reason, view.wait_reason, view.first_failure, view.trials)


def experiment_message(
    view: ExperimentView, caller: Caller, trial_ids: list[int] | None = None
) -> experiments_messages.Experiment:
    """An experiment as ``caller`` may see it."""
    owner = may_see_secrets(caller, view.owner_id)
    own = written_secrets(view.original_config) if owner and not caller.is_admin else None
    config = shown_config(view.config, caller, view.owner_id, own=own)
    message = outlined(view, as_object(config.get("searcher")), as_object(config.get("integrations")), trial_ids)
    message.config = config
    # Its text cannot be masked line by line: where it may name a secret, others see none of it.
    message.original_config = view.original_config if owner or not may_name_secrets(view.original_config) else ""
    message.hyperparameters = as_object(config.get("hyperparameters"))
    return message


def outlined(
    view: ExperimentView, searcher: JsonObject, integrations: JsonObject, trial_ids: list[int] | None = None
) -> experiments_messages.Experiment:
    """An experiment without its configuration, of which only the two sections given are looked at."""
    return experiments_messages.Experiment(
        id=view.id,
        job_id=view.job_id,
        name=view.name,
        display_name=view.display_name,
        description=view.description,
        notes=view.notes,
        notes_digest=view.notes_digest,
        labels=view.labels,
        state=experiments_messages.State(f"STATE_{view.shown_state}"),
        reason=experiment_reason(view),
        archived=view.archived,
        unmanaged=view.unmanaged,
        start_time=view.created_at,
        end_time=view.ended_at,
        duration=int(view.age_s),
        running_seconds=view.ran_s,
        searcher_type=str(searcher.get("name") or ""),
        searcher_metric=str(searcher.get("metric") or ""),
        continuable=is_continuable(searcher.get("name")),
        resource_pool=view.pool,
        progress=view.progress,
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
