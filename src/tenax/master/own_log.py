"""What the master last said about itself, kept in memory for those who ask: the newest lines of this process.

Rules: a line has a number that never changes, so that a reader who was away goes on where it was; old lines go, and a
reader who asks for them begins with the oldest that is left. Filled from any thread, read in the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from dataclasses import dataclass

#: Lines that are kept, and characters of one.
LINES = 5000
LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Entry:
    """One line."""

    #: From 0, since the process started.
    number: int
    #: Seconds since 1970.
    at: float
    #: As in logging: DEBUG, INFO, WARNING, ERROR, CRITICAL.
    level: str
    message: str


class OwnLog(logging.Handler):
    """Keeps what it is given. Thread-safe; `wait` is for event loops."""

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self._kept: deque[Entry] = deque(maxlen=lines)
        self._next = 0
        self._guard = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, as the formatter has it."""
        try:
            message = self.format(record)[:LONGEST]
        except Exception:
            self.handleError(record)
            return
        with self._guard:
            self._kept.append(Entry(self._next, record.created, record.levelname, message))
            self._next += 1
            for loop, event in self._waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)

    @property
    def following(self) -> int:
        """The number that the next line will have."""
        return self._next

    def since(self, number: int, limit: int | None = None) -> list[Entry]:
        """The lines from ``number`` on, as far as they are kept."""
        with self._guard:
            oldest = self._next - len(self._kept)
            start = max(0, number - oldest)
            end = len(self._kept) if limit is None else min(len(self._kept), start + limit)
            return [self._kept[place] for place in range(start, end)]

    async def wait(self, number: int, seconds: float) -> None:
        """Until there is a line of that number, ``seconds`` at most."""
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        with self._guard:
            if self._next > number:
                return
            self._waiting.add(waiter)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        finally:
            with self._guard:
                self._waiting.discard(waiter)


#: Of this process.
OWN_LOG = OwnLog()
