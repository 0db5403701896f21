"""Runs: found by any column, and what people wrote about them. What is done to many: `actions`, beside this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from fastapi import Response

from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller, shown_config
from tenax.master.api.experiments.messages import State
from tenax.master.api.experiments.queries import narrowed
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.paging import NONE, Rendering, as_json, listed, search_page
from tenax.master.api.http.routing import Routes
from tenax.master.api.runs.messages import (
    FlatRun,
    FlatRunExperiment,
    MetadataValuesResponse,
    RunMetadata,
    SearchRunsRequest,
    SearchRunsResponse,
)
from tenax.master.api.trials.routes import summary_message
from tenax.master.store.database.filter_text import parse, parse_sort
from tenax.master.store.metrics import summaries
from tenax.master.store.runs import lists as run_lists
from tenax.master.store.runs import metadata as run_metadata
from tenax.master.store.runs.lists import RUNS, RunView
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.workspaces import projects
from tenax.search.methods.registry import is_one_trial

routes = Routes("Runs")


@routes.post("/api/v1/runs", "SearchRuns", allow=Allow.USER, response_model=SearchRunsResponse)
async def search_runs(master: MasterDep, caller: CallerDep, body: SearchRunsRequest) -> Response:
    """Runs that a filter finds, in order. Limit 0 is 100, -1 is all, -2 is none (only the count)."""
    filters, sorts = parse(body.filter), parse_sort(body.sort)
    project_id = body.project_id or None
    async with master.db.snapshot() as conn:
        if project_id is not None:
            await projects.get(conn, project_id)
        filters = await narrowed(conn, caller, project_id, filters, body.query, RUNS)
        page, pagination = search_page(await run_lists.count(conn, project_id, filters), body.offset, body.limit)
        ids: list[int] = []
        if body.limit != NONE:
            ids = await run_lists.search(conn, project_id, filters, sorts, page)

        async def load(part: Sequence[int]) -> list[tuple[RunView, JsonObject]]:
            views = await run_lists.views(conn, list(part))
            summed = await summaries.of_trials(conn, [view.id for view in views], body.metrics)
            return [(view, summary_message(summed[view.id])) for view in views]

        def render(entry: tuple[RunView, JsonObject]) -> bytes:
            view, summary = entry
            return as_json(_flat_run(view, caller, summary))

        return await listed(master, ids, Rendering("runs", load, render), pagination)


@routes.get("/api/v1/runs/{run_id}/metadata", "GetRunMetadata", allow=Allow.USER)
async def get_metadata(master: MasterDep, run_id: int) -> RunMetadata:
    """What was written about a run; empty where nothing was."""
    async with master.db.connection() as conn:
        await trial_lists.owner(conn, run_id)
        metadata = await run_metadata.get(conn, run_id)
    return RunMetadata(metadata=metadata)


@routes.post("/api/v1/runs/{run_id}/metadata", "PostRunMetadata", allow=Allow.USER)
async def post_metadata(master: MasterDep, caller: CallerDep, run_id: int, body: RunMetadata) -> RunMetadata:
    """Write metadata of a run, instead of what was there."""
    async with master.db.transaction() as conn:
        owner_id, _ = await trial_lists.owner(conn, run_id)
        caller.may_change(owner_id, f"run {run_id}")
        await run_metadata.replace(conn, run_id, body.metadata)
    return body


@routes.get("/api/v1/projects/{project_id}/metadata/{key:path}", "GetMetadataValues", allow=Allow.USER)
async def get_values(master: MasterDep, project_id: int, key: str) -> MetadataValuesResponse:
    """The texts that runs of a project have under a key of their metadata, sorted."""
    async with master.db.connection() as conn:
        await projects.get(conn, project_id)
        return MetadataValuesResponse(values=await run_metadata.values(conn, project_id, key))


def _flat_run(view: RunView, caller: Caller, summary: JsonObject) -> FlatRun:
    metric = view.best_metric
    return FlatRun(
        id=view.id,
        local_id=view.local_id,
        state=State(f"STATE_{view.state}"),
        start_time=view.created_at,
        end_time=view.ended_at,
        duration=int(view.age_s),
        running_seconds=view.ran_s,
        hyperparameters=view.hparams,
        summary_metrics=summary,
        searcher_metric_value=metric if metric is not None and math.isfinite(metric) else None,
        metadata=view.metadata,
        labels=view.labels,
        checkpoint_size=view.checkpoint_bytes,
        checkpoint_count=view.checkpoints,
        archived=view.archived,
        parent_archived=view.parent_archived,
        project_id=view.project_id,
        project_name=view.project_name,
        workspace_id=view.workspace_id,
        workspace_name=view.workspace_name,
        user_id=view.owner_id,
        username=view.username,
        external_run_id=view.external_id,
        log_policy_matched=view.log_policy,
        experiment=FlatRunExperiment(
            id=view.experiment_id,
            name=view.name,
            description=view.description,
            searcher_type=view.searcher_type,
            searcher_metric=view.searcher_metric,
            resource_pool=view.pool,
            progress=view.experiment_progress,
            is_multitrial=not is_one_trial(view.searcher_type),
            unmanaged=view.unmanaged,
            forked_from=view.parent_id,
            external_experiment_id=view.external_experiment_id,
            pachyderm_integration=_pachyderm(view, caller),
        ),
    )


def _pachyderm(view: RunView, caller: Caller) -> JsonObject | None:
    integrations: JsonObject = {"integrations": {"pachyderm": view.pachyderm}}
    shown = shown_config(integrations, caller, view.owner_id)
    return cast("dict[str, JsonObject | None]", shown["integrations"])["pachyderm"]
