"""From a configuration to what the search is asked to do."""

from __future__ import annotations

from tenax.config.schema.searcher import CommonConfig
from tenax.search import config as search


def search_config(searcher: CommonConfig, hyperparameters: search.Map) -> search.SearchConfig:
    """The search of a complete configuration. Raises `Impossible` for a searcher that cannot run."""
    return search.SearchConfig(
        hyperparameters=hyperparameters,
        method=searcher.method(),
        metric=searcher.metric,
        smaller_is_better=searcher.smaller_is_better,
    )
