"""How long nothing of an offer is rented after something went wrong with it, by what it was.

Rules:
- The next zone, or the next offer, has its turn meanwhile.
- What may pass rests: a minute, twice as long after each in a row, thirty at most; over a quota thirty at once.
- What cannot pass by itself is off until the settings of the offer change: an order that is wrong, or not allowed, and
  three machines in a row that never joined, or lacked slots.
- Machines that were planned before a rest began say nothing new, but for those that never join: each is counted.
"""

from __future__ import annotations

from enum import Enum

from tenax.backoff import Backoff

REST = Backoff(first=60.0, ceiling=1800.0)
#: Machines in a row that never join, after which an offer is off.
MAX_NEVER_JOINED = 3


class RestCause(str, Enum):
    """What went wrong; as stored."""

    NO_CAPACITY = "NO_CAPACITY"
    OVER_QUOTA = "OVER_QUOTA"
    NOT_ALLOWED = "NOT_ALLOWED"
    BAD_ORDER = "BAD_ORDER"
    #: A refusal that nobody knows.
    REFUSED = "REFUSED"
    NEVER_JOINED = "NEVER_JOINED"
    #: It joined with fewer slots than were rented.
    LACKS = "LACKS"


#: Those that each machine is counted for.
NEVER = frozenset({RestCause.NEVER_JOINED, RestCause.LACKS})
#: Those of a whole offer; others are of one zone.
OF_ALL_ZONES = frozenset({RestCause.OVER_QUOTA, RestCause.NOT_ALLOWED, *NEVER})


def rest_s(cause: RestCause, failures: int) -> float | None:
    """For how many seconds after so many failures in a row; None: until the settings change."""
    if cause in (RestCause.NOT_ALLOWED, RestCause.BAD_ORDER) or (cause in NEVER and failures >= MAX_NEVER_JOINED):
        return None
    return REST.ceiling if cause is RestCause.OVER_QUOTA else REST.after(failures)
