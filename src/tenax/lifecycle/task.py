"""The machine of a task that no search asked for: a command, a generic task, a task of the cluster's own.

Rules it keeps:

- One attempt at a time, and none again after a failure: what an arbitrary program did before it failed is not known.
- A pausable task that was asked to leave goes on later, in a new attempt, from whatever it saved.
- What its time limit ended without its having left by itself is not started again.
- Kill is final and asks nothing; what has ended stays as it is, and killing it is no error.
- Every action is safe to repeat: a second look at the result finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Union

from tenax.errors import NotNow
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.container import Desired, Ending
from tenax.lifecycle.reconcile import AskToLeave, Kill, OpenAllocation


class TaskKind(str, Enum):
    """What a task is; as stored, and as Determined's client names it (with the prefix ``TASK_TYPE_``)."""

    TRIAL = "TRIAL"
    NOTEBOOK = "NOTEBOOK"
    SHELL = "SHELL"
    COMMAND = "COMMAND"
    TENSORBOARD = "TENSORBOARD"
    CHECKPOINT_GC = "CHECKPOINT_GC"
    GENERIC = "GENERIC"


class TaskState(str, Enum):
    """As stored, and as Determined's client names them (with the prefix ``GENERIC_TASK_STATE_``)."""

    ACTIVE = "ACTIVE"
    STOPPING_PAUSED = "STOPPING_PAUSED"
    PAUSED = "PAUSED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class TaskEvent(str, Enum):
    """What a user asks of a task."""

    PAUSE = "pause"
    UNPAUSE = "unpause"
    KILL = "kill"


_S = TaskState
_E = TaskEvent

ENDED = (_S.COMPLETED, _S.CANCELED, _S.ERROR)

#: (state, event) -> state. An event that maps to its own state is already so: nothing to do.
TRANSITIONS: dict[tuple[TaskState, TaskEvent], TaskState] = {
    (_S.ACTIVE, _E.PAUSE): _S.STOPPING_PAUSED,
    (_S.STOPPING_PAUSED, _E.PAUSE): _S.STOPPING_PAUSED,
    (_S.PAUSED, _E.PAUSE): _S.PAUSED,
    (_S.ACTIVE, _E.UNPAUSE): _S.ACTIVE,
    # It leaves all the same, as it was asked to, and comes back at once.
    (_S.STOPPING_PAUSED, _E.UNPAUSE): _S.ACTIVE,
    (_S.PAUSED, _E.UNPAUSE): _S.ACTIVE,
    **{(state, _E.KILL): _S.STOPPING_CANCELED for state in (_S.ACTIVE, _S.STOPPING_PAUSED, _S.PAUSED)},
    **{(state, _E.KILL): state for state in (_S.STOPPING_CANCELED, *ENDED)},
}


def step(state: TaskState, event: TaskEvent) -> TaskState:
    """The state after ``event``. Raises NotNow, with what to do."""
    after = TRANSITIONS.get((state, event))
    if after is not None:
        return after
    name = state.value.lower()
    if state in ENDED:
        raise NotNow(f"the task has ended ({name}) and cannot {event.value}; create it anew instead")
    raise NotNow(f"the task is {name} and cannot {event.value} any more")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """An attempt of a task that has ended, and all that decides what comes of it."""

    #: Of the task.
    state: TaskState
    ending: Ending
    preemption: Preemption
    #: It may be asked to leave, and goes on later.
    pausable: bool
    #: Why it was asked to leave.
    leave_reason: str = ""
    #: It came as far as running.
    ran: bool = True
    #: Its time limit was over.
    over_time: bool = False


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """What a task becomes after an attempt, or without one."""

    state: TaskState
    #: For people.
    reason: str


def decide_exit(attempt: TaskAttempt) -> TaskVerdict:
    """The first rule of :data:`RULES` that matches."""
    for _, matches, verdict in RULES:
        if matches(attempt):
            return verdict(attempt)
    raise AssertionError("the last rule matches everything")


def _failed(attempt: TaskAttempt) -> TaskVerdict:
    return TaskVerdict(_S.ERROR, attempt.ending.reason)


def _killed(attempt: TaskAttempt) -> TaskVerdict:
    return TaskVerdict(_S.CANCELED, "killed")


def _left(attempt: TaskAttempt) -> TaskVerdict:
    return _goes_on(attempt, "it saved and left when asked to")


def _ended_late(attempt: TaskAttempt) -> TaskVerdict:
    if not attempt.ran:
        why = f": {attempt.leave_reason}" if attempt.leave_reason else ""
        return _goes_on(attempt, f"it was ended before it began{why}")
    if attempt.preemption is Preemption.NONE:
        return _goes_on(attempt, "it does not listen for a pause, so it was ended at once")
    cause = f"it was asked to leave ({attempt.leave_reason})," if attempt.leave_reason else "it"
    return _goes_on(attempt, f"{cause} did not leave in time and was ended")


def _over_time(attempt: TaskAttempt) -> TaskVerdict:
    return TaskVerdict(_S.ERROR, "ended: its time limit was over")


def _ended(attempt: TaskAttempt) -> TaskVerdict:
    return TaskVerdict(_S.ERROR, f"ended: {attempt.leave_reason}" if attempt.leave_reason else attempt.ending.reason)


def _goes_on(attempt: TaskAttempt, reason: str) -> TaskVerdict:
    after = _S.PAUSED if attempt.state is _S.STOPPING_PAUSED else _S.ACTIVE
    return TaskVerdict(after, reason)


def _finished(attempt: TaskAttempt) -> TaskVerdict:
    return TaskVerdict(_S.COMPLETED, "it finished")


#: (what it says, when it holds, what follows): the first that holds decides.
RULES: tuple[tuple[str, Callable[[TaskAttempt], bool], Callable[[TaskAttempt], TaskVerdict]], ...] = (
    ("killed", lambda a: a.state is _S.STOPPING_CANCELED, _killed),
    ("the platform failed, and it is not started again", lambda a: a.ending.platform, _failed),
    ("failed", lambda a: a.ending.failed, _failed),
    ("saved and left", lambda a: a.pausable and a.ending.clean and a.preemption is Preemption.ACKNOWLEDGED, _left),
    ("over time, and ended by us", lambda a: a.over_time and a.ran and a.ending.requested, _over_time),
    ("asked to leave, and ended by us", lambda a: a.pausable and a.ending.requested, _ended_late),
    ("ended by us, and it is not started again", lambda a: a.ending.requested, _ended),
    ("finished", lambda a: True, _finished),
)


@dataclass(frozen=True, slots=True)
class LiveTask:
    """A task, and its open allocation if it has one."""

    task_id: str
    state: TaskState
    allocation: OpenAllocation | None


@dataclass(frozen=True, slots=True)
class RequestSlots:
    """Ask for slots: the task's next attempt."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Conclude:
    """A task without an allocation becomes this."""

    task_id: str
    verdict: TaskVerdict


@dataclass(frozen=True, slots=True)
class WithdrawRequest:
    """Take back a request that was not placed."""

    allocation_id: str
    reason: str


TaskAction = Union[RequestSlots, Conclude, WithdrawRequest, AskToLeave, Kill]

_PAUSED = TaskVerdict(_S.PAUSED, "paused")
_KILLED = TaskVerdict(_S.CANCELED, "killed")


def reconcile_task(task: LiveTask) -> tuple[TaskAction, ...]:
    """The actions that bring a task to what it should be; none where it is so."""
    allocation = task.allocation
    if allocation is None:
        return _without_attempt(task)
    if task.state is TaskState.ACTIVE:
        return ()
    reason = "paused" if task.state in (_S.STOPPING_PAUSED, _S.PAUSED) else "killed"
    if allocation.state is AllocationState.PENDING:
        return (WithdrawRequest(allocation.allocation_id, reason),)
    if allocation.ending:
        return ()
    # Who never asked to be told of it cannot save: waiting would bring nothing.
    if task.state is not TaskState.STOPPING_PAUSED or not (allocation.ready and allocation.listens):
        by_person = task.state is TaskState.STOPPING_CANCELED
        return (Kill(allocation.allocation_id, reason, Desired.STOP if by_person else Desired.KILL),)
    if allocation.preemption is Preemption.NONE:
        return (AskToLeave(allocation.allocation_id, reason, None),)
    return ()


def _without_attempt(task: LiveTask) -> tuple[TaskAction, ...]:
    if task.state is TaskState.ACTIVE:
        return (RequestSlots(task.task_id),)
    if task.state is TaskState.STOPPING_PAUSED:
        return (Conclude(task.task_id, _PAUSED),)
    if task.state is TaskState.STOPPING_CANCELED:
        return (Conclude(task.task_id, _KILLED),)
    return ()
