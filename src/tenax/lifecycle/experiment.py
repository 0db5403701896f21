"""The experiment's machine.

Rules it keeps:

- A user may pause, activate, cancel and kill. Cancel asks the trials to save and leave; kill does not ask.
- A stopping experiment becomes terminal when none of its trials lives any more; never before.
- What was asked is only ever raised: a kill over a cancel, never a cancel over a kill.
- One that cannot be handled at all is set aside: ERROR at once, with its story.
- One that has ended may be continued: it is ACTIVE again, and what ended it is forgotten.
- Cancel and kill on what is stopping or has ended already are no errors: there is nothing left to do.
"""

from __future__ import annotations

from enum import Enum

from tenax.errors import Impossible, NotNow


class ExperimentState(str, Enum):
    """As stored, and as Determined's client names them (with the prefix ``STATE_``)."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_KILLED = "STOPPING_KILLED"
    STOPPING_ERROR = "STOPPING_ERROR"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    DELETE_FAILED = "DELETE_FAILED"


class ExperimentEvent(str, Enum):
    """What happens to an experiment."""

    ACTIVATE = "activate"
    PAUSE = "pause"
    CANCEL = "cancel"
    KILL = "kill"
    #: The search is over: every trial it asked for has ended.
    SEARCH_SUCCEEDED = "search_succeeded"
    SEARCH_CANCELED = "search_canceled"
    SEARCH_FAILED = "search_failed"
    #: No trial lives any more.
    TRIALS_ENDED = "trials_ended"
    #: It cannot be handled; its story is the reason.
    BROKEN = "broken"
    #: A user lets it go on after its end.
    CONTINUE = "continue"
    DELETE = "delete"
    DELETE_FAILED = "delete_failed"


_S = ExperimentState
_E = ExperimentEvent

RUNNING = (_S.ACTIVE, _S.PAUSED)
STOPPING = (_S.STOPPING_COMPLETED, _S.STOPPING_CANCELED, _S.STOPPING_KILLED, _S.STOPPING_ERROR)
ENDED = (_S.COMPLETED, _S.CANCELED, _S.ERROR)

#: (state, event) -> state. An event that maps to its own state is already so: nothing to do.
TRANSITIONS: dict[tuple[ExperimentState, ExperimentEvent], ExperimentState] = {
    (_S.PAUSED, _E.ACTIVATE): _S.ACTIVE,
    (_S.ACTIVE, _E.ACTIVATE): _S.ACTIVE,
    (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
    (_S.PAUSED, _E.PAUSE): _S.PAUSED,
    **{(state, _E.CANCEL): _S.STOPPING_CANCELED for state in RUNNING},
    **{(state, _E.CANCEL): state for state in (*STOPPING, *ENDED)},
    **{(state, _E.KILL): _S.STOPPING_KILLED for state in (*RUNNING, *STOPPING)},
    **{(state, _E.KILL): state for state in ENDED},
    **{(state, _E.SEARCH_SUCCEEDED): _S.STOPPING_COMPLETED for state in RUNNING},
    **{(state, _E.SEARCH_CANCELED): _S.STOPPING_CANCELED for state in RUNNING},
    **{(state, _E.SEARCH_FAILED): _S.STOPPING_ERROR for state in RUNNING},
    **{(state, _E.BROKEN): _S.ERROR for state in (*RUNNING, *STOPPING)},
    (_S.STOPPING_COMPLETED, _E.TRIALS_ENDED): _S.COMPLETED,
    (_S.STOPPING_CANCELED, _E.TRIALS_ENDED): _S.CANCELED,
    (_S.STOPPING_KILLED, _E.TRIALS_ENDED): _S.CANCELED,
    (_S.STOPPING_ERROR, _E.TRIALS_ENDED): _S.ERROR,
    **{(state, _E.CONTINUE): _S.ACTIVE for state in ENDED},
    **{(state, _E.DELETE): _S.DELETING for state in (*ENDED, _S.DELETE_FAILED)},
    (_S.DELETING, _E.DELETE): _S.DELETING,
    (_S.DELETING, _E.DELETE_FAILED): _S.DELETE_FAILED,
}

_USERS_EVENTS = (_E.ACTIVATE, _E.PAUSE, _E.CANCEL, _E.KILL, _E.CONTINUE, _E.DELETE)


def step(state: ExperimentState, event: ExperimentEvent) -> ExperimentState:
    """The state after ``event``.

    Raises NotNow, with what to do, where a user asked for what the state does not allow; Impossible for any other event
    that the state does not know.
    """
    after = TRANSITIONS.get((state, event))
    if after is not None:
        return after
    if event in _USERS_EVENTS:
        raise NotNow(_refusal(state, event))
    raise Impossible(f"an experiment that is {state.value} cannot meet {event.value}")


#: Not for every search: those that stop trials early do not go on.
_AGAIN = "create a new one from it (fork), or continue it, unless its search stops trials early"


def _refusal(state: ExperimentState, event: ExperimentEvent) -> str:
    name = "stopping" if state in STOPPING else state.value.lower().replace("_", " ")
    if event is _E.DELETE:
        return f"the experiment is {name}; only one that has ended can be deleted: cancel or kill it first"
    if event is _E.CONTINUE and state in RUNNING:
        return (
            f"the experiment is {name}: it has not ended, so there is nothing to continue; activate it if it is paused"
        )
    if event is _E.CONTINUE and state in STOPPING:
        return "the experiment is stopping: continue it when it has ended (tenax experiment wait)"
    if event is _E.CONTINUE:
        return f"the experiment is {name}; only one that has ended can be continued"
    if state in ENDED:
        return f"the experiment has ended ({name}) and cannot {event.value}; {_AGAIN}"
    return f"the experiment is {name} and cannot {event.value} any more"
