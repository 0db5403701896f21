"""Experiments found by a filter over all that is known of them, with the best trial of each."""

from __future__ import annotations

from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.paging import NONE, search_page
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import experiment_message
from tenax.master.api.trial_shapes import whole_trials
from tenax.master.filters import parse, parse_sort
from tenax.master.store import experiment_search, listings_experiments, listings_trials, projects
from tenax.wire.api.experiment_search import FoundExperiment, SearchExperimentsRequest, SearchExperimentsResponse

routes = Routes("Experiments")


@routes.post("/api/v1/experiments-search", "SearchExperiments", allow=Allow.USER)
async def search(master: MasterDep, caller: CallerDep, body: SearchExperimentsRequest) -> SearchExperimentsResponse:
    """Experiments that a filter finds, in order. Limit 0 is 100, -1 is all, -2 is none (only the count)."""
    wanted, sorts = parse(body.filter), parse_sort(body.sort)
    project_id = body.project_id or None
    async with master.db.snapshot() as conn:
        if project_id is not None:
            await projects.get(conn, project_id)
        total = await experiment_search.count(conn, project_id, wanted)
        page, pagination = search_page(total, body.offset, body.limit)
        numbers: list[int] = []
        if body.limit != NONE:
            numbers = await experiment_search.search(conn, project_id, wanted, sorts, page)
        found = await listings_experiments.views(conn, numbers)
        best = [view.best_trial_id for view in found if view.best_trial_id is not None]
        told = {one.id: one for one in await whole_trials(conn, await listings_trials.views(conn, best))}
    return SearchExperimentsResponse(
        experiments=[
            FoundExperiment(experiment=experiment_message(view, caller), best_trial=told.get(view.best_trial_id or 0))
            for view in found
        ],
        pagination=pagination,
    )
