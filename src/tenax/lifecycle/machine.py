"""The life of a machine that is rented: a row before any call, so that none is ever there that nobody knows of.

Rules it keeps:

- A row comes first (PLANNED), then that it is about to be sent (ASKED), then the call, then its answer (STARTING): of a
  call whose answer was lost a look at the provider tells, by the row's id, which the machine carries as a mark.
- It is sent again, with the same id, only after looks that show none, later than the provider's lists lag behind.
- A machine whose agent has not joined in its time is ended, or as soon as it says that its start failed; so is one
  whose agent was not heard for too long, or has fewer slots than were rented, which counts as one that never joined:
  else another one would be rented for ever.
- LEAVING takes nothing new, and is ended once it is idle, unless its agent takes work again; ENDING is asked for again
  until the provider says that it has ended: only then, with its agent removed, is it GONE.
- A look that does not show a machine proves nothing while its agent is connected: somebody may have taken its mark
  away.
- What carries our mark and has no row is asked first what it holds, as the database may be an older copy: it gets a row
  that is STARTING, and its agent may join once more. What nobody can ask gets one that is ENDING.
- What nobody answered for is sent again later each time, ten minutes after the time before at most.
- What a person asked to end is not sent any more, and ends once it is seen, before its agent joins. One that works
  takes nothing new, its work is asked to leave or ends at once, and it is ended when it is idle; where somebody
  enables its agent before that, it stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tenax.backoff import Backoff
from tenax.errors import Impossible, NotNow

#: Seconds by which a provider's lists may lag behind what was done.
LAG_S = 30.0
#: Seconds after which a machine whose agent was not heard is given up.
AWAY_S = 600.0
#: Seconds between two requests to end the same machine.
END_AGAIN_S = 30.0
#: How long work that is to end at once may take to.
CUT_S = 600.0
#: Before the end of a machine's life its work is asked to save; before that of a short one for a quarter of it.
SAVE_S = 600.0
#: How long the agent of a machine that had no row has to join once more.
ASK_S = 1200.0
#: Seconds after which what nobody answered for is sent again.
RESEND = Backoff(first=LAG_S, ceiling=600.0)


class MachineState(str, Enum):
    """As stored."""

    PLANNED = "PLANNED"
    ASKED = "ASKED"
    STARTING = "STARTING"
    JOINED = "JOINED"
    LEAVING = "LEAVING"
    ENDING = "ENDING"
    GONE = "GONE"
    FAILED = "FAILED"


class MachineEvent(str, Enum):
    """What happens to a machine."""

    SEND = "it is about to be asked for"
    WITHDRAW = "its pool rents nothing any more"
    ANSWERED = "the provider has answered, or it was seen by its mark"
    REFUSED = "the provider refused"
    JOIN = "its agent joined"
    LATE = "its agent did not join in time"
    BROKE = "its start failed, as it says itself"
    STOPPED = "the provider says that it has ended"
    AWAY = "its agent was not heard for too long"
    LACKS = "its agent has fewer slots than were rented (instance_slots)"
    DRAIN = "it is to take nothing new"
    NOTICE = "its cloud says that it is going to end"
    STAY = "its agent takes work again"
    DISMISS = "a person wants it ended"
    CUT = "a person wants it ended at once, and its agent is not connected, or its work does not end"
    RETIRE = "it is idle, and not needed"
    REMOVED = "the provider says that it has ended, and its agent is removed"


class Dismissal(str, Enum):
    """As stored: what a person, or the limit of its life, wants of a machine; a later one asks for no less."""

    NONE = ""
    #: It is to be ended once its work has saved and left.
    LEAVE = "LEAVE"
    #: Its work is to end at once.
    NOW = "NOW"


class MachineNews(str, Enum):
    """What webhooks may be told of rented machines; each is written in the transaction of what it tells of."""

    #: The provider has taken the order.
    LAUNCHED = "LAUNCHED"
    #: It was refused, never joined, or has fewer slots than were rented; what is there of it is ended.
    FAILED = "FAILED"
    #: It was there, and the provider says that it has ended.
    ENDED = "ENDED"
    #: Its cloud says something of it.
    NOTICE = "NOTICE"
    #: It was seen, and had no row.
    ORPHAN = "ORPHAN"
    #: Nothing of an offer is rented until settings change: its order is wrong, or three in a row never joined.
    OFFER_OFF = "OFFER_OFF"
    BUDGET_NEARLY = "BUDGET_NEARLY"
    BUDGET_USED_UP = "BUDGET_USED_UP"


class Trouble(str, Enum):
    """What stands in the way of a machine at its provider, as it is said behind why the machine is as it is."""

    UNANSWERED = "the provider did not answer the request for it"
    UNSEEN = "the provider does not say which machines there are"
    UNENDED = "it could not be ended yet"


ENDED = frozenset({MachineState.GONE, MachineState.FAILED})
#: What comes to another state by what a look shows, and by nothing else in good time.
LOOKED_FOR = frozenset({MachineState.ASKED, MachineState.STARTING, MachineState.ENDING})

TRANSITIONS: Mapping[tuple[MachineState, MachineEvent], MachineState] = {
    (MachineState.PLANNED, MachineEvent.SEND): MachineState.ASKED,
    (MachineState.PLANNED, MachineEvent.WITHDRAW): MachineState.FAILED,
    (MachineState.ASKED, MachineEvent.ANSWERED): MachineState.STARTING,
    (MachineState.ASKED, MachineEvent.REFUSED): MachineState.FAILED,
    (MachineState.ASKED, MachineEvent.WITHDRAW): MachineState.FAILED,
    (MachineState.STARTING, MachineEvent.JOIN): MachineState.JOINED,
    (MachineState.STARTING, MachineEvent.LATE): MachineState.ENDING,
    (MachineState.STARTING, MachineEvent.BROKE): MachineState.ENDING,
    (MachineState.STARTING, MachineEvent.STOPPED): MachineState.FAILED,
    (MachineState.JOINED, MachineEvent.DRAIN): MachineState.LEAVING,
    (MachineState.JOINED, MachineEvent.NOTICE): MachineState.LEAVING,
    (MachineState.LEAVING, MachineEvent.STAY): MachineState.JOINED,
    (MachineState.STARTING, MachineEvent.DISMISS): MachineState.ENDING,
    (MachineState.JOINED, MachineEvent.DISMISS): MachineState.LEAVING,
    (MachineState.LEAVING, MachineEvent.CUT): MachineState.ENDING,
    **{
        (state, event): MachineState.ENDING
        for state in (MachineState.JOINED, MachineState.LEAVING)
        for event in (MachineEvent.RETIRE, MachineEvent.STOPPED, MachineEvent.AWAY)
    },
    (MachineState.JOINED, MachineEvent.LACKS): MachineState.ENDING,
    (MachineState.ENDING, MachineEvent.REMOVED): MachineState.GONE,
}


def after(state: MachineState, event: MachineEvent) -> MachineState:
    """The state after an event. Raises Impossible, and nothing has changed."""
    if (state, event) not in TRANSITIONS:
        raise Impossible(f"a machine that is {state.value} met: {event.value}")
    return TRANSITIONS[state, event]


#: What of a transition is told, whatever the state is; what a person or the settings take back has not failed.
_NEWS: Mapping[MachineEvent, MachineNews] = {
    MachineEvent.ANSWERED: MachineNews.LAUNCHED,
    **dict.fromkeys((MachineEvent.REFUSED, MachineEvent.LATE, MachineEvent.BROKE), MachineNews.FAILED),
    MachineEvent.LACKS: MachineNews.FAILED,
    MachineEvent.REMOVED: MachineNews.ENDED,
}


def news_of(state: MachineState, event: MachineEvent) -> MachineNews | None:
    """What is told of an event that a machine meets in a state; None: nothing."""
    if (state, event) == (MachineState.STARTING, MachineEvent.STOPPED):
        return MachineNews.FAILED
    return _NEWS.get(event)


def dismissed(machine_id: str, state: MachineState, before: Dismissal, dismissal: Dismissal, story: str) -> None:
    """Whether a person may ask for the end of a machine; ``story``: why it is as it is. Raises NotNow."""
    why = f": {story}" if story else ""
    if state in ENDED or state is MachineState.ENDING:
        what = "is ending" if state is MachineState.ENDING else f"has ended ({state.value})"
        raise NotNow(f"machine {machine_id} {what} already{why}")
    if before is Dismissal.NOW or before is dismissal:
        more = "" if before is Dismissal.NOW else "; to end its work at once, ask for its end now (--now)"
        raise NotNow(f"machine {machine_id} is asked to end already{why}{more}")


_TROUBLE = re.compile(f"; ({'|'.join(re.escape(each.value) for each in Trouble)}): ")


def noted(story: str, trouble: Trouble, why: str = "") -> str:
    """Why a machine is as it is, with what stands in its way; ``why`` empty: that does not any more."""
    before, *rest = _TROUBLE.split(story)
    troubles = dict(zip(rest[::2], rest[1::2], strict=True)) | {trouble.value: why}
    return "; ".join([before, *(f"{each.value}: {its}" for each in Trouble if (its := troubles.get(each.value)))])


def troubles_of(story: str) -> list[str]:
    """What stands in the way of a machine, by why it is as it is."""
    _, *rest = _TROUBLE.split(story)
    return [f"{trouble}: {why}" for trouble, why in zip(rest[::2], rest[1::2], strict=True)]


def outlived(state: MachineState, age_s: float, max_run_s: float | None, before: Dismissal) -> Dismissal:
    """What follows from the limit of a machine's life: more than is asked of it already; NONE: nothing.

    ``age_s``: seconds since it was planned, before it was there; ``max_run_s``: None for no limit.
    """
    if max_run_s is None or state not in (MachineState.JOINED, MachineState.LEAVING):
        return Dismissal.NONE
    if age_s >= max_run_s:
        return Dismissal.NONE if before is Dismissal.NOW else Dismissal.NOW
    is_late = age_s >= max_run_s - min(SAVE_S, max_run_s / 4)
    return Dismissal.LEAVE if is_late and before is Dismissal.NONE else Dismissal.NONE


class Sighting(str, Enum):
    """What looks at the provider say of a machine."""

    #: Nobody has looked, or it was missing once.
    UNKNOWN = "UNKNOWN"
    RUNNING = "RUNNING"
    ENDED = "ENDED"
    #: Missing twice in a row, later than lists lag behind.
    MISSING = "MISSING"


class MachineStep(str, Enum):
    """What to do next for a machine, beside what its pool decides."""

    WAIT = "WAIT"
    #: Ask the provider for it, be it once more.
    SEND = "SEND"
    WITHDRAW = "WITHDRAW"
    #: It was seen: note what the provider calls it.
    TAKE = "TAKE"
    LATE = "LATE"
    STOPPED = "STOPPED"
    AWAY = "AWAY"
    LACKS = "LACKS"
    DRAIN = "DRAIN"
    NOTICE = "NOTICE"
    STAY = "STAY"
    DISMISS = "DISMISS"
    CUT = "CUT"
    #: Idle and leaving: end it.
    RETIRE = "RETIRE"
    #: Ask the provider to end it, be it once more.
    END = "END"
    REMOVE = "REMOVE"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What the next step for a machine depends on."""

    state: MachineState
    sighting: Sighting = Sighting.UNKNOWN
    #: Seconds since its last change of state, or since it was last asked for or to end.
    age_s: float = 0.0
    #: Seconds since it was planned.
    since_planned_s: float = 0.0
    #: How long its agent may take to join.
    starting_s: float = 1200.0
    #: Since its agent was heard; 0: it is connected.
    away_s: float = 0.0
    #: Its agent is connected.
    connected: bool = False
    #: Its agent has said what it holds, and nothing runs there.
    idle: bool = False
    #: Its pool still rents machines of this provider.
    renting: bool = True
    #: How often it was asked for.
    sent: int = 1
    #: It was never asked to end.
    new: bool = False
    #: Its agent is connected, and has fewer slots than were rented.
    lacks: bool = False
    #: Its agent takes nothing new for what its cloud says.
    noticed: bool = False
    #: Its agent takes work.
    takes_work: bool = False
    #: What a person wants of it.
    dismissal: Dismissal = Dismissal.NONE


_S = MachineState


def _is_wanted(it: MachineFacts) -> bool:
    return it.renting and it.dismissal is Dismissal.NONE


def _ends_before_it_joins(it: MachineFacts) -> bool:
    # What had no row is asked first what it holds.
    return it.dismissal is Dismissal.NOW or (it.dismissal is Dismissal.LEAVE and it.sent > 0)


def _is_gone(it: MachineFacts) -> bool:
    return it.sighting is Sighting.ENDED or (it.sighting is Sighting.MISSING and not it.connected)


#: The first that holds.
RULES: Sequence[tuple[Callable[[MachineFacts], bool], MachineStep]] = (
    (lambda it: it.state is _S.PLANNED and _is_wanted(it), MachineStep.SEND),
    (lambda it: it.state is _S.PLANNED, MachineStep.WITHDRAW),
    (lambda it: it.state is _S.ASKED and it.sighting in (Sighting.RUNNING, Sighting.ENDED), MachineStep.TAKE),
    (
        lambda it: (
            it.state is _S.ASKED
            and it.sighting is Sighting.MISSING
            and _is_wanted(it)
            and it.age_s > RESEND.after(it.sent)
        ),
        MachineStep.SEND,
    ),
    (
        lambda it: it.state is _S.ASKED and it.sighting is Sighting.MISSING and not _is_wanted(it) and it.age_s > LAG_S,
        MachineStep.WITHDRAW,
    ),
    (lambda it: it.state is _S.STARTING and it.sighting is Sighting.ENDED, MachineStep.STOPPED),
    (lambda it: it.state is _S.STARTING and it.sighting is Sighting.MISSING and it.age_s > LAG_S, MachineStep.STOPPED),
    (lambda it: it.state is _S.STARTING and _ends_before_it_joins(it), MachineStep.DISMISS),
    (lambda it: it.state is _S.STARTING and it.since_planned_s > it.starting_s, MachineStep.LATE),
    (lambda it: it.state in (_S.JOINED, _S.LEAVING) and _is_gone(it), MachineStep.STOPPED),
    (lambda it: it.state in (_S.JOINED, _S.LEAVING) and it.away_s > AWAY_S, MachineStep.AWAY),
    (lambda it: it.state is _S.JOINED and it.dismissal is not Dismissal.NONE, MachineStep.DISMISS),
    (lambda it: it.state is _S.JOINED and it.lacks and it.idle, MachineStep.LACKS),
    (lambda it: it.state is _S.JOINED and not it.renting, MachineStep.DRAIN),
    (lambda it: it.state is _S.JOINED and it.noticed, MachineStep.NOTICE),
    (lambda it: it.state is _S.LEAVING and it.takes_work and it.renting, MachineStep.STAY),
    (lambda it: it.state is _S.LEAVING and it.idle, MachineStep.RETIRE),
    (
        lambda it: it.state is _S.LEAVING and it.dismissal is Dismissal.NOW and (not it.connected or it.age_s > CUT_S),
        MachineStep.CUT,
    ),
    (lambda it: it.state is _S.ENDING and _is_gone(it), MachineStep.REMOVE),
    (lambda it: it.state is _S.ENDING and (it.new or it.age_s > END_AGAIN_S), MachineStep.END),
)


def next_step(facts: MachineFacts) -> MachineStep:
    """What to do next for a machine."""
    return next((step for holds, step in RULES if holds(facts)), MachineStep.WAIT)
