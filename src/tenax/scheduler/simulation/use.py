"""What people use while virtual time goes on: halved every half-life, and by calendar month (UTC)."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timezone

from tenax.scheduler.quotas import Association, Use

#: The end of the last year that has months here.
_LAST = datetime(9999, 12, 1, tzinfo=timezone.utc).timestamp()


class UseOverTime:
    """Slot seconds of associations. Mutable; one replay owns one, and its time only goes on."""

    def __init__(self, half_life_s: float) -> None:
        self._rate = math.log(2) / half_life_s
        self._held: Counter[Association] = Counter()
        self._recent: dict[Association, float] = {}
        self._this_month: dict[Association, float] = {}
        self._now: float | None = None

    def begin(self, association: Association, slots: int, at: float) -> None:
        """It holds so many slots more."""
        self.advance(at)
        self._held[association] += slots

    def end(self, association: Association, slots: int, at: float) -> None:
        """It holds so many less."""
        self.advance(at)
        self._held[association] -= slots

    def advance(self, at: float) -> None:
        """Count what was held until then."""
        before, self._now = self._now, at
        if before is None or at <= before:
            return
        kept = math.exp(-self._rate * (at - before))
        month = _month_begins(at)
        if before < month:
            self._this_month.clear()
        for association in {*self._recent, *self._held}:
            slots = self._held[association]
            grown = slots * (1 - kept) / self._rate
            self._recent[association] = self._recent.get(association, 0.0) * kept + grown
            since = max(before, month)
            self._this_month[association] = self._this_month.get(association, 0.0) + slots * (at - since)

    def used(self) -> dict[Association, Use]:
        """As of when it was last advanced."""
        return {each: Use(self._recent[each], self._this_month.get(each, 0.0)) for each in self._recent}


def next_month(at: float) -> float:
    """When the next month begins."""
    return _month_begins(_month_begins(at) + 32 * 86400.0)


def _month_begins(at: float) -> float:
    moment = datetime.fromtimestamp(min(at, _LAST), timezone.utc)
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
