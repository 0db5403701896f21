"""When an agent is taken out by itself: runs failed there, one after the other, for reasons that were not theirs.

Rules:

- So many in a row, each begun after the one before had failed: a machine that restarts under many is one setback.
- Whatever ends otherwise there meanwhile, well or by its own fault, ends the row. What somebody ended proves nothing.
- What the runs of one person alone meet may be that person's doing (a disk that they filled, an image that they
  removed), and takes an agent from nobody else, unless that person is an administrator.
- Who is taken out drains, until a person enables it: it takes nothing new, and what runs there may end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenax.lifecycle.container import Container, ContainerState, Desired

#: Setbacks in a row.
LIMIT = 3
#: So many characters of the last one's reason are shown.
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Setback:
    """A run that failed on an agent for a reason that was not its own."""

    owner_id: int
    #: Whether its owner is an administrator.
    by_admin: bool
    reason: str


def is_setback(before: Container, after: Container) -> bool:
    """Whether its agent has just said that it ended by the platform's failure, with nobody waiting for its end."""
    ending = after.ending
    return _has_ended(before, after) and ending is not None and ending.platform and before.desired is Desired.RUN


def ends_the_row(before: Container, after: Container) -> bool:
    """Whether its agent has just said that it ended by itself."""
    ending = after.ending
    return _has_ended(before, after) and ending is not None and (ending.clean or ending.failed)


def why_taken_out(setbacks: Sequence[Setback]) -> str:
    """Of the setbacks in a row on an agent, the oldest first; empty where it keeps taking work."""
    if len(setbacks) < LIMIT:
        return ""
    alone = len({setback.owner_id for setback in setbacks}) == 1
    if alone and not setbacks[0].by_admin:
        return ""
    last = setbacks[-1].reason
    shown = last if len(last) <= _SHOWN else f"{last[:_SHOWN]} …"
    return f"{len(setbacks)} runs in a row failed here for reasons that were not theirs, the last: {shown}"


def _has_ended(before: Container, after: Container) -> bool:
    return before.state is not ContainerState.TERMINATED and after.state is ContainerState.TERMINATED
