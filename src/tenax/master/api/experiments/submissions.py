"""Experiments: submitted, previewed before they are, and continued after they have ended."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timezone
from typing import cast

import anyio.to_thread
from fastapi import Response

from tenax.config.master import PoolSettings
from tenax.config.resolve import ResolvedExperiment, experiment_schema, parse_experiment, wishes_of, with_priority
from tenax.display.secrets import without_secrets
from tenax.errors import InvalidInput, NotNow, TryAgain
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import RUNNING, ExperimentEvent, ExperimentState, step
from tenax.master.access.authorization import Allow, Caller, shown_config
from tenax.master.api.experiments import messages
from tenax.master.api.experiments.rendering import experiment_message
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.paging import JSON, as_json
from tenax.master.api.http.requests import UploadDep
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.experiments import continuing, creation, unmanaged
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.lists import ExperimentView
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.workspaces import projects
from tenax.master.submission import search_steps
from tenax.master.submission.continuing import check_offered, continued, overlaid
from tenax.master.submission.experiments import (
    SLOTS_EXCEEDED,
    Submission,
    examine,
    layers,
    pool_of,
    unfit_for,
    wait_notice,
)
from tenax.master.submission.forecasts import forecast_of
from tenax.master.submission.messages import CreateExperimentRequest
from tenax.scheduler.forecast import Forecast
from tenax.scheduler.reasons import class_of
from tenax.search import view

routes = Routes("Experiments")


@routes.post("/api/v1/experiments", "CreateExperiment", allow=Allow.USER, creates=True)
async def create_experiment(
    master: MasterDep, caller: CallerDep, body: CreateExperimentRequest, upload: UploadDep
) -> messages.CreateExperimentResponse:
    """Submit an experiment; with ``validateOnly`` only say what it would be."""
    if not body.config.strip():
        raise InvalidInput("no configuration was given: submit the YAML text of one")
    submission = await examine(master.db, master.settings, master.examiners, caller.person.id, body, upload)
    if body.validate_only:
        forecast = (
            None if body.unmanaged else await forecast_of(master.db, master.settings, master.examiners, submission)
        )
        return _reply(submission, imagined(submission, caller), _start(forecast))
    async with master.db.transaction() as conn:
        # Not archived, moved or deleted meanwhile.
        await projects.hold(conn, submission.new.project_id)
        if body.unmanaged:
            experiment_id = await unmanaged.create_experiment(conn, submission.new)
        else:
            experiment_id = await creation.create(conn, submission.new, activate=body.activate)
            # Scripts list the trials, act on them and continue them at once.
            await search_steps.start(conn, experiment_id)
        made = await experiment_lists.get(conn, experiment_id)
    return _reply(submission, await master.readers.run(experiment_message, made, caller))


@routes.get(
    "/api/v1/config-schemas/experiment",
    "GetConfigSchema",
    allow=Allow.USER,
    response_model=messages.GetConfigSchemaResponse,
)
async def get_config_schema() -> Response:
    """What a configuration may hold, for editors that complete it and mark what is wrong."""
    # The first one reads our sources.
    return Response(await anyio.to_thread.run_sync(_schema_document), media_type=JSON)


def _schema_document() -> bytes:
    return as_json(messages.GetConfigSchemaResponse(json_schema=experiment_schema()))


@routes.post("/api/v1/preview-hp-search", "PreviewHPSearch", allow=Allow.USER)
async def preview_search(master: MasterDep, body: messages.PreviewRequest) -> messages.PreviewResponse:
    """How many trials would train how long, if none failed."""
    config = body.config
    resolved = await master.examiners.run(_resolve_preview, config, master, body.seed)
    unit = view.time_metric(resolved.search) or ""
    rows = [
        messages.TrialSummary(
            count=row.count,
            unit=messages.SearchUnit(name=unit, value=row.units or 0, max_length=row.units is None),
        )
        for row in view.preview(resolved.search)
    ]
    searcher = cast(JsonObject, without_secrets(resolved.document).get("searcher") or {})
    return messages.PreviewResponse(summary=messages.SearchSummary(config=searcher, trials=rows))


def _reply(
    submission: Submission, experiment: messages.Experiment, forecast: messages.StartForecast | None = None
) -> messages.CreateExperimentResponse:
    return messages.CreateExperimentResponse(
        experiment=experiment,
        config=experiment.config,
        warnings=list(submission.warnings),
        notices=list(submission.notices),
        forecast=forecast,
    )


def _start(forecast: Forecast | None) -> messages.StartForecast | None:
    if forecast is None:
        return None
    likely = forecast.likely
    return messages.StartForecast(
        trials=forecast.requests,
        starting=forecast.starting,
        leaving=len(forecast.leaving),
        reason=forecast.reason,
        wait_class=class_of(forecast.reason),
        likely_start=None if likely is None else datetime.fromtimestamp(likely.at, timezone.utc),
        sureness=None if likely is None else likely.sureness,
    )


def imagined(submission: Submission, caller: Caller) -> messages.Experiment:
    """What the experiment would be; it has no number."""
    resolved = submission.resolved
    config = shown_config(resolved.document, caller, caller.person.id, own=resolved.own)
    searcher = config.get("searcher")
    named = searcher if isinstance(searcher, dict) else {}
    return messages.Experiment(
        id=0,
        job_id="",
        name=submission.new.name,
        description=submission.new.description,
        labels=list(submission.new.labels),
        state=messages.State.PAUSED,
        start_time=datetime.now(timezone.utc),
        config=config,
        original_config=submission.new.original_config,
        searcher_type=str(named.get("name") or ""),
        searcher_metric=str(named.get("metric") or ""),
        hyperparameters=cast(JsonObject, config.get("hyperparameters") or {}),
        resource_pool=submission.new.pool,
        model_definition_size=submission.code_size,
        forked_from=submission.new.parent_id,
        user_id=caller.person.id,
        username=caller.person.username,
        project_id=submission.project.id,
        project_name=submission.project.name,
        workspace_id=submission.project.workspace_id,
        workspace_name=submission.project.workspace_name,
    )


def _resolve_preview(config: JsonObject, master: Master, seed: int) -> ResolvedExperiment:
    settings = master.settings
    pool = settings.pool(settings.default_compute_pool)
    assert pool is not None, "settings are checked: the default pool is one of the pools"
    return parse_experiment(config, rng=random.Random(seed), layers=layers(settings, pool), managed=False)


@routes.post("/api/v1/experiments/continue", "ContinueExperiment", allow=Allow.USER, creates=True)
async def continue_experiment(
    master: MasterDep, caller: CallerDep, body: messages.ContinueExperimentRequest
) -> messages.ContinueExperimentResponse:
    """Let an experiment that has ended go on, from where its trials saved, with other settings if need be."""
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, body.id)
    caller.may_change(view.owner_id, f"experiment {body.id}")
    _check_continuable(view)
    pool, resolved, wished = await master.examiners.run(_overlaid, master, view, body.override_config)
    async with master.db.transaction() as conn:
        await projects.hold(conn, view.project_id)
        held = await experiments.lock(conn, body.id)
        stored = (await experiments.plan(conn, body.id)).config
        if stored != view.config:
            raise TryAgain("the experiment was changed meanwhile: continue it again")
        unfit = await unfit_for(conn, master.settings, pool, view.workspace_id, view.owner_id, resolved)
        new = continued(body.id, stored, resolved, pool, await continuing.trials_of(conn, body.id))
        resources = resolved.experiment.resources
        admitted = await quotas.admit(
            conn,
            view.owner_id,
            view.workspace_id,
            wished=wished,
            usual=resources.priority or pool.scheduler.default_priority,
            slots=resources.slots_per_trial,
        )
        new = replace(new, priority=admitted.priority, config=with_priority(new.config, admitted.priority))
        await continuing.go_on(conn, held, new)
        made = await experiment_lists.get(conn, body.id)
    notices = [*resolved.notices, *admitted.notices, *wait_notice(unfit)]
    experiment = await master.readers.run(experiment_message, made, caller)
    return messages.ContinueExperimentResponse(
        experiment=experiment, warnings=[SLOTS_EXCEEDED] if unfit else [], notices=notices
    )


def _check_continuable(view: ExperimentView) -> None:
    """What needs no lock to be known: it is said before the configuration is looked at. Raises NotNow."""
    if view.unmanaged:
        raise NotNow(f"experiment {view.id} is trained outside of this cluster: continue it where its script runs")
    state = ExperimentState(view.state)
    if state not in RUNNING:
        # First: whoever waits for its end, or unarchives it, would do so for nothing.
        check_offered(view.id, view.config)
    step(state, ExperimentEvent.CONTINUE)
    if view.archived:
        raise NotNow(f"experiment {view.id} is archived: unarchive it before you continue it")


def _overlaid(
    master: Master, view: ExperimentView, override: str
) -> tuple[PoolSettings, ResolvedExperiment, int | None]:
    """Its pool, its configuration, and the priority that the override asks for, if it does."""
    wished = wishes_of(override, template=view.config)
    pool = pool_of(master.settings, wished.resource_pool, wished.slots_per_trial)
    return pool, overlaid(view.config, override, pool), wishes_of(override).priority
