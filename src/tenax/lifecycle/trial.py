"""The trial's machine, and the ordered list that decides what an exit means.

Rules it keeps:

- A trial is ACTIVE until it is COMPLETED, CANCELED or ERROR; between two attempts it is still ACTIVE.
- What it should become is the higher of its own wish and its experiment's, and is only ever raised (activate clears
  pause); it is read when an exit is decided, so that a preemption that meets a Stop ends as the Stop.
- Zero exit and the preemption acknowledged: it saved and left, it goes on later. Zero exit otherwise: it has finished.
- A kill that a person asked for ends CANCELED, whatever the script made of it.
- An attempt that its time limit ended before it had saved is the last, unless the limit was raised meanwhile: the next
  one would come no further. One that had not even begun is tried again, so many times in a row (`MAX_NOT_BEGUN`).
- Where nobody has set ``max_restarts``, the same exception at the same place twice in a row, or the same options
  refused, after the same last step and without a checkpoint, is the end: it would be so every time.
  Where another trial of its experiment ended so before any step, one that fails there before any step needs no second
  run: all run the same code.
- Failures that the platform caused are never counted; a trial fails when ``restarts`` would pass ``max_restarts``.
- A failure on a full disk is the platform's, as others may have filled it; of so many in a row (`MAX_FULL_DISKS`) the
  last counts, since the trial itself may fill it, for a moment and where nobody finds its files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from tenax.backoff import Backoff
from tenax.lifecycle.allocation import Preemption
from tenax.lifecycle.container import Ending
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.time_limit import NOT_BEGUN, nothing_saved
from tenax.search.journal import STOPPED_EARLY


class TrialState(str, Enum):
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class Wish(str, Enum):
    """What a trial should become, in rising order. PAUSE comes from the experiment alone."""

    RUN = "RUN"
    PAUSE = "PAUSE"
    STOP = "STOP"
    CANCEL = "CANCEL"
    KILL = "KILL"


#: Between attempts that the platform ends within a minute, and counts none of: nobody lives on such ends.
_SETBACKS = Backoff(first=0.5, ceiling=60.0)

#: Failures after which a trial is tried again, where nothing else is said.
MAX_RESTARTS = 5

#: Attempts in a row that their time limit ended before they had begun, of which the last ends the trial.
MAX_NOT_BEGUN = 5

#: Failures in a row on a full disk, of which the last counts; however long each ran.
MAX_FULL_DISKS = 5

WISH_ORDER = {wish: place for place, wish in enumerate(Wish)}

_WISH_OF_EXPERIMENT = {
    ExperimentState.ACTIVE: Wish.RUN,
    ExperimentState.PAUSED: Wish.PAUSE,
    ExperimentState.STOPPING_COMPLETED: Wish.STOP,
    ExperimentState.STOPPING_CANCELED: Wish.CANCEL,
    ExperimentState.STOPPING_ERROR: Wish.CANCEL,
    ExperimentState.STOPPING_KILLED: Wish.KILL,
}


def effective_wish(own: Wish, experiment: ExperimentState) -> Wish:
    """The higher of the trial's own wish and its experiment's. An ended experiment wishes KILL."""
    return max(own, _WISH_OF_EXPERIMENT.get(experiment, Wish.KILL), key=WISH_ORDER.__getitem__)


class TrialExit(str, Enum):
    """Why a trial ended, as the search needs to know it."""

    COMPLETED = "COMPLETED"
    ERRORED = "ERRORED"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"


@dataclass(frozen=True, slots=True)
class TrialAttempt:
    """An allocation of a trial that has ended, and all that decides what comes of it."""

    wish: Wish
    ending: Ending
    preemption: Preemption
    restarts: int
    max_restarts: int
    #: The script said that its hyperparameters make no sense.
    invalid_hp: bool = False
    #: A report that ends the trial with this error.
    fatal: str | None = None
    #: Why its own wish was raised; empty where the wish says it.
    wish_reason: str = ""
    #: Why it was asked to leave.
    leave_reason: str = ""
    #: Its time limit was over.
    over_time: bool = False
    #: It has saved a checkpoint, or its time limit was raised meanwhile.
    comes_further: bool = False
    #: A log policy matched that forbids another try; its name.
    no_retry: str | None = None
    #: Where it failed as the run before did, after the same last step; None where ``max_restarts`` was set.
    repeats: str | None = None
    #: The trial of its experiment that did, before any step as this one; None: it did so itself.
    repeated_by: int | None = None
    #: Why log policies leave no machine for another try.
    nowhere: str | None = None
    #: It came as far as running.
    ran: bool = True
    #: It ran for a minute, at least.
    lasted: bool = True
    #: Attempts in a row before this one that the platform ended within a minute, or at any time by a full disk.
    setbacks: int = 0
    #: Of its experiment, for commands that are named; None: it is not known.
    experiment_id: int | None = None
    #: The search of its experiment may go on after its end.
    continuable: bool = True


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """What a trial becomes after an attempt."""

    state: TrialState
    restarts: int
    #: For people.
    reason: str
    #: For the search; None while the trial goes on.
    exit: TrialExit | None
    #: Attempts in a row, this one included, that the platform ended within a minute, or at any time by a full disk.
    setbacks: int = 0

    @property
    def hold_s(self) -> float:
        """Seconds before the next attempt: none after the first setback, then doubled each time, up to a minute."""
        return _SETBACKS.after(self.setbacks - 1)


def decide_exit(attempt: TrialAttempt) -> TrialVerdict:
    """The first rule of :data:`RULES` that matches."""
    for _, matches, verdict in RULES:
        if matches(attempt):
            return verdict(attempt)
    raise AssertionError("the last rule matches everything")


def end_without_attempt(wish: Wish, invalid_hp: bool, fatal: str | None, wish_reason: str = "") -> TrialVerdict | None:
    """What a trial becomes that holds no allocation; None while it should have one, or waits (paused)."""
    if fatal is not None:
        return TrialVerdict(TrialState.ERROR, 0, fatal, TrialExit.ERRORED)
    if wish in _TERMINAL_OF_WISH:
        state, reason, exit_reason = _TERMINAL_OF_WISH[wish]
        return TrialVerdict(state, 0, wish_reason or reason, exit_reason)
    if invalid_hp:
        return TrialVerdict(TrialState.COMPLETED, 0, _INVALID, TrialExit.INVALID_HP)
    return None


_INVALID = "the script reported that these hyperparameters are invalid"
_TERMINAL_OF_WISH = {
    Wish.STOP: (TrialState.COMPLETED, f"{STOPPED_EARLY} by the search", TrialExit.COMPLETED),
    Wish.CANCEL: (TrialState.CANCELED, "canceled", TrialExit.USER_CANCELED),
    Wish.KILL: (TrialState.CANCELED, "killed", TrialExit.USER_CANCELED),
}


def _error(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.ERROR, attempt.restarts, attempt.ending.reason, TrialExit.ERRORED)


def _fatal(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.ERROR, attempt.restarts, attempt.fatal or "", TrialExit.ERRORED)


def _as_wished(attempt: TrialAttempt) -> TrialVerdict:
    state, reason, exit_reason = _TERMINAL_OF_WISH[attempt.wish]
    return TrialVerdict(state, attempt.restarts, attempt.wish_reason or reason, exit_reason)


def _invalid(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.COMPLETED, attempt.restarts, _INVALID, TrialExit.INVALID_HP)


def _again_uncounted(attempt: TrialAttempt) -> TrialVerdict:
    setbacks = 0 if attempt.lasted and not attempt.ending.disk_full else attempt.setbacks + 1
    return TrialVerdict(TrialState.ACTIVE, attempt.restarts, attempt.ending.reason, None, setbacks)


def _full_too_often(attempt: TrialAttempt) -> TrialVerdict:
    reason = f"{attempt.ending.reason}; {attempt.setbacks + 1} runs in a row ended by the platform, so this one counts"
    ending = replace(attempt.ending, reason=reason, platform=False, disk_full=False)
    return decide_exit(replace(attempt, ending=ending))


def _no_retry(attempt: TrialAttempt) -> TrialVerdict:
    reason = f"{attempt.ending.reason}; the log policy {attempt.no_retry!r} forbids another try"
    return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)


def _too_often(attempt: TrialAttempt) -> TrialVerdict:
    tries = attempt.restarts + 1
    often = "once" if tries == 1 else f"{tries} times"
    reason = f"{attempt.ending.reason}; it failed {often}, and max_restarts is {attempt.max_restarts}"
    # It was not restarted again: what is shown is at most what was allowed.
    return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)


def _repeats(attempt: TrialAttempt) -> TrialVerdict:
    fork = f"tenax experiment fork {attempt.experiment_id or 'ID'}"
    if attempt.repeated_by is None:
        before = f"the run before failed at the same place ({attempt.repeats}), and this one came no further"
    else:
        before = (
            f"two runs of trial {attempt.repeated_by} failed at the same place ({attempt.repeats}), before any step"
        )
    again = "continue it" if attempt.continuable else f"fork it as it is ({fork})"
    reason = (
        f"{attempt.ending.reason}; {before}, so it is not tried again: mend the code and fork the experiment ({fork} "
        f"DIRECTORY), {again} if the cause lies outside the code, or set max_restarts to try that often"
    )
    return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)


def _nowhere(attempt: TrialAttempt) -> TrialVerdict:
    reason = f"{attempt.ending.reason}; {attempt.nowhere}"
    return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)


def _again_counted(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.ACTIVE, attempt.restarts + 1, attempt.ending.reason, None)


def _left(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.ACTIVE, attempt.restarts, "it saved and left when asked to", None)


def _killed_late(attempt: TrialAttempt) -> TrialVerdict:
    if not attempt.ran or attempt.preemption is Preemption.NONE:
        # What has not begun has nothing to save, and is not asked; it may have begun by the time that it ended.
        why = f": {attempt.leave_reason}" if attempt.leave_reason else ""
        reason = f"it was ended {'as' if attempt.ran else 'before'} it began{why}"
        return TrialVerdict(TrialState.ACTIVE, attempt.restarts, reason, None)
    cause = f"it was asked to leave ({attempt.leave_reason})," if attempt.leave_reason else "it"
    return TrialVerdict(TrialState.ACTIVE, attempt.restarts, f"{cause} did not leave in time and was ended", None)


def _over_time(attempt: TrialAttempt) -> TrialVerdict:
    verb = "continue" if attempt.continuable else "fork"
    reason = nothing_saved(f"tenax experiment {verb} {attempt.experiment_id or 'ID'}")
    return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)


def _not_begun(attempt: TrialAttempt) -> TrialVerdict:
    tries = attempt.setbacks + 1
    if tries >= MAX_NOT_BEGUN:
        reason = f"{NOT_BEGUN}, {tries} times in a row: raise resources.time_limit"
        return TrialVerdict(TrialState.ERROR, attempt.restarts, reason, TrialExit.ERRORED)
    return TrialVerdict(TrialState.ACTIVE, attempt.restarts, NOT_BEGUN, None, tries)


def _finished(attempt: TrialAttempt) -> TrialVerdict:
    return TrialVerdict(TrialState.COMPLETED, attempt.restarts, "the script finished", TrialExit.COMPLETED)


def _was_ended(attempt: TrialAttempt) -> bool:
    """By us, or it left because it was asked to; else the script has finished."""
    return attempt.ending.requested or attempt.preemption is Preemption.ACKNOWLEDGED


def _finished_before(attempt: TrialAttempt) -> bool:
    """Its script had come to its own end before it heard that the search stops it early."""
    early = not attempt.wish_reason or attempt.wish_reason.startswith(STOPPED_EARLY)
    return attempt.wish is Wish.STOP and early and attempt.ending.clean and not _was_ended(attempt)


def _is_full_too_often(attempt: TrialAttempt) -> bool:
    return attempt.ending.disk_full and attempt.setbacks + 1 >= MAX_FULL_DISKS


#: (what it says, when it holds, what follows): the first that holds decides.
RULES: tuple[tuple[str, Callable[[TrialAttempt], bool], Callable[[TrialAttempt], TrialVerdict]], ...] = (
    ("a report ended it", lambda a: a.fatal is not None, _fatal),
    ("killed", lambda a: a.wish is Wish.KILL, _as_wished),
    ("asked to stop, and it failed by itself", lambda a: a.wish in _TERMINAL_OF_WISH and a.ending.failed, _error),
    ("stopped early, and it had finished", _finished_before, _finished),
    ("asked to stop", lambda a: a.wish in _TERMINAL_OF_WISH, _as_wished),
    ("its hyperparameters are invalid", lambda a: a.invalid_hp, _invalid),
    ("failed on a full disk too often in a row", _is_full_too_often, _full_too_often),
    ("the platform failed", lambda a: a.ending.platform, _again_uncounted),
    ("failed, and may not be tried again", lambda a: a.ending.failed and a.no_retry is not None, _no_retry),
    ("failed as a run before did", lambda a: a.ending.failed and a.repeats is not None, _repeats),
    ("failed too often", lambda a: a.ending.failed and a.restarts + 1 > a.max_restarts, _too_often),
    ("failed, and may run nowhere", lambda a: a.ending.failed and a.nowhere is not None, _nowhere),
    ("failed", lambda a: a.ending.failed, _again_counted),
    ("over time before it began", lambda a: a.over_time and not a.ran and a.ending.requested, _not_begun),
    ("over time, and nothing saved", lambda a: a.over_time and not a.comes_further and _was_ended(a), _over_time),
    ("saved and left", lambda a: a.ending.clean and a.preemption is Preemption.ACKNOWLEDGED, _left),
    ("ended by us, not asked to stop", lambda a: a.ending.requested, _killed_late),
    ("finished", lambda a: True, _finished),
)
