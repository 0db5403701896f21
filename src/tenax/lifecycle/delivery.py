"""What becomes of a message to a webhook after an attempt to send it.

Rules it keeps:

- any answer of 200 to 299 means that the receiver has it;
- an answer that a repetition would get again (400 to 499, a redirection, an address that is refused) ends it; 408, 425
  and 429 are no such answers;
- anything else is tried again, later each time, until it is too old;
- an attempt of which nobody knows how it ended, for its master did, counts as one that failed;
- what comes after it waits for it: messages of one webhook arrive in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tenax.backoff import PASSING, Backoff

BACKOFF = Backoff(first=1.0, ceiling=60.0)


class DeliveryState(str, Enum):
    """As stored."""

    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """How an attempt ended."""

    #: Of the answer; None: there was none.
    status: int | None
    reason: str
    #: The same attempt would end the same way.
    final: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryVerdict:
    """What the message is now, and in how many seconds it is tried again if it waits."""

    state: DeliveryState
    wait_s: float = 0.0
    reason: str = ""


def decide(outcome: DeliveryOutcome, attempts: int, age_s: float, give_up_after_s: float) -> DeliveryVerdict:
    """After the attempt number ``attempts`` (from 1) of a message that is ``age_s`` old."""
    status = outcome.status
    if status is not None and 200 <= status < 300:
        return DeliveryVerdict(DeliveryState.DELIVERED, reason=outcome.reason)
    if outcome.final or (status is not None and 300 <= status < 500 and status not in PASSING):
        return DeliveryVerdict(DeliveryState.FAILED, reason=outcome.reason)
    if age_s >= give_up_after_s:
        return _given_up(attempts, outcome.reason)
    return DeliveryVerdict(DeliveryState.WAITING, pause(attempts), outcome.reason)


def before(attempts: int, age_s: float, give_up_after_s: float) -> DeliveryVerdict | None:
    """Whether to give up a message before another attempt is made, after so many; None: make it.

    One that was never tried is, however old it has become while nobody could send it.
    """
    if attempts and age_s >= give_up_after_s:
        return _given_up(attempts, "the master ended in the middle of the last one")
    return None


def pause(attempts: int) -> float:
    """Seconds between the attempt number ``attempts`` (from 1) and the next."""
    return BACKOFF.after(attempts)


def _given_up(attempts: int, reason: str) -> DeliveryVerdict:
    return DeliveryVerdict(DeliveryState.FAILED, reason=f"given up after {attempts} attempts: {reason}")
