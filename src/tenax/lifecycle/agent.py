"""When an agent is taken out by itself: nothing starts there any more, for reasons that are not those of what starts.

Rules:

- So many starts in a row failed by the platform's failure, each begun after the one before had failed: a machine that
  restarts under many is one setback. What had begun to run says nothing of its machine, whatever ended it.
- Whatever begins to run there in slots ends the row, and so does time: `AGE_S`.
- Others in its pool start meanwhile: where nobody does, the cause is not this machine, and the last one of a pool that
  takes work is never taken out.
- What the runs of one person alone meet may be that person's doing (an image that they removed), and takes an agent
  from nobody else, unless that person is an administrator.
- Who is taken out drains for a while (`REST_S`), or until a person enables it: it takes nothing new, and what runs
  there may end. Then it is tried again: the next start that fails within the hour takes it out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenax.lifecycle.container import ORDER, Container, ContainerState, Desired

#: Setbacks in a row.
LIMIT = 3
#: Seconds after which a setback counts no more, and for which an agent that was taken out rests.
AGE_S, REST_S = 3600.0, 600.0
#: So many characters of the last one's reason are shown.
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Setback:
    """A start that failed on an agent for a reason that was not its own."""

    owner_id: int
    #: Whether its owner is an administrator.
    by_admin: bool
    reason: str


def is_setback(before: Container, after: Container) -> bool:
    """Whether its agent has just said that it could not be started, with nobody waiting for its end."""
    ending = after.ending
    began = ORDER[before.state] >= ORDER[ContainerState.RUNNING]
    return not began and ending is not None and ending.platform and before.desired is Desired.RUN


def ends_the_row(before: Container, after: Container) -> bool:
    """Whether its agent has just said that it runs, or has run and ended by itself."""
    if ORDER[before.state] >= ORDER[ContainerState.RUNNING]:
        return False
    ending = after.ending
    return after.state is ContainerState.RUNNING or (ending is not None and (ending.clean or ending.failed))


def why_taken_out(setbacks: Sequence[Setback], *, others_start: bool) -> str:
    """Of the setbacks in a row on an agent, the oldest first; empty where it keeps taking work."""
    if len(setbacks) < LIMIT or not others_start:
        return ""
    alone = len({setback.owner_id for setback in setbacks}) == 1
    if alone and not setbacks[0].by_admin:
        return ""
    last = setbacks[-1].reason
    shown = last if len(last) <= _SHOWN else f"{last[:_SHOWN]} …"
    return (
        f"{len(setbacks)} starts in a row failed here, while others succeeded elsewhere, the last: {shown}; it is "
        f"tried again after {REST_S / 60:g} minutes"
    )
