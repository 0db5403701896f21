"""What becomes of a task that no search asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import NotNow
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.container import Ending
from tenax.lifecycle.reconcile import AskToLeave, Kill, OpenAllocation
from tenax.lifecycle.task import (
    ENDED,
    Conclude,
    LiveTask,
    RequestSlots,
    TaskAttempt,
    TaskEvent,
    TaskState,
    WithdrawRequest,
    decide_exit,
    reconcile_task,
    step,
)

S = TaskState
CLEAN, FAILED, KILLED = Ending(0), Ending(3, reason="exit code 3"), Ending(None, 9, "killed", requested=True)
LOST = Ending(reason="node lost", platform=True)


@pytest.mark.parametrize(
    ("state", "ending", "preemption", "after"),
    [
        (S.ACTIVE, CLEAN, Preemption.NONE, S.COMPLETED),
        (S.ACTIVE, FAILED, Preemption.NONE, S.ERROR),
        (S.ACTIVE, LOST, Preemption.NONE, S.ERROR),
        (S.ACTIVE, CLEAN, Preemption.ACKNOWLEDGED, S.ACTIVE),
        (S.ACTIVE, KILLED, Preemption.REQUESTED, S.ACTIVE),
        (S.STOPPING_PAUSED, CLEAN, Preemption.ACKNOWLEDGED, S.PAUSED),
        (S.STOPPING_PAUSED, CLEAN, Preemption.REQUESTED, S.COMPLETED),
        (S.STOPPING_PAUSED, KILLED, Preemption.REQUESTED, S.PAUSED),
        (S.STOPPING_PAUSED, FAILED, Preemption.REQUESTED, S.ERROR),
        (S.STOPPING_CANCELED, KILLED, Preemption.NONE, S.CANCELED),
        (S.STOPPING_CANCELED, CLEAN, Preemption.NONE, S.CANCELED),
        (S.STOPPING_CANCELED, LOST, Preemption.NONE, S.CANCELED),
    ],
)
def test_an_exit_means_what_was_asked_before(
    state: TaskState, ending: Ending, preemption: Preemption, after: TaskState
) -> None:
    """A failure ends it for good; who was asked to leave goes on later; a kill is a kill."""
    assert decide_exit(TaskAttempt(state, ending, preemption, pausable=True)).state is after


@pytest.mark.parametrize(
    ("ending", "after"), [(CLEAN, S.COMPLETED), (FAILED, S.ERROR), (LOST, S.ERROR), (KILLED, S.ERROR)]
)
@pytest.mark.parametrize("preemption", list(Preemption))
def test_what_cannot_be_paused_is_never_started_again(ending: Ending, preemption: Preemption, after: TaskState) -> None:
    """Whatever it says about leaving."""
    assert decide_exit(TaskAttempt(S.ACTIVE, ending, preemption, pausable=False)).state is after


@pytest.mark.parametrize("state", [S.STOPPING_PAUSED, S.ACTIVE])
@pytest.mark.parametrize(
    ("ran", "preemption", "reason"),
    [
        (False, Preemption.NONE, "it was ended before it began"),
        (True, Preemption.NONE, "it does not listen for a pause, so it was ended at once"),
        (True, Preemption.REQUESTED, "it did not leave in time and was ended"),
    ],
)
def test_what_was_not_asked_to_leave_did_not_stay_too_long(
    state: TaskState, ran: bool, preemption: Preemption, reason: str
) -> None:
    """Also where the pause was taken back before it had ended."""
    ending = Ending(signal=9, requested=True)
    assert decide_exit(TaskAttempt(state, ending, preemption, pausable=True, ran=ran)).reason == reason


@pytest.mark.parametrize("pausable", [True, False])
def test_what_its_time_limit_ended_is_not_started_again(pausable: bool) -> None:
    """Unless it left by itself, having saved."""
    ended = TaskAttempt(S.ACTIVE, Ending(signal=9, requested=True), Preemption.REQUESTED, pausable, over_time=True)
    after = decide_exit(ended)
    assert (after.state, after.reason) == (S.ERROR, "ended: its time limit was over")
    left = replace(ended, ending=Ending(code=0), preemption=Preemption.ACKNOWLEDGED)
    assert decide_exit(left).state is (S.ACTIVE if pausable else S.COMPLETED)


def test_the_reason_of_a_failure_is_that_of_its_exit() -> None:
    """Told as it was told."""
    assert decide_exit(TaskAttempt(S.ACTIVE, FAILED, Preemption.NONE, pausable=False)).reason == "exit code 3"


@pytest.mark.parametrize("event", [TaskEvent.PAUSE, TaskEvent.UNPAUSE])
@pytest.mark.parametrize("state", [*ENDED, S.STOPPING_CANCELED])
def test_what_ends_is_neither_paused_nor_resumed(state: TaskState, event: TaskEvent) -> None:
    """It is refused, and the words name the state."""
    with pytest.raises(NotNow, match=state.value.lower()):
        step(state, event)


@given(events=st.lists(st.sampled_from(list(TaskEvent))))
def test_a_kill_is_final(events: list[TaskEvent]) -> None:
    """Whatever is asked afterwards changes nothing."""
    state = step(S.PAUSED, TaskEvent.KILL)
    for event in events:
        try:
            state = step(state, event)
        except NotNow:
            continue
    assert state is S.STOPPING_CANCELED


def running(
    state: AllocationState = AllocationState.RUNNING,
    preemption: Preemption = Preemption.NONE,
    ready: bool = True,
    ending: bool = False,
) -> OpenAllocation:
    return OpenAllocation("a", state, preemption, ready, ending)


@pytest.mark.parametrize(
    ("state", "allocation", "actions"),
    [
        (S.ACTIVE, None, (RequestSlots,)),
        (S.ACTIVE, running(), ()),
        (S.PAUSED, None, ()),
        (S.STOPPING_PAUSED, None, (Conclude,)),
        (S.STOPPING_PAUSED, running(AllocationState.PENDING, ready=False), (WithdrawRequest,)),
        (S.STOPPING_PAUSED, running(AllocationState.PULLING, ready=False), (Kill,)),
        (S.STOPPING_PAUSED, running(), (AskToLeave,)),
        (S.STOPPING_PAUSED, running(preemption=Preemption.REQUESTED), ()),
        (S.STOPPING_CANCELED, running(preemption=Preemption.REQUESTED), (Kill,)),
        (S.STOPPING_CANCELED, running(ending=True), ()),
        (S.STOPPING_CANCELED, None, (Conclude,)),
    ],
)
def test_each_state_asks_for_what_brings_it_about(
    state: TaskState, allocation: OpenAllocation | None, actions: tuple[type, ...]
) -> None:
    """One action at most, and none where it has been taken."""
    assert tuple(type(action) for action in reconcile_task(LiveTask("t", state, allocation))) == actions
