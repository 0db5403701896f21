"""Trials that go on after their end: their search takes the end back, and comes to its own end once more."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import Impossible
from tenax.search.config import Double, Map, Method, SearchConfig
from tenax.search.journal import ExitReason, Reopened, Shutdown, decode, encode
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.search.searcher import is_news
from tenax.search.state import fold
from tests.kits.builders.search import Run, asha

SPACE = Map({"lr": Double(0, 1, 4)})
METHODS: tuple[Method, ...] = (Single(), Random(4, 2), Grid(2))
_REASONS = (ExitReason.FINISHED, ExitReason.ERRORED, ExitReason.USER_CANCELED)


def over(run: Run, reasons: list[ExitReason]) -> None:
    """Let every trial end, those that take the places of others too."""
    number = 0
    while run.state.shutdown is None:
        run.exit(number, reasons[number % len(reasons)])
        number += 1


@given(
    method=st.sampled_from(METHODS),
    reasons=st.lists(st.sampled_from(_REASONS), min_size=1, max_size=4),
    chosen=st.sets(st.integers(0, 3), min_size=1),
    seed=st.integers(0, 1000),
)
def test_what_goes_on_can_end_otherwise(method: Method, reasons: list[ExitReason], chosen: set[int], seed: int) -> None:
    """Counts are those of a search whose trials ended only the last time, and the journal says the same."""
    run = Run(SearchConfig(SPACE, method, "loss", True), seed)
    over(run, reasons)
    trials = len(run.ids)
    again = sorted({number % trials for number in chosen})
    for number in again:
        run.tell(Reopened(run.ids[number]))
    assert run.state.shutdown is None
    assert run.state.closed == trials - len(again)
    decisions = [run.exit(number, ExitReason.FINISHED) for number in again]
    assert [type(made) for made in decisions[-1]] == [Shutdown]
    assert all(not made for made in decisions[:-1])
    assert len(run.ids) == trials
    assert sum(run.state.exits.values()) == run.state.closed == trials
    stored = [decode(json.loads(json.dumps(encode(entry)))) for entry in run.journal]
    assert fold(run.config, stored).values() == run.state.values()


def test_only_what_is_over_goes_on() -> None:
    """A trial that lives has nothing to take back."""
    run = Run(SearchConfig(SPACE, Random(3, 2), "loss", True))
    assert not is_news(run.state, Reopened(run.ids[0]))
    run.exit(0, ExitReason.ERRORED)
    assert is_news(run.state, Reopened(run.ids[0]))
    run.tell(Reopened(run.ids[0]))
    assert not is_news(run.state, Reopened(run.ids[0]))


def test_a_reopening_of_what_lives_changes_nothing() -> None:
    """The trial's end makes place for the next one as ever."""
    run = Run(SearchConfig(SPACE, Random(3, 1), "loss", True))
    run.state.apply(decode(encode(Reopened(run.ids[0]))))
    assert len(run.exit(0)) == 1
    assert len(run.ids) == 2


def test_what_stands_on_rungs_stays() -> None:
    """Searches that stop trials early do not take decisions back."""
    run = Run(asha(max_trials=4))
    run.report(0, 100, 0.5)
    run.exit(0)
    with pytest.raises(Impossible, match="rungs"):
        run.state.apply(Reopened(run.ids[0]))
