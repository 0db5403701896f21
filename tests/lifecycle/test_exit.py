"""What an exit means: the ordered list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.allocation import Preemption
from tenax.lifecycle.container import Ending
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.trial import (
    MAX_FULL_DISKS,
    MAX_NOT_BEGUN,
    TrialAttempt,
    TrialExit,
    TrialState,
    TrialVerdict,
    Wish,
    decide_exit,
    effective_wish,
    end_without_attempt,
)

CLEAN = Ending(code=0)
FAILED = Ending(code=1, reason="your code raised ValueError")
LOST = Ending(platform=True, reason="node lost")
FULL = Ending(code=3, platform=True, disk_full=True, reason="no room")
ENDED_BY_US = Ending(signal=9, requested=True)
PLAIN = TrialAttempt(Wish.RUN, CLEAN, Preemption.NONE, restarts=0, max_restarts=5)


def verdict(**changes: object) -> TrialVerdict:
    return decide_exit(replace(PLAIN, **changes))  # type: ignore[arg-type]


def test_a_clean_exit_is_the_end() -> None:
    """Zero without an acknowledged preemption: the script has finished."""
    assert verdict().state is TrialState.COMPLETED
    assert verdict(preemption=Preemption.REQUESTED).exit is TrialExit.COMPLETED


def test_a_clean_exit_after_an_acknowledged_preemption_goes_on_later() -> None:
    """It saved and left: the trial lives, no restart is counted."""
    after = verdict(preemption=Preemption.ACKNOWLEDGED)
    assert (after.state, after.restarts, after.exit) == (TrialState.ACTIVE, 0, None)


@pytest.mark.parametrize("restarts", range(6))
def test_failures_are_counted_until_the_limit_is_passed(restarts: int) -> None:
    """With max_restarts 5 a trial is tried six times."""
    after = verdict(ending=FAILED, restarts=restarts)
    # The last failure is followed by no restart.
    assert after.restarts == min(restarts + 1, 5)
    assert after.state is (TrialState.ERROR if restarts == 5 else TrialState.ACTIVE)


def test_the_last_failure_says_how_often_and_why() -> None:
    """The reason holds the script's own words and the limit."""
    reason = verdict(ending=FAILED, max_restarts=0).reason
    assert "ValueError" in reason
    assert "max_restarts is 0" in reason


@pytest.mark.parametrize("ending", [CLEAN, ENDED_BY_US])
@pytest.mark.parametrize("wish", [Wish.RUN, Wish.PAUSE])
def test_a_run_over_its_time_that_saved_nothing_is_the_last(ending: Ending, wish: Wish) -> None:
    """However often it may fail; who saved goes on, and who had finished has."""
    over = {"ending": ending, "preemption": Preemption.ACKNOWLEDGED, "over_time": True, "wish": wish}
    after = verdict(**over)
    assert (after.state, after.restarts, after.exit) == (TrialState.ERROR, 0, TrialExit.ERRORED)
    assert "save more often, or raise resources.time_limit" in after.reason
    assert verdict(**over, comes_further=True).state is TrialState.ACTIVE
    assert verdict(over_time=True).state is TrialState.COMPLETED
    assert verdict(over_time=True, ending=FAILED).restarts == 1
    assert verdict(**{**over, "wish": Wish.STOP}).state is TrialState.COMPLETED


def test_a_run_over_its_time_before_it_began_is_tried_again() -> None:
    """A slow machine, a long download: but not for ever."""
    after = verdict(ending=ENDED_BY_US, over_time=True, ran=False)
    for setbacks in range(1, MAX_NOT_BEGUN):
        assert (after.state, after.setbacks) == (TrialState.ACTIVE, setbacks)
        after = verdict(ending=ENDED_BY_US, over_time=True, ran=False, setbacks=setbacks)
    assert after.state is TrialState.ERROR
    assert "before it had begun, 5 times in a row" in after.reason


@given(st.integers(0, 100))
def test_the_platforms_failures_never_count(restarts: int) -> None:
    """However often nodes are lost, the trial goes on."""
    after = verdict(ending=LOST, restarts=restarts, max_restarts=0)
    assert (after.state, after.restarts) == (TrialState.ACTIVE, restarts)


def test_what_the_platform_ends_within_a_minute_waits_longer_each_time() -> None:
    """The first try again is at once; a trial that ran for long before its node was lost does not wait."""
    holds = [verdict(ending=LOST, lasted=False, setbacks=n).hold_s for n in (0, 1, 2, 3, 20)]
    assert holds == [0.0, 0.5, 1.0, 2.0, 60.0]
    assert verdict(ending=LOST, lasted=True, setbacks=5).hold_s == 0.0


@pytest.mark.parametrize("lasted", [False, True])
@pytest.mark.parametrize("max_restarts", [0, 2])
def test_failures_on_a_full_disk_do_not_go_on_for_ever(lasted: bool, max_restarts: int) -> None:
    """The trial itself may fill it, where nobody finds that: of five in a row the last counts, whatever the length."""
    after, runs = verdict(ending=FULL, lasted=lasted, max_restarts=max_restarts), 1
    while after.state is TrialState.ACTIVE:
        assert runs < MAX_FULL_DISKS * (max_restarts + 1)
        runs += 1
        kept = {"restarts": after.restarts, "setbacks": after.setbacks}
        after = verdict(ending=FULL, lasted=lasted, max_restarts=max_restarts, **kept)
    assert (runs, after.state) == (MAX_FULL_DISKS * (max_restarts + 1), TrialState.ERROR)
    assert "5 runs in a row" in after.reason
    assert "no room" in after.reason


def test_a_preemption_that_meets_a_stop_ends_as_the_stop() -> None:
    """The wish is read when the exit is decided."""
    after = verdict(wish=Wish.STOP, preemption=Preemption.ACKNOWLEDGED)
    assert (after.state, after.exit) == (TrialState.COMPLETED, TrialExit.COMPLETED)


def test_a_kill_ends_canceled_whatever_the_script_made_of_it() -> None:
    """Its own exit code, a signal, a lost machine, or a failure that came just before."""
    for ending in (CLEAN, ENDED_BY_US, LOST, FAILED):
        after = verdict(wish=Wish.KILL, ending=ending)
        assert (after.state, after.exit) == (TrialState.CANCELED, TrialExit.USER_CANCELED)


@pytest.mark.parametrize(("wish", "state"), [(Wish.STOP, TrialState.COMPLETED), (Wish.CANCEL, TrialState.CANCELED)])
def test_what_was_asked_to_stop_ends_so_unless_it_failed_by_itself(wish: Wish, state: TrialState) -> None:
    """Our own kill is no error; the script's own failure is."""
    assert verdict(wish=wish).state is state
    assert verdict(wish=wish, ending=ENDED_BY_US).state is state
    assert verdict(wish=wish, ending=LOST).state is state
    assert verdict(wish=wish, ending=FAILED).state is TrialState.ERROR


EARLY = "stopped early: it ranks 3 of 3 at rung 1 of 2 (4 epochs), where the best 1 went on"
TOP = "done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 3 there"


@pytest.mark.parametrize(
    ("wish_reason", "ending", "preemption", "reason"),
    [
        (EARLY, CLEAN, Preemption.NONE, "the script finished"),
        (EARLY, CLEAN, Preemption.REQUESTED, "the script finished"),
        ("", CLEAN, Preemption.NONE, "the script finished"),
        (EARLY, CLEAN, Preemption.ACKNOWLEDGED, EARLY),
        (EARLY, ENDED_BY_US, Preemption.REQUESTED, EARLY),
        (EARLY, LOST, Preemption.NONE, EARLY),
        ("", CLEAN, Preemption.ACKNOWLEDGED, "stopped early by the search"),
        (TOP, CLEAN, Preemption.NONE, TOP),
    ],
)
def test_what_had_finished_before_the_search_said_so_was_not_stopped_early(
    wish_reason: str, ending: Ending, preemption: Preemption, reason: str
) -> None:
    """It is as complete as any other; only what was ended, or heard of it and left, was stopped."""
    after = verdict(wish=Wish.STOP, wish_reason=wish_reason, ending=ending, preemption=preemption)
    assert (after.state, after.exit, after.reason) == (TrialState.COMPLETED, TrialExit.COMPLETED, reason)


def test_invalid_hyperparameters_reach_the_search() -> None:
    """The search hears INVALID_HP, and the trial is not tried again, also if it was ended late."""
    for ending in (CLEAN, ENDED_BY_US, FAILED, LOST):
        assert verdict(invalid_hp=True, ending=ending).exit is TrialExit.INVALID_HP


def test_a_fatal_report_ends_a_trial_without_another_try() -> None:
    """Whatever else is true, the text of the report is the reason."""
    after = verdict(fatal="no metric 'accuracy'", ending=CLEAN, wish=Wish.STOP)
    assert (after.state, after.reason) == (TrialState.ERROR, "no metric 'accuracy'")


def test_a_task_ended_for_staying_too_long_runs_again() -> None:
    """A preemption that was not answered in time costs no restart."""
    after = verdict(ending=ENDED_BY_US, preemption=Preemption.REQUESTED)
    assert (after.state, after.restarts) == (TrialState.ACTIVE, 0)


@given(
    st.builds(
        TrialAttempt,
        wish=st.sampled_from(Wish),
        ending=st.builds(
            Ending,
            code=st.sampled_from([None, 0, 1, 137]),
            signal=st.sampled_from([None, 9, 15]),
            platform=st.booleans(),
            requested=st.booleans(),
            disk_full=st.booleans(),
        ),
        preemption=st.sampled_from(Preemption),
        restarts=st.integers(0, 7),
        max_restarts=st.integers(0, 7),
        invalid_hp=st.booleans(),
        fatal=st.none() | st.just("fatal"),
        no_retry=st.none() | st.just("policy"),
        nowhere=st.none() | st.just("every machine is excluded"),
        repeats=st.none() | st.just("KeyError in code/train.py, line 12"),
        repeated_by=st.none() | st.just(3),
        continuable=st.booleans(),
        setbacks=st.integers(0, 7),
    )
)
def test_every_exit_is_decided_and_the_search_hears_of_every_end(attempt: TrialAttempt) -> None:
    """A verdict is an end with a fact for the search, or another try without one."""
    after = decide_exit(attempt)
    assert (after.state is TrialState.ACTIVE) == (after.exit is None)
    assert after.restarts in (attempt.restarts, attempt.restarts + 1)
    assert (
        after.state is not TrialState.ACTIVE
        or after.restarts <= attempt.max_restarts
        or attempt.restarts > attempt.max_restarts
    )


def test_a_trial_wishes_the_higher_of_its_own_and_its_experiments() -> None:
    """A stop of the search outlives a pause, and a kill outlives a stop."""
    assert effective_wish(Wish.STOP, ExperimentState.PAUSED) is Wish.STOP
    assert effective_wish(Wish.STOP, ExperimentState.STOPPING_KILLED) is Wish.KILL
    assert effective_wish(Wish.RUN, ExperimentState.PAUSED) is Wish.PAUSE
    assert effective_wish(Wish.RUN, ExperimentState.ACTIVE) is Wish.RUN


def test_a_trial_without_an_attempt_ends_as_wished_or_waits() -> None:
    """Between two attempts nothing has to be asked."""
    assert end_without_attempt(Wish.RUN, False, None) is None
    assert end_without_attempt(Wish.PAUSE, False, None) is None
    stopped = end_without_attempt(Wish.STOP, False, None)
    assert stopped is not None
    assert stopped.state is TrialState.COMPLETED


def test_the_same_failure_twice_in_a_row_is_the_end() -> None:
    """With the place, and what to do; an end that was asked for, and the platform's failures, come first."""
    after = verdict(ending=FAILED, restarts=1, repeats="KeyError in code/train.py, line 12")
    assert (after.state, after.restarts) == (TrialState.ERROR, 1)
    assert "at the same place (KeyError in code/train.py, line 12)" in after.reason
    assert "set max_restarts" in after.reason
    assert verdict(ending=LOST, repeats="x").state is TrialState.ACTIVE


def test_what_to_do_about_a_failure_is_what_the_search_allows() -> None:
    """One that may go on is continued, any other is forked; another trial may have shown that it would fail again."""
    failed = {"ending": FAILED, "repeats": "KeyError in code/train.py, line 12", "experiment_id": 7}
    assert "tenax experiment fork 7 DIRECTORY), continue it if the cause" in verdict(**failed).reason
    rungs = verdict(**failed, continuable=False).reason
    assert "DIRECTORY), fork it as it is (tenax experiment fork 7) if the cause" in rungs
    assert "continue" not in rungs
    after = verdict(**failed, repeated_by=3)
    assert (after.state, after.restarts) == (TrialState.ERROR, 0)
    assert "; two runs of trial 3 failed at the same place (KeyError in code/train.py, line 12), before" in after.reason
    over = {"ending": ENDED_BY_US, "over_time": True, "experiment_id": 7}
    for continuable, command in ((True, "continue 7"), (False, "fork 7")):
        reason = verdict(**over, continuable=continuable).reason
        assert f"(tenax experiment {command} --config resources.time_limit=8h)" in reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ran": False}, "it was ended before it began"),
        (
            {"ran": False, "leave_reason": "agent a1 was disabled"},
            "it was ended before it began: agent a1 was disabled",
        ),
        ({"ran": True}, "it was ended as it began"),
        (
            {"preemption": Preemption.REQUESTED, "leave_reason": "the experiment was paused"},
            "it was asked to leave (the experiment was paused), did not leave in time and was ended",
        ),
    ],
)
def test_what_was_not_asked_to_leave_did_not_stay_too_long(changes: dict[str, object], reason: str) -> None:
    """A run that has not begun is ended at once, by a pause that somebody takes back: it goes on, and says what was."""
    after = verdict(ending=ENDED_BY_US, **changes)
    assert (after.state, after.restarts, after.reason) == (TrialState.ACTIVE, 0, reason)
