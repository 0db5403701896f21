"""How often a name may be tried: each failed login makes the next one wait longer.

Rules it keeps:

- a try counts as failed from the moment that it is let in; one that was right takes that back;
- only a name *from one address* has to wait: for a name alone, or an address alone, nobody is refused. Of those that
  failed often, tries are *suspect*: they are judged one at a time (`tenax.master.access.login_judge`);
- a name that logged in from an address before is not suspect there;
- who has to wait is counted in the database as well, so that several masters count together
  (`tenax.master.access.login_judge`); all else is kept in memory and bounded: it slows a guesser down, and a restart of
  the master forgives.

Time is an argument, in seconds of any monotonic clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from tenax.backoff import Backoff
from tenax.display.plural import counted
from tenax.errors import TooOften

#: Failures that cost nothing: people mistype.
FREE = 5
#: After those.
BACKOFF = Backoff(first=1.0, ceiling=60.0)
#: A name, or an address, alone is suspect after this many times the failures that both together have free.
SUSPECT_FACTOR = 10
#: Failures are forgotten after this long without a new one.
FORGET_S = 900.0
MAX_KEPT = 10_000


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


@dataclass(frozen=True, slots=True)
class LoginSource:
    """Who is tried, and from where."""

    name: str
    address: str

    @property
    def pair(self) -> str:
        return f"{self.name}\0{self.address}"

    @property
    def alone(self) -> tuple[str, str]:
        """Either without the other."""
        return f"{self.name}\0", f"\0{self.address}"


def check_wait(failures: int, since_s: float) -> None:
    """Raises TooOften while a name with so many failures from one address, the last so long ago, has to wait."""
    if failures < FREE or since_s >= FORGET_S:
        return
    left = BACKOFF.after(failures - FREE + 1) - since_s
    if left > 0:
        wait = counted(math.ceil(left), "second")
        raise TooOften(f"too many failed logins: wait {wait} and try again", retry_after=max(1.0, left))


class Throttle:
    """Failed logins of late. Owned by one event loop."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        #: Names that have logged in, each from where it did.
        self._known: OrderedDict[str, None] = OrderedDict()

    def check(self, source: LoginSource, now: float) -> None:
        """Raises TooOften while this name has to wait at this address."""
        known = self._failures.get(source.pair)
        if known is not None:
            check_wait(known.count, now - known.last)

    def is_suspect(self, source: LoginSource, now: float) -> bool:
        """Whether its name, or its address, failed often, and it never logged in there."""
        if source.pair in self._known:
            return False
        alone = [self._failures[key] for key in source.alone if key in self._failures]
        return any(past.count >= FREE * SUSPECT_FACTOR and now - past.last < FORGET_S for past in alone)

    def arrived(self, source: LoginSource, now: float) -> None:
        """Count a try of its name and of its address."""
        for key in source.alone:
            self._count(key, now)

    def admitted(self, source: LoginSource, now: float) -> None:
        """Count a try of the name from that address, which is judged now."""
        self._count(source.pair, now)

    def succeeded(self, source: LoginSource) -> None:
        """It was right: no failures of that name from there, and one less of each alone."""
        self._failures.pop(source.pair, None)
        for key in source.alone:
            if key in self._failures:
                self._failures[key].count -= 1
        self._known[source.pair] = None
        self._known.move_to_end(source.pair)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)

    def _count(self, key: str, now: float) -> None:
        known = self._failures.pop(key, None)
        count = known.count if known is not None and now - known.last < FORGET_S else 0
        self._failures[key] = _Failures(count + 1, now)
        while len(self._failures) > MAX_KEPT:
            self._failures.popitem(last=False)
