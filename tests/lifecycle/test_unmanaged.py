"""The machines of what is trained elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import NotNow
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.trial import TrialState
from tenax.lifecycle.unmanaged import TrialReport, step, together

ENDS = (TrialReport.COMPLETED, TrialReport.CANCELED, TrialReport.ERROR)


@pytest.mark.parametrize("end", ENDS)
def test_an_end_is_kept(end: TrialReport) -> None:
    """Said twice it is one; another end, or a heartbeat, is refused; only a new start brings it back."""
    after = step(TrialState.ACTIVE, False, end)
    assert after.value == end.name
    assert step(after, False, end) is after
    assert step(after, False, TrialReport.SILENT) is after
    for other in {TrialReport.ALIVE, *ENDS} - {end}:
        with pytest.raises(NotNow, match="start it again"):
            step(after, False, other)
    assert step(after, False, TrialReport.START) is TrialState.ACTIVE


@pytest.mark.parametrize("word", [TrialReport.ALIVE, *ENDS])
def test_one_that_was_lost_is_heard_again(word: TrialReport) -> None:
    """What it says counts as if it had never been silent."""
    lost = step(TrialState.ACTIVE, False, TrialReport.SILENT)
    assert lost is TrialState.ERROR
    assert step(lost, True, word) is step(TrialState.ACTIVE, False, word)


@given(st.lists(st.sampled_from(list(TrialState)), max_size=5))
def test_an_experiment_is_what_its_trials_are(states: list[TrialState]) -> None:
    """ACTIVE while one lives or none was made; ended, it has an end that one of them has, and the worst."""
    after = together(states)
    if not states or TrialState.ACTIVE in states:
        assert after is ExperimentState.ACTIVE
    else:
        assert after.value in {state.value for state in states}
        assert (after is ExperimentState.ERROR) == (TrialState.ERROR in states)
        assert (after is ExperimentState.COMPLETED) == (set(states) == {TrialState.COMPLETED})
