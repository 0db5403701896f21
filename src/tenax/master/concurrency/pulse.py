"""The pulse of a process: one whose event loop is held, or whose work cannot be ended, ends itself.

Whoever started it starts it again (`tenax up`, a service manager), and all that it must not forget is in the database:
a process that hangs for good is worse than one that ends. Only time in which this process itself ran is counted, so
that one that was stopped and goes on is not ended for it.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType

import structlog

log = structlog.get_logger("tenax.pulse")

#: How often is looked, and how often in vain before the end. Together less than an agent is waited for (25 s): its
#: connection may be to this process.
_LOOK_S = 3.0
#: At least so often a timer of the event loop shows how late it is.
_BEAT_S = 0.5
#: Of beats that were missed; a process may have been stopped for days.
_MAX_TOLD = 1000
_MAX_MISSED = 4


def end_process(reason: str) -> None:
    """At once, with what all threads were at in the log."""
    log.critical("this master ends itself, to be started again", reason=reason)
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    os._exit(1)


class Pulse:
    """``with Pulse():`` within the event loop that is watched."""

    def __init__(
        self,
        end: Callable[[str], None] = end_process,
        look_s: float = _LOOK_S,
        late: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        """``late`` is told by how many seconds each beat was."""
        self._end = end
        self._late = late
        self._beat_s = min(_BEAT_S, look_s)
        self._look_s = look_s
        self._beats = 0
        #: When the next is, on the loop's clock.
        self._due: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._beat(asyncio.get_running_loop())
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._over.set()
        self._timer.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beats += 1
        if self._due is not None:
            self._tell(max(0.0, loop.time() - self._due))
        self._due = loop.time() + self._beat_s
        self._timer = loop.call_at(self._due, self._beat, loop)

    def _tell(self, late_s: float) -> None:
        """Of this beat, and of those that should have been meanwhile."""
        self._late(late_s)
        for _ in range(min(_MAX_TOLD, int(late_s / self._beat_s))):
            late_s -= self._beat_s
            self._late(late_s)

    def _watch(self) -> None:
        seen, missed = 0, 0
        while not self._over.wait(self._look_s):
            missed = missed + 1 if self._beats == seen else 0
            seen = self._beats
            if missed >= _MAX_MISSED:
                self._end(f"nothing else was done for {_MAX_MISSED * self._look_s:g} seconds: the event loop is held")
                return
