"""Partitions by month: an old one of which nothing is left is dropped, and made again if it is needed after all.

Rule: a month is not dropped before it is the third before the present one, so that whoever writes into a newer one may
remember that its partition is there.
"""

from __future__ import annotations

from datetime import datetime, timezone

#: So many months before the present one stay, empty or not.
_STAY = 2


def oldest_kept(now: float) -> int:
    """The oldest month that is never dropped at this time, as 202611; seconds since 1970."""
    at = datetime.fromtimestamp(now, timezone.utc)
    number = at.year * 12 + at.month - 1 - _STAY
    return number // 12 * 100 + number % 12 + 1
