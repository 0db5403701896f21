"""Journals of searches as a release writes them, with what they come to; kept in ``journals``, one file a release.

    python -m tests.search.released_journals > tests/search/journals/VERSION.json

A file that was kept is never made again: `test_released_journals` folds it with the code of today.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from tenax.config.resolve import parse_experiment, stored_experiment
from tenax.jsonvalue import JsonObject
from tenax.search import view
from tenax.search.journal import encode
from tenax.search.state import State
from tests.kits.builders.search import Run, live

_EXPERIMENT = """
name: kept
entrypoint: python3 train.py
checkpoint_storage: {type: shared_fs, host_path: /tmp/kept}
hyperparameters:
  x: {type: int, minval: 0, maxval: 10, count: 4}
  rate: {type: log, base: 10, minval: -4, maxval: -1, count: 3}
  nested: {kind: {type: categorical, vals: [a, b]}}
"""
_SEARCHERS = {
    "single": "{name: single, metric: loss}",
    "random": "{name: random, metric: loss, max_trials: 12, max_concurrent_trials: 3}",
    "grid": "{name: grid, metric: loss, max_concurrent_trials: 4}",
    "async_halving": "{name: async_halving, metric: loss, time_metric: batches, max_time: 16, max_trials: 16, "
    "num_rungs: 3, max_concurrent_trials: 4, smaller_is_better: false}",
    "adaptive_asha": "{name: adaptive_asha, metric: loss, time_metric: batches, max_time: 64, max_trials: 20, "
    "max_concurrent_trials: 6}",
}
#: How many facts each search is told: one cut off at its beginning, one in the middle, one lived to its end.
_LENGTHS = (3, 25, 400)


def folded(state: State) -> JsonObject:
    """What a journal comes to, as far as decisions hang on it."""
    counts = view.summary(state)
    return {
        "position": state.stream.position,
        "trials": [
            [trial.request_id, trial.bracket, trial.entered, trial.stopped_at, trial.exit and trial.exit.value]
            for trial in state.trials.values()
        ],
        "rungs": [
            [rung.units, [repr(value) for value in rung.values], list(rung.trials)]
            for bracket in state.brackets
            for rung in bracket.rungs
        ],
        "counts": [counts.created, counts.running, counts.finished, counts.failed, counts.canceled, counts.stopped],
        "replaced": state.replaced,
        "shutdown": None if state.shutdown is None else state.shutdown.reason,
    }


def kept() -> list[dict[str, Any]]:
    """A search of each method, at several ages."""
    searches = []
    for name, searcher in _SEARCHERS.items():
        for length in _LENGTHS:
            config = parse_experiment(f"{_EXPERIMENT}searcher: {searcher}\n", rng=random.Random(0)).document
            run = Run(stored_experiment(config).search, seed=length)
            live(run, random.Random(length), length)
            searches.append(
                {
                    "name": f"{name}, {length} facts",
                    "config": config,
                    "journal": [encode(entry) for entry in run.journal],
                    "folded": folded(run.state),
                }
            )
    return searches


if __name__ == "__main__":
    json.dump(kept(), sys.stdout, allow_nan=False, separators=(",", ":"))
    sys.stdout.write("\n")
