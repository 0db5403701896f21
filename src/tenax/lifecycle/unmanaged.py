"""The machines of what is trained elsewhere: a script outside of the cluster says what its trial is.

Rules it keeps:

- Only what lives can end; the same end twice is one. A new start brings back what has ended.
- One that fell silent is an ERROR, and lives again when it reports; one that reported how it ended does not.
- The experiment is what its trials are together: ACTIVE while one lives or none was made, then the worst end.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from tenax.errors import NotNow
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.trial import TrialState


class TrialReport(str, Enum):
    """What is reported of a trial."""

    #: It begins, or begins again.
    START = "start"
    #: It lives: a heartbeat, with or without RUNNING.
    ALIVE = "alive"
    COMPLETED = "completed"
    CANCELED = "canceled"
    ERROR = "error"
    #: It reported nothing for too long.
    SILENT = "silent"


_T = TrialState
_ENDS = {
    TrialReport.COMPLETED: _T.COMPLETED,
    TrialReport.CANCELED: _T.CANCELED,
    TrialReport.ERROR: _T.ERROR,
    TrialReport.SILENT: _T.ERROR,
}


def step(state: TrialState, lost: bool, report: TrialReport) -> TrialState:
    """The state after ``report``; ``lost``: it ended by silence. Raises NotNow with what to do."""
    if report is TrialReport.START:
        return _T.ACTIVE
    if state is _T.ACTIVE or lost:
        return _ENDS.get(report, _T.ACTIVE)
    if report is TrialReport.SILENT or _ENDS.get(report) is state:
        return state
    raise NotNow(f"the trial has ended ({state.value.lower()}): start it again before it reports anything new")


def together(states: Collection[TrialState]) -> ExperimentState:
    """What an experiment is whose trials are these."""
    if not states or _T.ACTIVE in states:
        return ExperimentState.ACTIVE
    for worst in (_T.ERROR, _T.CANCELED):
        if worst in states:
            return ExperimentState(worst.value)
    return ExperimentState.COMPLETED
