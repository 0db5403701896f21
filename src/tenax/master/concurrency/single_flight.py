"""Single flight: what many ask for at once is fetched once, and all of them get the result.

Rules it keeps:

- whoever asks while a call is under way shares the next one with all who ask meanwhile: every call begins after each of
  those who share it has asked, so nobody sees less than was there before;
- one call per key at a time, however many ask; what it costs does not grow with them;
- a caller who goes away takes nothing from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TypeVar, cast

from structlog.contextvars import clear_contextvars

T = TypeVar("T")


@dataclass(slots=True)
class _Flight:
    """The calls of one key."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: What has not begun yet.
    next: asyncio.Task[object] | None = None


class SingleFlight:
    """One per process. Owned by its event loop."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}

    async def share(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        """The result of ``fetch``, or of another one with the same key that begins after this call. Raises as it does.

        ``key`` holds everything that the result depends on: whoever gives an equal one may get this result.
        """
        flight = self._flights.setdefault(key, _Flight())
        if flight.next is None:
            # What it says in the log is nobody's own.
            context = copy_context()
            context.run(clear_contextvars)
            flight.next = asyncio.create_task(self._run(key, flight, fetch), context=context)
            flight.next.add_done_callback(_retrieve_error)
        return cast(T, await asyncio.shield(flight.next))

    async def _run(self, key: Hashable, flight: _Flight, fetch: Callable[[], Awaitable[T]]) -> T:
        async with flight.lock:
            flight.next = None
            try:
                return await fetch()
            finally:
                if flight.next is None:
                    self._flights.pop(key, None)


def _retrieve_error(task: asyncio.Task[object]) -> None:
    """An error that nobody waits for any more is not reported as one of this process."""
    if not task.cancelled():
        task.exception()
