"""What becomes of a message to a webhook after an attempt to send it.

Rules it keeps:

- any answer of 200 to 299 means that the receiver has it;
- an answer that a repetition would get again (400 to 499, a redirection, an address that is refused) ends it; 408, 425
  and 429 are no such answers;
- anything else is tried again, later each time, until it is too old;
- what comes after it waits for it: messages of one webhook arrive in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
#: Refusals that pass.
_PASSING = (408, 425, 429)


class DeliveryState(str, Enum):
    """As stored."""

    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended."""

    #: Of the answer; None: there was none.
    status: int | None
    words: str
    #: The same attempt would end the same way.
    final: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the message is now, and in how many seconds it is tried again if it waits."""

    state: DeliveryState
    wait_s: float = 0.0
    words: str = ""


def decide(outcome: Outcome, attempts: int, age_s: float, give_up_after_s: float) -> Verdict:
    """After the attempt number ``attempts`` (from 1) of a message that is ``age_s`` old."""
    status = outcome.status
    if status is not None and 200 <= status < 300:
        return Verdict(DeliveryState.DELIVERED, words=outcome.words)
    if outcome.final or (status is not None and 300 <= status < 500 and status not in _PASSING):
        return Verdict(DeliveryState.FAILED, words=outcome.words)
    if age_s >= give_up_after_s:
        return Verdict(DeliveryState.FAILED, words=f"given up after {attempts} attempts: {outcome.words}")
    wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempts - 1, 30))
    return Verdict(DeliveryState.WAITING, wait, outcome.words)
