"""The search of an experiment: counts, rungs, its journal, what its trials tried and what of that decided."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec
from fastapi import Query, Response

from tenax.config.resolve import stored_experiment
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.experiments.messages import State as ShownState
from tenax.master.api.experiments.search_messages import (
    GetImportanceResponse,
    GetSearchResponse,
    GetSearchTrialsResponse,
    HyperparameterImportance,
    JournalEntry,
    Rung,
    SearchedTrial,
)
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import JSON, MAX_ANSWER_BYTES, WindowDep, as_json
from tenax.master.api.http.routing import Routes
from tenax.master.reading import importance
from tenax.master.reading.importance import Sample
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import searches
from tenax.master.store.experiments.lists import ExperimentView
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import TrialOutcome
from tenax.search import view
from tenax.search.journal import SearchEntry
from tenax.search.state import State, fold
from tenax.wire.message import Pagination

routes = Routes("Searches")

#: Number, time and entry.
JournalRow: TypeAlias = "tuple[int, datetime, JsonObject]"
#: Trials that a page draws at most: beyond that no line is told from another.
_MAX_TRIALS = 5000


@routes.get(
    "/api/v1/experiments/{experiment_id}/search", "GetSearch", allow=Allow.USER, response_model=GetSearchResponse
)
async def get_search(master: MasterDep, experiment_id: int, window: WindowDep) -> Response:
    """How far it is, what stands on its rungs, and a page of its journal."""
    async with master.db.snapshot() as conn:
        experiment = await experiment_lists.get(conn, experiment_id)
        _, entries = await searches.journal(conn, experiment_id, 0)
        page, pagination = window.of(len(entries))
        shown = await experiment_lists.journal(conn, experiment_id, page)
    return Response(await master.readers.run(_summed, experiment, entries, shown, pagination), media_type=JSON)


@routes.get(
    "/api/v1/experiments/{experiment_id}/search/trials",
    "GetSearchTrials",
    allow=Allow.USER,
    response_model=GetSearchTrialsResponse,
)
async def get_trials(
    master: MasterDep, experiment_id: int, limit: Annotated[int, Query(ge=1, le=_MAX_TRIALS)] = 1000
) -> Response:
    """What its trials tried and what came of it: the best ``limit`` of them, or fewer where they have much to say."""
    async with master.db.snapshot() as conn:
        experiment = await experiment_lists.get(conn, experiment_id)
        total = await trial_lists.count(conn, experiment_id, None)
        outcomes = await trial_lists.outcomes(conn, experiment_id, limit, MAX_ANSWER_BYTES)
    return Response(await master.readers.run(_tried, experiment, total, outcomes), media_type=JSON)


@routes.get("/api/v1/experiments/{experiment_id}/search/importance", "GetHyperparameterImportance", allow=Allow.USER)
async def get_importance(master: MasterDep, experiment_id: int) -> GetImportanceResponse:
    """Which hyperparameters decided about the metric: shares that sum to 1. Empty where too few trials tell."""
    async with master.db.snapshot() as conn:
        experiment = await experiment_lists.get(conn, experiment_id)
        outcomes = await trial_lists.outcomes(conn, experiment_id, _MAX_TRIALS, MAX_ANSWER_BYTES)
    samples = tuple(
        Sample(tuple(sorted(outcome.hparams.items())), outcome.metric)
        for outcome in outcomes
        if outcome.metric is not None
    )
    shares = await master.readers.run(importance.of, samples, experiment_id)
    return GetImportanceResponse(
        metric=_objective(experiment)[0],
        trials=len(samples),
        min_trials=importance.MIN_TRIALS,
        hyperparameters=[
            HyperparameterImportance(name=share.name, importance=share.importance, correlation=share.correlation)
            for share in shares
        ],
    )


def _objective(experiment: ExperimentView) -> tuple[str, bool]:
    """The metric that it is about, and whether less of it is better."""
    searcher = experiment.config.get("searcher")
    if not isinstance(searcher, dict):
        return "", True
    return str(searcher.get("metric") or ""), searcher.get("smaller_is_better") is not False


def _tried(experiment: ExperimentView, total: int, outcomes: Sequence[TrialOutcome]) -> bytes:
    metric, smaller_is_better = _objective(experiment)
    trials = [
        SearchedTrial(
            id=outcome.id,
            state=ShownState(f"STATE_{outcome.shown_state}"),
            hparams=outcome.hparams,
            metric=outcome.metric,
        )
        for outcome in outcomes
    ]
    return as_json(
        GetSearchTrialsResponse(metric=metric, smaller_is_better=smaller_is_better, total=total, trials=trials)
    )


def _fitting(shown: Sequence[JournalRow]) -> list[JournalEntry]:
    """The first of them, up to `MAX_ANSWER_BYTES`; one has a place whatever it has."""
    fitting: list[JournalEntry] = []
    size = 0
    for seq, at, entry in shown:
        size += len(msgspec.json.encode(entry))
        if fitting and size > MAX_ANSWER_BYTES:
            break
        fitting.append(JournalEntry(seq=seq, at=at, entry=entry))
    return fitting


def _summed(
    experiment: ExperimentView, entries: list[SearchEntry], shown: Sequence[JournalRow], pagination: Pagination
) -> bytes:
    journal = _fitting(shown)
    pagination.end_index = pagination.start_index + len(journal)
    config = experiment.config
    search = stored_experiment(config).search
    # A search that has not begun yet is one that holds nothing; any seed will do.
    state = fold(search, entries) if entries else State(search, 0)
    counts = view.summary(state)
    searcher = config.get("searcher")
    summed = GetSearchResponse(
        method=str(searcher.get("name")) if isinstance(searcher, dict) else "",
        time_metric=view.time_metric(search) or "",
        progress=experiment.progress,
        shut_down=state.shutdown is not None,
        max_trials=counts.max_trials,
        created=counts.created,
        running=counts.running,
        finished=counts.finished,
        failed=counts.failed,
        canceled=counts.canceled,
        stopped=counts.stopped,
        replaced=counts.replaced,
        rungs=[
            Rung(
                bracket=rung.bracket,
                rung=rung.rung,
                units=rung.units,
                count=rung.count,
                stopped=rung.stopped,
                ended=rung.ended,
                running=rung.running,
                max_trials=state.brackets[rung.bracket].plan.max_trials,
                best_request_id=rung.best,
                best_metric=rung.best_metric,
            )
            for rung in view.rungs(state)
        ],
        journal=journal,
        pagination=pagination,
    )
    return as_json(summed)
