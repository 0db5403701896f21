"""What a person sees: progress, rungs, counts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.search.config import SearchConfig
from tenax.search.journal import ExitReason
from tenax.search.methods.adaptive_asha import AdaptiveAsha
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.search.state import State
from tenax.search.view import of_trial, preview, progress, rungs, standing, summary
from tests.kits.builders.search import Run, X, asha, live


def test_progress_without_rungs_is_the_mean_over_all_trials() -> None:
    """Closed trials count whole, running ones as they tell, those not made yet not at all."""
    run = Run(SearchConfig(X, Random(4, 2), "loss"))
    run.exit(0)
    assert told(run.state, [0.5, math.nan]) == pytest.approx(1.5 / 4)


def told(state: State, reported: Iterable[float] = ()) -> float:
    """The progress of a search that goes on or has a result."""
    at = standing(state)
    assert at is not None
    return progress(at, reported)


@pytest.mark.parametrize("reason", [ExitReason.ERRORED, ExitReason.USER_CANCELED])
@pytest.mark.parametrize("config", [SearchConfig(X, Random(10), "loss"), asha(max_trials=10, concurrent=2)])
def test_a_search_in_which_nothing_was_trained_is_at_nothing(config: SearchConfig, reason: ExitReason) -> None:
    """However many of its trials failed or were canceled; and its end says nothing of how far it was."""
    run = Run(config)
    for number in range(9):
        run.exit(number, reason)
        assert told(run.state) == 0
    run.exit(9, reason)
    assert run.state.shutdown is not None
    assert standing(run.state) is None


def test_trials_that_failed_are_neither_done_nor_to_be_done() -> None:
    """The others tell how far the search is; what failed after it stood on a rung has arrived there."""
    random = Run(SearchConfig(X, Random(4), "loss"))
    random.exit(0, ExitReason.ERRORED)
    random.exit(1)
    assert told(random.state, [0.5]) == pytest.approx(1.5 / 3)
    halving = Run(asha(max_trials=4, concurrent=4))
    halving.exit(0, ExitReason.ERRORED)
    halving.report(1, 1, 0.5)
    halving.exit(1, ExitReason.ERRORED)
    assert told(halving.state) == pytest.approx(1 / 3.6)


def test_trials_that_end_below_the_bottom_rung_have_arrived() -> None:
    """So a search of those alone comes near its end before it is over."""
    run = Run(asha(max_trials=4, concurrent=4))
    for number in range(3):
        run.exit(number)
    assert told(run.state) == pytest.approx(3 / 4.8)
    run.report(3, 1, 0.5)
    assert told(run.state) == pytest.approx(4 / 4.8)


def test_progress_with_rungs_counts_arrivals() -> None:
    """Arrivals at the bottom rung over 1.2 times the trials; all arrived: those that are over, when that is more."""
    run = Run(asha(max_trials=4, concurrent=4))
    run.report(0, 1, 0.5)
    assert told(run.state) == pytest.approx(1 / 4.8)
    for number in range(1, 4):
        run.report(number, 1, 1.0)
    assert told(run.state) == pytest.approx(4 / 4.8)
    for number in range(1, 4):
        run.exit(number)
    assert told(run.state) == pytest.approx(4 / 4.8)
    run.exit(0)
    assert told(run.state) == 1.0


@given(st.integers(0, 10**6), st.integers(0, 150), st.booleans())
@settings(max_examples=60, deadline=None)
def test_progress_lies_between_nothing_and_all(seed: int, facts: int, adaptive: bool) -> None:
    """Progress never leaves [0, 1], and is 1 at the end."""
    method = AdaptiveAsha("batches", 64, 20) if adaptive else Random(20)
    run = Run(SearchConfig(X, method, "loss"), seed)
    live(run, random.Random(seed), facts)
    if standing(run.state) is None:
        assert run.state.exits[ExitReason.FINISHED] == 0
        return
    value = told(run.state, [0.5] * sum(trial.open for trial in run.state.trials.values()))
    assert 0 <= value <= 1
    assert value == 1 or run.state.shutdown is None


def test_rungs_show_the_best_as_reported() -> None:
    """The best of a rung is shown with its metric unturned; failures and NaN are never the best."""
    run = Run(asha(concurrent=3, smaller_is_better=False))
    run.exit(0, ExitReason.ERRORED)
    run.report(1, 1, math.nan)
    assert [(rung.count, rung.best) for rung in rungs(run.state)] == [(2, None), (0, None), (0, None)]
    run.report(2, 4, 0.75)
    assert [(rung.units, rung.count, rung.best_metric) for rung in rungs(run.state)] == [
        (1, 3, 0.75),
        (4, 1, 0.75),
        (16, 0, None),
    ]


def test_summary_counts() -> None:
    """Made, running, and how the others ended."""
    run = Run(asha(max_trials=6, concurrent=3))
    run.report(0, 16, 0.1)
    run.exit(0)
    run.exit(1, ExitReason.ERRORED)
    run.exit(2, ExitReason.INVALID_HP)
    counts = summary(run.state)
    assert (counts.created, counts.running, counts.finished, counts.failed) == (6, 3, 1, 1)
    assert (counts.stopped, counts.replaced, counts.canceled, counts.max_trials) == (1, 1, 0, 6)


def test_preview_of_an_adaptive_search() -> None:
    """Golden values: 16 trials over 1000 batches."""
    rows = preview(SearchConfig(X, AdaptiveAsha("batches", 1000, 16), "loss"))
    assert [(row.count, row.units) for row in rows] == [(9, 62), (5, 250), (2, 1000)]
    assert [(row.count, row.units) for row in preview(SearchConfig(X, Single(), "loss"))] == [(1, None)]


@pytest.mark.parametrize(
    ("reported", "reached", "length", "shown"),
    [
        (0.4, 10.0, 100.0, 0.4),
        (None, 10.0, 100.0, 0.1),
        (None, 300.0, 100.0, 1.0),
        (None, None, 100.0, 0.0),
        (None, 10.0, None, 0.0),
        (None, 10.0, 0.0, 0.0),
        (math.nan, 10.0, 100.0, 0.0),
    ],
)
def test_a_trial_is_as_far_as_it_says_or_as_its_length(
    reported: float | None, reached: float | None, length: float | None, shown: float
) -> None:
    """What it told of itself counts first."""
    assert of_trial(reported, reached, length) == shown
