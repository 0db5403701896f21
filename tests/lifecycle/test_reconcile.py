"""What must be done for an experiment, against what it and its trials are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.experiment import ENDED, ExperimentState
from tenax.lifecycle.reconcile import (
    AskToLeave,
    EndExperiment,
    EndTrial,
    Kill,
    LiveTrial,
    OpenAllocation,
    RequestAllocation,
    Withdraw,
    reconcile,
)
from tenax.lifecycle.trial import Wish

S, A = ExperimentState, AllocationState


def running(ready: bool = True, preemption: Preemption = Preemption.NONE, ending: bool = False) -> OpenAllocation:
    return OpenAllocation("1.x.1", A.RUNNING, preemption, ready, ending)


PENDING = OpenAllocation("1.x.1", A.PENDING, Preemption.NONE, False, False)


def trial(allocation: OpenAllocation | None, wish: Wish = Wish.RUN) -> LiveTrial:
    return LiveTrial(7, wish, invalid_hp=False, fatal=None, allocation=allocation)


def test_a_trial_that_should_run_asks_for_slots_once() -> None:
    """Without an allocation it requests one; with one there is nothing to do."""
    assert reconcile(S.ACTIVE, (trial(None),)) == (RequestAllocation(7),)
    assert reconcile(S.ACTIVE, (trial(PENDING),)) == ()
    assert reconcile(S.ACTIVE, (trial(running()),)) == ()


def test_a_trial_that_is_held_back_waits() -> None:
    """The platform ended its last attempts; the next one comes when the time is over."""
    assert reconcile(S.ACTIVE, (LiveTrial(7, Wish.RUN, False, None, None, held=True),)) == ()


def test_no_more_trials_ask_than_may_run_at_once() -> None:
    """The first of those that live are those that may; one that is held back, or leaves, keeps its place."""
    waiting = tuple(LiveTrial(number, Wish.RUN, False, None, None) for number in (1, 2, 3))
    assert reconcile(S.ACTIVE, waiting, at_once=2) == (RequestAllocation(1), RequestAllocation(2))
    assert reconcile(S.ACTIVE, waiting, at_once=None) == (
        RequestAllocation(1),
        RequestAllocation(2),
        RequestAllocation(3),
    )
    held = LiveTrial(1, Wish.RUN, False, None, None, held=True)
    assert reconcile(S.ACTIVE, (held, *waiting[1:]), at_once=2) == (RequestAllocation(2),)
    leaving = LiveTrial(1, Wish.KILL, False, None, running(ending=True))
    assert reconcile(S.ACTIVE, (leaving, *waiting[1:]), at_once=1) == ()
    killed = LiveTrial(3, Wish.KILL, False, None, None)
    request, ended = reconcile(S.ACTIVE, (waiting[0], waiting[1], killed), at_once=1)
    assert request == RequestAllocation(1)
    assert isinstance(ended, EndTrial)


def test_pause_asks_what_runs_and_withdraws_what_waits() -> None:
    """A paused experiment keeps no slots and loses no step."""
    (action,) = reconcile(S.PAUSED, (trial(running()),))
    assert isinstance(action, AskToLeave)
    assert action.within_s is None
    assert isinstance(reconcile(S.PAUSED, (trial(PENDING),))[0], Withdraw)
    assert reconcile(S.PAUSED, (trial(None),)) == ()


def test_what_is_not_ready_is_ended_at_once() -> None:
    """A gang whose members have not met has nothing to save."""
    assert isinstance(reconcile(S.PAUSED, (trial(running(ready=False)),))[0], Kill)


def test_a_stop_of_the_search_reaches_the_script() -> None:
    """The same signal as a preemption."""
    (action,) = reconcile(S.ACTIVE, (trial(running(), Wish.STOP),))
    assert isinstance(action, AskToLeave)


def test_kill_does_not_ask() -> None:
    """Not even what was asked before."""
    assert isinstance(reconcile(S.STOPPING_KILLED, (trial(running(preemption=Preemption.REQUESTED)),))[0], Kill)
    assert reconcile(S.STOPPING_KILLED, (trial(running(ending=True)),)) == ()


def test_an_experiment_ends_when_it_is_stopping_and_no_trial_lives() -> None:
    """Never before."""
    assert reconcile(S.STOPPING_COMPLETED, ()) == (EndExperiment(),)
    assert reconcile(S.ACTIVE, ()) == ()
    assert isinstance(reconcile(S.STOPPING_CANCELED, (trial(None),))[0], EndTrial)


def test_invalid_hyperparameters_hurry() -> None:
    """The script gets its last words, not the time that a checkpoint may take."""
    (action,) = reconcile(S.ACTIVE, (LiveTrial(7, Wish.RUN, True, None, running()),))
    assert isinstance(action, AskToLeave)
    assert action.within_s == pytest.approx(10.0)


@pytest.mark.parametrize(("left", "asked_again"), [(None, True), (3000.0, True), (10.0, False), (2.0, False)])
def test_who_was_asked_before_is_hurried_once(left: float | None, asked_again: bool) -> None:
    """A report that ends the trial shortens the time that it was given for a checkpoint."""
    allocation = OpenAllocation("1.x.1", A.RUNNING, Preemption.REQUESTED, True, False, left)
    actions = reconcile(S.PAUSED, (LiveTrial(7, Wish.RUN, False, "fatal", allocation),))
    assert [isinstance(action, AskToLeave) for action in actions] == [True] * asked_again


@given(
    st.sampled_from([state for state in S if state not in (*ENDED, S.DELETING, S.DELETE_FAILED)]),
    st.sampled_from([Wish.RUN, Wish.STOP, Wish.CANCEL, Wish.KILL]),
    st.booleans(),
    st.none() | st.just("fatal"),
    st.none()
    | st.builds(
        OpenAllocation,
        st.just("1.x.1"),
        st.sampled_from([state for state in A if state is not A.TERMINATED]),
        st.sampled_from(Preemption),
        st.booleans(),
        st.booleans(),
    ),
)
def test_a_trial_never_gets_a_second_allocation(
    state: S, wish: Wish, invalid: bool, fatal: str | None, allocation: OpenAllocation | None
) -> None:
    """And at most one thing is done to it in a pass."""
    actions = reconcile(state, (LiveTrial(7, wish, invalid, fatal, allocation),))
    assert len(actions) <= 1
    if any(isinstance(action, RequestAllocation) for action in actions):
        assert allocation is None
        assert state is S.ACTIVE
        assert wish is Wish.RUN
