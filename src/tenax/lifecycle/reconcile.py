"""What must be done for an experiment, given what it and its trials are: desired against existing.

Rules it keeps:

- Every action is safe to repeat: a second pass over the result finds nothing to do.
- A trial that should run has exactly one open allocation; a trial that should not is asked to leave if it is ready,
  and ended at once if it is not (there is nothing to save before its members have met). A kill never waits for that.
- A request that has not been placed is withdrawn, not asked.
- No more trials ask for slots than may run at once: those that live longest. One that was asked to leave lives until it
  has left; and a search may make more than that, one for each bracket, or when it is continued.
- An experiment ends when it is stopping and no trial of it lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.container import Desired
from tenax.lifecycle.experiment import STOPPING, ExperimentState
from tenax.lifecycle.trial import TrialVerdict, Wish, effective_wish, end_without_attempt

#: Seconds that a script has to end after it reported invalid hyperparameters, or after a report that ends its trial.
SHORT_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class OpenAllocation:
    """The open allocation of a trial."""

    allocation_id: str
    state: AllocationState
    preemption: Preemption
    #: Its members have met (or the only one runs).
    ready: bool
    #: Every member is wanted to end already.
    ending: bool
    #: Seconds until they are killed, having been asked to leave; None: no time is set.
    leaves_within_s: float | None = None
    #: The script has asked to be told when it is to leave.
    listens: bool = True


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """A trial that has not ended."""

    trial_id: int
    wish: Wish
    invalid_hp: bool
    fatal: str | None
    allocation: OpenAllocation | None
    #: The platform ended its last attempts within a minute: the next one has to wait a while.
    held: bool = False
    #: Why its own wish was raised.
    wish_reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestAllocation:
    """Ask for slots: the trial's next attempt."""

    trial_id: int


@dataclass(frozen=True, slots=True)
class EndTrial:
    """A trial without an allocation has ended."""

    trial_id: int
    verdict: TrialVerdict


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back a request that was not placed."""

    trial_id: int
    allocation_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AskToLeave:
    """Signal the task to save and leave; after ``within_s`` (None: the configured time) its members are killed.

    For one that was asked before the shorter time holds.
    """

    allocation_id: str
    reason: str
    within_s: float | None


@dataclass(frozen=True, slots=True)
class Kill:
    """End all members: those of a person's kill with a moment to save, others now."""

    allocation_id: str
    reason: str
    desired: Desired


@dataclass(frozen=True, slots=True)
class EndExperiment:
    """No trial lives any more."""


ExperimentAction = Union[RequestAllocation, EndTrial, Withdraw, AskToLeave, Kill, EndExperiment]

_REASON_OF_WISH = {
    Wish.PAUSE: "the experiment was paused",
    Wish.STOP: "the search stopped this trial",
    Wish.CANCEL: "canceled",
    Wish.KILL: "killed",
}


def reconcile(
    state: ExperimentState, trials: tuple[LiveTrial, ...], at_once: int | None = None
) -> tuple[ExperimentAction, ...]:
    """The actions that bring an experiment in ``state`` with these live trials to what it should be.

    ``trials`` are in the order of their making; ``at_once``: how many of them may run at a time, None: all.
    """
    actions = tuple(
        action for place, trial in enumerate(trials) for action in _trial_actions(state, trial, place, at_once)
    )
    if state in STOPPING and not trials:
        return (*actions, EndExperiment())
    return actions


def unsettled(
    state: ExperimentState, trials: tuple[LiveTrial, ...], at_once: int | None = None
) -> tuple[LiveTrial, ...]:
    """The trials for which something must be done; what it is shows in `reconcile` of these alone, with no limit."""
    return tuple(trial for place, trial in enumerate(trials) if _trial_actions(state, trial, place, at_once))


def _trial_actions(
    state: ExperimentState, trial: LiveTrial, place: int, at_once: int | None
) -> tuple[ExperimentAction, ...]:
    actions = _reconcile_trial(state, trial)
    if at_once is None or place < at_once:
        return actions
    return tuple(action for action in actions if not isinstance(action, RequestAllocation))


def _reconcile_trial(state: ExperimentState, trial: LiveTrial) -> tuple[ExperimentAction, ...]:
    wish = effective_wish(trial.wish, state)
    allocation = trial.allocation
    own_reason = trial.wish_reason if wish is trial.wish else ""
    if allocation is None:
        verdict = end_without_attempt(wish, trial.invalid_hp, trial.fatal, own_reason)
        if verdict is not None:
            return (EndTrial(trial.trial_id, verdict),)
        return (RequestAllocation(trial.trial_id),) if wish is Wish.RUN and not trial.held else ()
    if wish is Wish.RUN and not trial.invalid_hp and trial.fatal is None:
        return ()
    reason = trial.fatal or ("invalid hyperparameters" if trial.invalid_hp else own_reason or _REASON_OF_WISH[wish])
    if allocation.state is AllocationState.PENDING:
        return (Withdraw(trial.trial_id, allocation.allocation_id, reason),)
    if allocation.ending:
        return ()
    if wish is Wish.KILL:
        return (Kill(allocation.allocation_id, reason, Desired.STOP),)
    if not allocation.ready:
        return (Kill(allocation.allocation_id, reason, Desired.KILL),)
    hurry = trial.fatal is not None or trial.invalid_hp
    left = allocation.leaves_within_s
    if allocation.preemption is Preemption.NONE or (hurry and (left is None or left > SHORT_GRACE_S)):
        return (AskToLeave(allocation.allocation_id, reason, SHORT_GRACE_S if hurry else None),)
    return ()
