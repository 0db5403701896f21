"""The search of an experiment: counts, rungs, and its journal."""

from __future__ import annotations

import anyio.to_thread

from tenax.config import stored_experiment
from tenax.master.access.authorization import Allow
from tenax.master.api.experiments.search_messages import GetSearchResponse, JournalEntry, Rung
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.routing import Routes
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import searches
from tenax.master.store.experiments.lists import ExperimentView
from tenax.search import view
from tenax.search.journal import SearchEntry
from tenax.search.state import State, fold
from tenax.wire.message import Pagination

routes = Routes("Searches")


@routes.get("/api/v1/experiments/{experiment_id}/search", "GetSearch", allow=Allow.USER)
async def get_search(master: MasterDep, experiment_id: int, window: WindowDep) -> GetSearchResponse:
    """How far it is, what stands on its rungs, and a page of its journal."""
    async with master.db.snapshot() as conn:
        experiment = await experiment_lists.get(conn, experiment_id)
        _, entries = await searches.journal(conn, experiment_id, 0)
        page, pagination = window.of(len(entries))
        shown = await experiment_lists.journal(conn, experiment_id, page)
    journal = [JournalEntry(seq=seq, at=at, entry=entry) for seq, at, entry in shown]
    return await anyio.to_thread.run_sync(_summed, experiment, entries, journal, pagination)


def _summed(
    experiment: ExperimentView, entries: list[SearchEntry], journal: list[JournalEntry], pagination: Pagination
) -> GetSearchResponse:
    config = experiment.config
    search = stored_experiment(config).search
    # A search that has not begun yet is one that holds nothing; any seed will do.
    state = fold(search, entries) if entries else State(search, 0)
    counts = view.summary(state)
    searcher = config.get("searcher")
    return GetSearchResponse(
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
                best_request_id=rung.best,
                best_metric=rung.best_metric,
            )
            for rung in view.rungs(state)
        ],
        journal=journal,
        pagination=pagination,
    )
