"""Who waits for whom, where work is heavy and somebody else says how heavy it is.

Rules it keeps:

- one owner has at most ``each`` turns at once, so that those who ask for much wait for themselves;
- all together have ``most``, and who waits for one of those is one of each owner: an owner's second piece of work comes
  after the first of everyone who was there before;
- work without an owner is the master's own, and is one owner's.

`owner` is whoever the request that is being answered came from; it is set once, where the caller becomes known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar

#: Of the request that is being answered; None: of none.
owner: ContextVar[Hashable] = ContextVar("owner", default=None)


class FairTurns:
    """Turns of an event loop."""

    def __init__(self, most: int, each: int = 1) -> None:
        self._all = asyncio.Semaphore(most)
        self._each = each
        self._own: dict[Hashable, asyncio.Semaphore] = {}
        #: How many hold a turn or wait for one.
        self._users: dict[Hashable, int] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a turn of the present `owner`, once there is one."""
        whose = owner.get()
        own = self._own.setdefault(whose, asyncio.Semaphore(self._each))
        self._users[whose] = self._users.get(whose, 0) + 1
        try:
            async with own, self._all:
                yield
        finally:
            self._users[whose] -= 1
            if not self._users[whose]:
                del self._users[whose], self._own[whose]
