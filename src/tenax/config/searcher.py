"""From a configuration to what the search is asked to do."""

from __future__ import annotations

from tenax.config.schema import searcher as schema_searcher
from tenax.errors import Impossible
from tenax.search import config as search


def search_config(searcher: schema_searcher.Common, hyperparameters: search.Map) -> search.SearchConfig:
    """The search of a complete configuration. Raises `Impossible` for a searcher that cannot run."""
    return search.SearchConfig(
        hyperparameters=hyperparameters,
        method=_method(searcher),
        metric=searcher.metric,
        smaller_is_better=searcher.smaller_is_better,
    )


def _method(searcher: schema_searcher.Common) -> search.Method:
    match searcher:
        case schema_searcher.Single():
            return search.Single()
        case schema_searcher.Random():
            return search.Random(searcher.max_trials, searcher.max_concurrent_trials)
        case schema_searcher.Grid():
            return search.Grid(searcher.max_concurrent_trials)
        case schema_searcher.AsyncHalving(time_metric=str(time_metric), max_time=int(max_time)):
            return search.AsyncHalving(
                time_metric=time_metric,
                max_time=max_time,
                max_trials=searcher.max_trials,
                num_rungs=searcher.num_rungs,
                divisor=searcher.divisor,
                max_concurrent_trials=searcher.max_concurrent_trials,
            )
        case schema_searcher.AdaptiveAsha(time_metric=str(time_metric), max_time=int(max_time)):
            return search.AdaptiveAsha(
                time_metric=time_metric,
                max_time=max_time,
                max_trials=searcher.max_trials,
                mode=searcher.mode,
                divisor=searcher.divisor,
                max_rungs=searcher.max_rungs,
                max_concurrent_trials=searcher.max_concurrent_trials,
                bracket_rungs=searcher.bracket_rungs,
            )
    raise Impossible(f"the searcher {type(searcher).__name__} cannot run, and should have been refused")
