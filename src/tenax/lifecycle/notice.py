"""What follows from what a cloud says of a machine: that it is taken back, maintained, or likely to be.

Rules it keeps:

- Of several notices the one holds that asks for the most, and of those that of the least time.
- A machine that ends takes nothing new, and what runs there is asked to save and leave within the time that is left,
  less a margin in which what it has saved is told: a quarter of the time, ten seconds at most.
- Advice is what its pool's settings make of it: nothing, no new work, or a machine in its place first.
- A kind that is not known here changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

_ENDS, _ADVICE = ("interruption", "maintenance"), "rebalance"
_MARGIN_S, _MARGIN_SHARE = 10.0, 0.25
#: Longer than any cloud says anything ahead.
_MAX_S = 30 * 86400.0


class Rebalance(str, Enum):
    """What follows from the advice that a machine is more likely than others to be taken back."""

    IGNORE = "ignore"
    #: It takes nothing new, and what runs there may end.
    DRAIN = "drain"
    #: It takes nothing new; once there is room elsewhere, be it on a machine rented for it, its work goes on there.
    REPLACE_FIRST = "replace_first"


class NoticePlan(str, Enum):
    """As stored, in rising order: what is done about a notice."""

    DRAIN = "DRAIN"
    REPLACE = "REPLACE"
    LEAVE = "LEAVE"


@dataclass(frozen=True, slots=True)
class CloudNotice:
    """As its agent has it."""

    kind: str
    reason: str
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class Heeded:
    """The notice that holds, and what is done about it."""

    plan: NoticePlan
    reason: str
    #: Seconds that are left; None: nobody says.
    within_s: float | None = None

    @property
    def to_save_s(self) -> float | None:
        """Seconds in which what runs there is to have left; None: as many as its own settings give."""
        if self.within_s is None:
            return None
        return self.within_s - min(_MARGIN_S, self.within_s * _MARGIN_SHARE)


_PLAN_OF_ADVICE = {Rebalance.DRAIN: NoticePlan.DRAIN, Rebalance.REPLACE_FIRST: NoticePlan.REPLACE}
_ORDER = {plan: place for place, plan in enumerate(NoticePlan)}


def heeded(notices: Sequence[CloudNotice], rebalance: Rebalance) -> Heeded | None:
    """The notice that holds; None: nothing follows from any."""
    each_plan = [(_plan(notice.kind, rebalance), notice) for notice in notices]
    acting = [
        Heeded(plan, notice.reason, None if notice.within_s is None else min(max(0.0, notice.within_s), _MAX_S))
        for plan, notice in each_plan
        if plan is not None
    ]
    return min(acting, key=_urgency, default=None)


def log_text(notice: Heeded, saved_in_s: float | None) -> str:
    """What the log of a trial is told that is asked to leave; ``saved_in_s``: what storing its last checkpoint took."""
    within_s = notice.to_save_s
    if within_s is None:
        return f"{notice.reason}: it is asked to save and leave"
    text = f"{notice.reason}: it is asked to save and leave within {within_s:.0f} s"
    if saved_in_s is None or saved_in_s <= within_s:
        return text
    return (
        f"{text}\nnotice_too_short: storing its last checkpoint took {saved_in_s:.0f} s: if it does not come to be "
        "this time, the trial goes on from the checkpoint before; save more often, or less"
    )


def _plan(kind: str, rebalance: Rebalance) -> NoticePlan | None:
    if kind in _ENDS:
        return NoticePlan.LEAVE
    return _PLAN_OF_ADVICE.get(rebalance) if kind == _ADVICE else None


def _urgency(each: Heeded) -> tuple[int, float, str]:
    return -_ORDER[each.plan], _MAX_S if each.within_s is None else each.within_s, each.reason
