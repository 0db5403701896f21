"""How often a name may be tried: each failed login makes the next one wait longer.

Kept per (user name, address) and per address, in memory and bounded: it slows a guesser down, and a restart of the
master forgives. Time is an argument, in seconds of any monotonic clock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from tenax.backoff import Backoff
from tenax.errors import TooOften

#: Failures that cost nothing: people mistype.
FREE = 5
#: After those.
BACKOFF = Backoff(first=1.0, ceiling=60.0)
#: An address gets this many times the failures of one name before it waits.
ADDRESS_FACTOR = 10
#: Failures are forgotten after this long without a new one.
FORGET_S = 900.0
MOST_KEPT = 10_000


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class Throttle:
    """Failed logins of late. Owned by one event loop."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def check(self, username: str, address: str, now: float) -> None:
        """Raises TooOften while this name or this address has to wait."""
        for key, free in self._keys(username, address):
            left = self._wait_left(key, free, now)
            if left > 0:
                raise TooOften(
                    f"too many failed logins: wait {left:.0f} seconds and try again", retry_after=max(1.0, left)
                )

    def failed(self, username: str, address: str, now: float) -> None:
        """Note a failed login."""
        for key, _ in self._keys(username, address):
            known = self._failures.pop(key, None)
            count = known.count if known is not None and now - known.last < FORGET_S else 0
            self._failures[key] = _Failures(count + 1, now)
        while len(self._failures) > MOST_KEPT:
            self._failures.popitem(last=False)

    def succeeded(self, username: str, address: str) -> None:
        """A login that worked clears the failures of its name from that address, not those of the address."""
        self._failures.pop(self._keys(username, address)[0][0], None)

    def _wait_left(self, key: str, free: int, now: float) -> float:
        known = self._failures.get(key)
        if known is None or known.count < free or now - known.last >= FORGET_S:
            return 0.0
        return known.last + BACKOFF.after(known.count - free + 1) - now

    @staticmethod
    def _keys(username: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
        return (f"{username.lower()}\0{address}", FREE), (address, FREE * ADDRESS_FACTOR)
