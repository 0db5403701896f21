"""Looks that many want at once are taken once.

Rules it keeps:

- whoever asks while a look is under way shares the next one with all who ask meanwhile: every look begins after each of
  those who share it has asked, so nobody sees less than was there before;
- one look of a kind at a time, however many ask; what it costs does not grow with them;
- a caller who goes away takes nothing from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

T = TypeVar("T")


@dataclass(slots=True)
class _Kind:
    """Looks of one kind."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: What has not begun yet.
    next: asyncio.Task[object] | None = None


class Looks:
    """Of one process. Owned by its event loop."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}

    async def share(self, key: Hashable, look: Callable[[], Awaitable[T]]) -> T:
        """What ``look`` gives, or another one of the same key that begins after this call. Raises what it raises.

        ``key`` holds everything that the result depends on: whoever gives an equal one may get this result.
        """
        kind = self._kinds.setdefault(key, _Kind())
        if kind.next is None:
            kind.next = asyncio.create_task(self._take(key, kind, look))
            kind.next.add_done_callback(_told)
        return cast(T, await asyncio.shield(kind.next))

    async def _take(self, key: Hashable, kind: _Kind, look: Callable[[], Awaitable[T]]) -> T:
        async with kind.lock:
            kind.next = None
            try:
                return await look()
            finally:
                if kind.next is None:
                    self._kinds.pop(key, None)


def _told(task: asyncio.Task[object]) -> None:
    """An error that nobody waits for any more is not one of this process."""
    if not task.cancelled():
        task.exception()
