"""Making experiments, and looking ahead at what one would do."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import cast

import anyio.to_thread

from tenax.config import ResolvedExperiment, parse_experiment, without_secrets
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import experiment_message
from tenax.master.auth import Caller
from tenax.master.context import Master
from tenax.master.defaults import layers
from tenax.master.store import creation, listings_experiments, projects, unmanaged
from tenax.master.submission import Submission, examine
from tenax.search import view
from tenax.wire.api.experiments import (
    CreateExperimentRequest,
    CreateExperimentResponse,
    Experiment,
    PreviewRequest,
    PreviewResponse,
    SearchSummary,
    SearchUnit,
    State,
    TrialSummary,
)
from tenax.wire.api.message import Document

routes = Routes("Experiments")


@routes.post("/api/v1/experiments", "CreateExperiment", allow=Allow.USER)
async def create_experiment(
    master: MasterDep, caller: CallerDep, body: CreateExperimentRequest
) -> CreateExperimentResponse:
    """Submit an experiment; with ``validateOnly`` only say what it would be."""
    if not body.config.strip():
        raise InvalidInput("no configuration was given: submit the YAML text of one")
    asked = await examine(master.db, master.settings, caller.person.id, body)
    if body.validate_only:
        return _reply(asked, imagined(asked, caller))
    async with master.db.transaction() as conn:
        # Not archived, moved or deleted meanwhile.
        await projects.hold(conn, asked.new.project_id)
        if body.unmanaged:
            experiment_id = await unmanaged.create_experiment(conn, asked.new)
        else:
            experiment_id = await creation.create(conn, asked.new, activate=body.activate)
        made = await listings_experiments.get(conn, experiment_id)
    return _reply(asked, experiment_message(made, caller))


@routes.post("/api/v1/preview-hp-search", "PreviewHPSearch", allow=Allow.USER)
async def preview_search(master: MasterDep, body: PreviewRequest) -> PreviewResponse:
    """How many trials would train how long, if none failed."""
    config = cast(JsonObject, body.config)
    resolved = await anyio.to_thread.run_sync(_resolve_preview, config, master, body.seed)
    unit = view.time_metric(resolved.search) or ""
    rows = [
        TrialSummary(
            count=row.count,
            unit=SearchUnit(name=unit, value=row.units or 0, max_length=row.units is None),
        )
        for row in view.preview(resolved.search)
    ]
    searcher = cast(Document, without_secrets(resolved.document).get("searcher") or {})
    return PreviewResponse(summary=SearchSummary(config=searcher, trials=rows))


def _reply(asked: Submission, experiment: Experiment) -> CreateExperimentResponse:
    return CreateExperimentResponse(
        experiment=experiment,
        config=experiment.config,
        warnings=list(asked.warnings),
        notices=list(asked.notices),
    )


def imagined(asked: Submission, caller: Caller) -> Experiment:
    """What the experiment would be; it has no number."""
    searcher = asked.resolved.document.get("searcher")
    named = searcher if isinstance(searcher, dict) else {}
    return Experiment(
        id=0,
        job_id="",
        name=asked.new.name,
        description=asked.new.description,
        labels=list(asked.new.labels),
        state=State.PAUSED,
        start_time=datetime.now(timezone.utc),
        config=cast(Document, asked.resolved.document),
        original_config=asked.new.original_config,
        searcher_type=str(named.get("name") or ""),
        searcher_metric=str(named.get("metric") or ""),
        hyperparameters=cast(Document, asked.resolved.document.get("hyperparameters") or {}),
        resource_pool=asked.new.pool,
        model_definition_size=asked.code_size,
        forked_from=asked.new.parent_id,
        user_id=caller.person.id,
        username=caller.person.username,
        project_id=asked.project.id,
        project_name=asked.project.name,
        workspace_id=asked.project.workspace_id,
        workspace_name=asked.project.workspace_name,
    )


def _resolve_preview(config: JsonObject, master: Master, seed: int) -> ResolvedExperiment:
    settings = master.settings
    pool = settings.pool(settings.default_compute_pool)
    assert pool is not None, "settings are checked: the default pool is one of the pools"
    return parse_experiment(config, rng=random.Random(seed), layers=layers(settings, pool), managed=False)
