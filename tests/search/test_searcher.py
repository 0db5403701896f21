"""What a search decides: creations, rungs, stops, replacements, the end."""

from __future__ import annotations

import math

import pytest

from tenax.errors import Impossible
from tenax.ids import RequestId
from tenax.search.config import Categorical, Const, Int, Map, SearchConfig
from tenax.search.journal import FAILED_VALUE, Exited, ExitReason, Rank, Unrank, Validated
from tenax.search.methods.adaptive_asha import AdaptiveAsha
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.search.searcher import step
from tests.kits.builders.search import Run, X, asha, creates, shutdown, stops

LATTICE = Map({"a": Categorical(("p", "q")), "n": Int(0, 100, 3)})


def test_single_makes_one_trial_and_ends() -> None:
    """One trial, and the search is over with it."""
    run = Run(SearchConfig(X, Single(), "loss"))
    assert len(run.first) == 1
    end = shutdown(run.exit(0))
    assert end is not None
    assert (end.cancel, end.failure) == (False, False)


@pytest.mark.parametrize(("concurrent", "first"), [(0, 7), (3, 3), (16, 7)])
def test_random_keeps_its_concurrency(concurrent: int, first: int) -> None:
    """Random starts as many as may run at once, and each exit makes the next until max_trials."""
    run = Run(SearchConfig(X, Random(7, concurrent), "loss"))
    assert len(run.first) == first
    for number in range(7):
        assert len(creates(run.exit(number))) == (1 if first + number < 7 else 0)
    assert len(run.ids) == 7
    assert run.state.shutdown is not None


def test_grid_goes_from_the_last_point_to_the_first() -> None:
    """Every point is tried once, the last one first; exits make place for the next."""
    run = Run(SearchConfig(LATTICE, Grid(2), "loss"))
    for number in range(6):
        run.exit(number)
    assert [(made.hparams["a"], made.hparams["n"]) for made in run.creates] == [
        ("q", 100),
        ("q", 50),
        ("q", 0),
        ("p", 100),
        ("p", 50),
        ("p", 0),
    ]
    assert run.state.shutdown is not None


def test_the_first_at_a_rung_goes_on_and_the_worse_is_stopped() -> None:
    """The first to come continues, a worse second is stopped, and a new trial takes its place."""
    run = Run(asha(max_trials=8, concurrent=2))
    assert run.report(0, 1, 0.5) == [Rank(run.ids[0], 0, 0.5)]
    decisions = run.report(1, 1, 0.6)
    assert stops(decisions)[0].reason == (
        "stopped early: it ranks 2 of 2 at rung 1 of 3 (1 batches), where the best 1 went on"
    )
    assert len(creates(decisions)) == 1


def test_equal_values_go_before_those_that_came_earlier() -> None:
    """A tie counts for the later trial."""
    run = Run(asha(concurrent=2))
    run.report(0, 1, 0.5)
    assert stops(run.report(1, 1, 0.5)) == []


def test_one_report_crosses_several_rungs() -> None:
    """A first report at the end of training enters every rung and ends the trial at the top."""
    run = Run(asha(concurrent=2))
    decisions = run.report(0, 16, 0.5)
    assert [decision.rung for decision in decisions if isinstance(decision, Rank)] == [0, 1, 2]
    assert stops(decisions)[0].reason.startswith("done: it reached the top")


def test_larger_is_better_turns_the_order() -> None:
    """With smaller_is_better false the higher metric goes on."""
    run = Run(asha(concurrent=2, smaller_is_better=False))
    run.report(0, 1, 0.5)
    assert stops(run.report(1, 1, 0.4)) != []
    assert stops(run.report(2, 1, 0.6)) == []


@pytest.mark.parametrize("metric", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("smaller", [True, False])
def test_what_is_no_finite_number_ranks_worst(metric: float, smaller: bool) -> None:
    """NaN and both infinities stand behind every number, whichever way metrics are ranked."""
    run = Run(asha(max_trials=16, concurrent=6, smaller_is_better=smaller))
    for number, value in enumerate([1e308, -1e308, 0.0]):
        run.report(number, 1, value)
    assert stops(run.report(3, 1, metric)) != []
    assert run.state.brackets[0].rungs[0].trials[-1] == run.ids[3]
    assert stops(run.report(4, 1, metric)) != []
    assert run.state.brackets[0].rungs[0].trials[-1] == run.ids[4]


def test_reports_after_a_stop_do_not_count() -> None:
    """What a stopped trial still reports enters no rung and decides nothing."""
    run = Run(asha(concurrent=2))
    run.report(0, 1, 0.5)
    run.report(1, 1, 0.6)
    before = run.state.values()
    assert run.report(1, 16, 0.0) == []
    assert run.state.values() == before


def test_the_first_validation_of_a_step_counts() -> None:
    """A second report for the same trial and step changes nothing, whatever it holds."""
    run = Run(asha(concurrent=2))
    run.report(0, 0, 0.5, number=10)
    before = run.state.values()
    assert run.report(0, 16, 0.1, number=10) == []
    assert run.state.values() == before
    assert run.report(0, 16, 0.1, number=11) != []


def test_the_exit_of_a_stopped_trial_makes_no_second_one() -> None:
    """A Stop makes place at once; the exit that follows makes none."""
    run = Run(asha(concurrent=2))
    run.report(0, 1, 0.5)
    run.report(1, 1, 0.6)
    assert run.exit(1) == []
    assert run.exit(1) == []


def test_a_trial_that_ends_by_itself_does_not_starve_the_search() -> None:
    """Scripts that end before the search stops them make place too: max_trials are made in any case."""
    run = Run(asha(max_trials=9, concurrent=4))
    number = 0
    while number < len(run.ids):
        run.exit(number)
        number += 1
    assert len(run.ids) == 9
    assert run.state.shutdown is not None


def test_a_failed_trial_ranks_last_and_makes_place() -> None:
    """An error enters the trial's rung with the largest float, and the next trial is made."""
    run = Run(asha(max_trials=8, concurrent=2))
    run.report(0, 1, 0.5)
    decisions = run.exit(0, ExitReason.ERRORED)
    assert decisions[0] == Rank(run.ids[0], 1, FAILED_VALUE)
    assert len(creates(decisions)) == 1
    assert run.state.brackets[0].rungs[1].values == [FAILED_VALUE]


def test_invalid_hyperparameters_leave_the_rungs_and_are_replaced() -> None:
    """Its metrics are taken out of every rung, and a new sample takes its place beyond max_trials."""
    run = Run(asha(max_trials=2, concurrent=2))
    run.report(0, 4, 0.5)
    decisions = run.exit(0, ExitReason.INVALID_HP)
    assert decisions[0] == Unrank(run.ids[0])
    assert [made.replaces for made in creates(decisions)] == [run.ids[0]]
    assert all(run.ids[0] not in rung.trials for rung in run.state.brackets[0].rungs)
    for number in (1, 2):
        run.exit(number)
    assert len(run.ids) == 3
    assert run.state.shutdown is not None


@pytest.mark.parametrize("method", [Single(), Random(1), AdaptiveAsha("batches", 16, 1)])
def test_every_method_replaces_invalid_hyperparameters(method: Single | Random | AdaptiveAsha) -> None:
    """The trial that replaces has other hyperparameters, and the search ends when it is over."""
    run = Run(SearchConfig(Map({"x": Int(0, 10**9)}), method, "loss"))
    decisions = run.exit(0, ExitReason.INVALID_HP)
    assert creates(decisions)[0].hparams != run.creates[0].hparams
    assert shutdown(decisions) is None
    end = shutdown(run.exit(1))
    assert end is not None
    assert end.reason == "all 2 trials are over: 1 finished, 1 replaced"


def test_a_grid_replaces_from_the_space_around_it() -> None:
    """An invalid point is replaced by a sample off the grid; every other point is still tried."""
    run = Run(SearchConfig(LATTICE, Grid(1), "loss"))
    replacement = creates(run.exit(0, ExitReason.INVALID_HP))[0]
    assert replacement.replaces == run.ids[0]
    assert replacement.hparams["n"] not in (0, 50, 100)
    number = 1
    while number < len(run.ids):
        run.exit(number)
        number += 1
    assert len(run.ids) == 7
    assert len({str(made.hparams) for made in run.creates}) == 7


def test_a_grid_that_is_the_whole_space_goes_on_to_the_next_point() -> None:
    """Where the space holds nothing but the grid, an invalid point counts as failed and the next one starts."""
    run = Run(SearchConfig(Map({"a": Categorical(("p", "q"))}), Grid(1), "loss"))
    decisions = run.exit(0, ExitReason.INVALID_HP)
    assert [(made.hparams, made.replaces) for made in creates(decisions)] == [({"a": "p"}, None)]
    end = shutdown(run.exit(1, ExitReason.INVALID_HP))
    assert end is not None
    assert end.failure


def test_a_space_of_one_point_is_not_tried_for_ever() -> None:
    """After a few replacements that cannot differ the trial counts as failed, and so does the search."""
    run = Run(SearchConfig(Map({"x": Const(1)}), Single(), "loss"))
    number = 0
    while number < len(run.ids):
        last = run.exit(number, ExitReason.INVALID_HP)
        number += 1
    end = shutdown(last)
    assert number == 4
    assert end is not None
    assert end.failure


@pytest.mark.parametrize(
    ("reasons", "cancel", "failure"),
    [
        ([ExitReason.ERRORED, ExitReason.ERRORED], False, True),
        ([ExitReason.USER_CANCELED, ExitReason.USER_CANCELED], True, False),
        ([ExitReason.ERRORED, ExitReason.USER_CANCELED], False, False),
        ([ExitReason.ERRORED, ExitReason.FINISHED], False, False),
    ],
)
def test_how_a_search_ends(reasons: list[ExitReason], cancel: bool, failure: bool) -> None:
    """It is canceled when all trials were, and failed when all did; else it is a success."""
    run = Run(SearchConfig(X, Random(2), "loss"))
    for number, reason in enumerate(reasons):
        last = run.exit(number, reason)
    end = shutdown(last)
    assert end is not None
    assert (end.cancel, end.failure) == (cancel, failure)


def test_brackets_share_one_stream_and_keep_their_trials() -> None:
    """Golden values: 16 trials over 1000 batches make brackets of 12 and 4; a trial's successor is of its bracket."""
    run = Run(SearchConfig(X, AdaptiveAsha("batches", 1000, 16), "loss"))
    assert [made.bracket for made in run.creates] == [0] * 8 + [1] * 4
    positions = [made.position for made in run.creates]
    assert positions == sorted(set(positions))
    assert [made.bracket for made in creates(run.exit(0))] == [0]
    assert creates(run.exit(8)) == []


@pytest.mark.parametrize(
    ("max_trials", "max_time", "trials"), [(16, 1000, [12, 4]), (100, 1000, [70, 22, 8]), (500, 1024, [354, 110, 36])]
)
def test_an_adaptive_search_ends_with_exactly_its_trials(max_trials: int, max_time: int, trials: list[int]) -> None:
    """Golden values: however trials end, each bracket makes exactly its share."""
    run = Run(SearchConfig(X, AdaptiveAsha("batches", max_time, max_trials), "loss"))
    number = 0
    while number < len(run.ids):
        if number % 3:
            run.report(number, max_time, number % 7)
        run.exit(number)
        number += 1
    assert [bracket.created for bracket in run.state.brackets] == trials
    assert run.state.shutdown is not None


def test_a_trial_that_was_never_made_is_impossible() -> None:
    """A fact about an unknown trial raises, and nothing has changed."""
    run = Run(asha())
    before = run.state.values()
    for fact in (Exited(RequestId("none")), Validated(RequestId("none"), 1, 0.0, 1.0)):
        with pytest.raises(Impossible, match="knows no trial none"):
            step(run.state, fact)
    assert run.state.values() == before
