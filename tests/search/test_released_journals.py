"""Journals that releases wrote, kept as they were: what a running search had decided outlives every upgrade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenax import __version__
from tenax.config.resolve import stored_experiment
from tenax.search.journal import Exited, ExitReason, decode
from tenax.search.searcher import is_news, step
from tenax.search.state import fold
from tests.search.released_journals import folded

_FILES = sorted(Path(__file__).with_name("journals").glob("*.json"))
KEPT = [
    pytest.param(case, id=f"{path.stem}: {case['name']}") for path in _FILES for case in json.loads(path.read_text())
]


@pytest.mark.parametrize("case", KEPT)
def test_a_journal_of_a_release_comes_to_what_it_came_to(case: Any) -> None:
    """Today's code folds it to the state that the release was in, and the search goes on to its end."""
    state = fold(stored_experiment(case["config"]).search, [decode(entry) for entry in case["journal"]])
    assert json.loads(json.dumps(folded(state))) == case["folded"]
    while state.shutdown is None:
        trial = next(trial for trial in state.trials.values() if trial.exit is None)
        fact = Exited(trial.request_id, ExitReason.FINISHED)
        assert is_news(state, fact)
        step(state, fact)


def test_this_release_has_its_journals() -> None:
    """They are made by `tests.search.released_journals` when the version is raised."""
    assert __version__ in [path.stem for path in _FILES]
