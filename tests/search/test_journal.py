"""The journal: folding it gives the living state, and a search goes on from it as if nothing had happened."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.errors import Impossible, InvalidInput
from tenax.ids import RequestId
from tenax.search.config import Categorical, Double, Int, Map, Method, SearchConfig
from tenax.search.journal import Create, Decision, Exited, SearchEntry, Started, Stop, Validated, decode, encode
from tenax.search.methods.adaptive_asha import AdaptiveAsha, Mode
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.search.searcher import step
from tenax.search.state import State, fold
from tests.kits.builders.search import Run, asha, live

SPACE = Map({"a": Map({"lr": Double(0, 1, 3)}), "n": Int(0, 5, 2), "c": Categorical(("p", "q"))})

methods = st.one_of(
    st.just(Single()),
    st.builds(Random, st.integers(1, 12), st.integers(0, 5)),
    st.builds(Grid, st.integers(0, 5)),
    st.builds(
        AdaptiveAsha,
        st.just("batches"),
        st.sampled_from([1, 9, 64, 100]),
        st.integers(1, 30),
        st.sampled_from(list(Mode)),
        st.sampled_from([2.0, 3.0, 4.0]),
        st.integers(1, 5),
        st.integers(0, 8),
    ),
)
histories = st.tuples(methods, st.booleans(), st.integers(0, 2**32 - 1), st.integers(0, 120))


def lived(history: tuple[Method, bool, int, int]) -> Run:
    """A run that lived through a random history."""
    method, smaller, seed, facts = history
    run = Run(SearchConfig(SPACE, method, "loss", smaller), seed)
    live(run, random.Random(seed), facts)
    return run


def through_json(journal: list[SearchEntry]) -> list[SearchEntry]:
    """The journal as it comes back from storage."""
    return [decode(json.loads(json.dumps(encode(entry), allow_nan=False))) for entry in journal]


@given(histories)
@settings(max_examples=150, deadline=None)
def test_a_fold_equals_the_living_state_and_goes_on_alike(history: tuple[Method, bool, int, int]) -> None:
    """Folding the stored journal gives the same state, and the same facts then lead to the same decisions."""
    run = lived(history)
    again = Run.__new__(Run)
    again.config, again.journal = run.config, through_json(run.journal)
    again.state = fold(run.config, again.journal)
    assert again.state.values() == run.state.values()
    seed = history[2]
    live(run, random.Random(seed + 1), 60)
    live(again, random.Random(seed + 1), 60)
    assert repr(again.journal) == repr(run.journal)
    assert again.state.values() == run.state.values()


@given(histories)
@settings(max_examples=100, deadline=None)
def test_a_search_that_is_driven_to_its_end_makes_exactly_its_trials(history: tuple[Method, bool, int, int]) -> None:
    """However trials end, the search ends, with max_trials trials beside those it replaced."""
    run = lived(history)
    for _ in range(100):
        live(run, random.Random(history[2]), 100, invalid=0.0)
        if run.state.shutdown is not None:
            break
    assert run.state.shutdown is not None
    assert run.state.closed == len(run.state.trials)
    assert len(run.state.trials) - run.state.replaced == run.state.max_trials
    assert len({made.request_id for made in run.creates}) == len(run.creates)


@given(histories)
@settings(max_examples=100, deadline=None)
def test_rungs_are_what_sorting_would_make_of_them(history: tuple[Method, bool, int, int]) -> None:
    """Rungs stay sorted, hold each trial once, and a trial is on all rungs below its own."""
    run = lived(history)
    for bracket in run.state.brackets:
        for number, rung in enumerate(bracket.rungs):
            assert rung.values == sorted(rung.values)
            assert len(set(rung.trials)) == len(rung.trials)
            for trial in rung.trials:
                assert run.state.trials[trial].entered > number


@given(histories)
@settings(max_examples=100, deadline=None)
def test_no_more_run_at_once_than_the_brackets_began_with(history: tuple[Method, bool, int, int]) -> None:
    """Trials that the search has not stopped never outnumber the first ones."""
    run = lived(history)
    for number, bracket in enumerate(run.state.brackets):
        working = [trial for trial in run.state.trials.values() if trial.bracket == number and trial.open]
        assert len(working) <= bracket.plan.initial_trials


@given(histories)
@settings(max_examples=50, deadline=None)
def test_telling_everything_twice_changes_nothing(history: tuple[Method, bool, int, int]) -> None:
    """Facts that were told before decide nothing and leave the state alone."""
    run = lived(history)
    before = run.state.values()
    for entry in run.journal:
        if isinstance(entry, (Validated, Exited)):
            trial = run.state.trials[entry.request_id]
            if not (isinstance(entry, Validated) and trial.open and entry.step not in trial.steps):
                assert step(run.state, entry) == []
    assert run.state.values() == before


def test_folding_reads_decisions_back_and_makes_none() -> None:
    """A journal whose decisions this version would not make is taken as it is written."""
    run = Run(asha(max_trials=4, concurrent=1))
    first = run.ids[0]
    strange: list[SearchEntry] = [*run.journal, Validated(first, 1, 0.1, 1.0), Stop(first, "by another rule")]
    state = fold(run.config, strange)
    assert state.trials[first].stopped_at == 0
    assert len(state.trials) == 1
    assert state.brackets[0].rungs[0].trials == []


def test_golden_documents() -> None:
    """Golden values: what is stored of each kind of entry."""
    trial = RequestId("r")
    assert encode(Started(7)) == {"v": 1, "type": "started", "seed": 7}
    assert encode(Validated(trial, 5, math.nan, 5.0)) == {
        "v": 1,
        "type": "validated",
        "request_id": "r",
        "step": 5,
        "metric": "NaN",
        "time": 5.0,
    }
    assert encode(Exited(trial)) == {"v": 1, "type": "exited", "request_id": "r", "reason": "finished"}
    assert encode(Create(trial, 3, {"x": 1}, 14)) == {
        "v": 1,
        "type": "create",
        "request_id": "r",
        "seed": 3,
        "hparams": {"x": 1},
        "position": 14,
        "bracket": 0,
        "replaces": None,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"v": 2, "type": "started", "seed": 1}, "version 2"),
        ({"v": 1, "type": "nothing"}, "unknown type 'nothing'"),
        ({"v": 1, "type": "started"}, "seed"),
        ({"v": 1, "type": "started", "seed": "x"}, "not an integer"),
    ],
)
def test_what_cannot_be_read_is_refused(document: dict[str, str | int], message: str) -> None:
    """A document of another version or shape is refused with what is wrong with it."""
    with pytest.raises(InvalidInput, match=message):
        decode(dict(document))


def test_a_journal_begins_with_its_start() -> None:
    """A journal without a start, with two, or about unknown trials cannot have been written by a search."""
    config = asha()
    for journal in ([], [Exited(RequestId("r"))], [Started(1), Started(1)], [Started(1), Exited(RequestId("r"))]):
        with pytest.raises(Impossible):
            fold(config, journal)


def test_decisions_are_applied_before_they_are_returned() -> None:
    """What step returns is in the state already: applying it again is a mistake that shows."""
    run = Run(asha(max_trials=3, concurrent=1))
    made: list[Decision] = [d for d in run.exit(0) if isinstance(d, Create)]
    state: State = run.state
    with pytest.raises(Impossible, match="made twice"):
        state.apply(made[0])
