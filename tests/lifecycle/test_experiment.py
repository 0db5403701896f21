"""The experiment's machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import Impossible, NotNow
from tenax.lifecycle.experiment import ENDED, STOPPING, ExperimentEvent, ExperimentState, step

S, E = ExperimentState, ExperimentEvent


@pytest.mark.parametrize(
    ("state", "event", "after"),
    [
        (S.ACTIVE, E.PAUSE, S.PAUSED),
        (S.PAUSED, E.ACTIVATE, S.ACTIVE),
        (S.ACTIVE, E.CANCEL, S.STOPPING_CANCELED),
        (S.PAUSED, E.CANCEL, S.STOPPING_CANCELED),
        (S.STOPPING_CANCELED, E.KILL, S.STOPPING_KILLED),
        (S.STOPPING_KILLED, E.CANCEL, S.STOPPING_KILLED),
        (S.STOPPING_KILLED, E.TRIALS_ENDED, S.CANCELED),
        (S.STOPPING_CANCELED, E.TRIALS_ENDED, S.CANCELED),
        (S.STOPPING_COMPLETED, E.TRIALS_ENDED, S.COMPLETED),
        (S.STOPPING_ERROR, E.TRIALS_ENDED, S.ERROR),
        (S.ACTIVE, E.SEARCH_SUCCEEDED, S.STOPPING_COMPLETED),
        (S.ACTIVE, E.SEARCH_FAILED, S.STOPPING_ERROR),
        (S.COMPLETED, E.KILL, S.COMPLETED),
        (S.ERROR, E.DELETE, S.DELETING),
        (S.DELETE_FAILED, E.DELETE, S.DELETING),
    ],
)
def test_legal_events(state: S, event: E, after: S) -> None:
    """The transitions of the inventory, one by one."""
    assert step(state, event) is after


def test_a_paused_experiment_of_the_past_cannot_be_activated() -> None:
    """What has ended stays ended, and the refusal says what to do instead."""
    with pytest.raises(NotNow, match=r"create a new one from it \(fork\), or continue it, unless its search stops"):
        step(S.COMPLETED, E.ACTIVATE)


def test_a_running_experiment_cannot_be_deleted() -> None:
    """Deleting needs an end first."""
    with pytest.raises(NotNow, match="cancel or kill it first"):
        step(S.ACTIVE, E.DELETE)


def test_what_is_stopping_is_continued_later() -> None:
    """It is said what it waits for, in words that people have."""
    with pytest.raises(NotNow, match=r"is stopping: continue it when it has ended \(tenax experiment wait\)"):
        step(S.STOPPING_CANCELED, E.CONTINUE)
    with pytest.raises(NotNow, match=r"is stopping and cannot activate any more"):
        step(S.STOPPING_KILLED, E.ACTIVATE)


def test_an_event_of_our_own_that_no_state_allows_is_a_bug() -> None:
    """The search cannot end twice."""
    with pytest.raises(Impossible):
        step(S.COMPLETED, E.SEARCH_SUCCEEDED)


@given(st.lists(st.sampled_from([E.ACTIVATE, E.PAUSE, E.CANCEL, E.KILL, E.TRIALS_ENDED, E.SEARCH_FAILED])))
def test_what_was_asked_is_only_ever_raised(events: list[E]) -> None:
    """No sequence of events leads from stopping back to running, or from an end to anything but deletion."""
    state, stopping, ended = S.PAUSED, False, False
    for event in events:
        try:
            state = step(state, event)
        except (NotNow, Impossible):
            continue
        assert not ended or state in ENDED
        assert not stopping or state in (*STOPPING, *ENDED)
        stopping, ended = stopping or state in STOPPING, ended or state in ENDED
