"""Back-off: how long to wait before something that failed is tried again. Standard library only, Python 3.9: tasks
import it too.

Rules:
- :class:`Backoff` is the schedule, a value: the wait after so many failures in a row.
- :class:`Retry` counts the failures of one thing under a schedule; a success resets it.
- Randomness comes in as a function that gives numbers in [0, 1), so that no task imports ``random`` for it. With it a
  wait is cut to between half and all of its length: a thousand who lost the same master do not come back in step.
- Nothing here waits or reads a clock.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

#: Refusals of HTTP below 500 that pass by themselves: what got one is tried again.
PASSING = (408, 425, 429)
#: Waits no longer grow beyond this number of failures, so that no power overflows; every ceiling is reached before.
_GROWING = 64


class Backoff:
    """``first`` seconds after the first failure, ``factor`` times as long after each further one, up to ``ceiling``."""

    __slots__ = ("ceiling", "factor", "first")

    def __init__(self, first: float, ceiling: float, factor: float = 2.0) -> None:
        self.first = first
        self.ceiling = ceiling
        self.factor = factor

    def after(self, failures: int, jitter: Optional[Callable[[], float]] = None) -> float:
        """Seconds to wait after ``failures`` in a row; after none of them, none."""
        if failures < 1:
            return 0.0
        wait = min(self.ceiling, self.first * self.factor ** min(failures - 1, _GROWING))
        return wait if jitter is None else wait * (0.5 + 0.5 * jitter())


class Retry:
    """The failures in a row of one thing. Serves one thread."""

    __slots__ = ("_backoff", "_jitter", "failures")

    def __init__(self, backoff: Backoff, jitter: Optional[Callable[[], float]] = None) -> None:
        self._backoff = backoff
        self._jitter = jitter
        self.failures = 0

    def reset(self) -> None:
        """It worked."""
        self.failures = 0

    def pause(self, at_least: float = 0.0) -> float:
        """It failed once more: seconds to wait now."""
        self.failures += 1
        return max(at_least, self._backoff.after(self.failures, self._jitter))
