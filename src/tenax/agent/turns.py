"""Bounds of what goes on at once, for each owner apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """At most ``each`` at once of every owner (a uid; None: the agent's own user), so that nobody waits for others'."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._semaphores: dict[int | None, asyncio.Semaphore] = {}
        #: How many hold a turn or wait for one.
        self._users: dict[int | None, int] = {}

    @asynccontextmanager
    async def of(self, owner: int | None) -> AsyncIterator[None]:
        """Hold a turn, once there is one."""
        semaphore = self._semaphores.setdefault(owner, asyncio.Semaphore(self._each))
        self._users[owner] = self._users.get(owner, 0) + 1
        try:
            async with semaphore:
                yield
        finally:
            self._users[owner] -= 1
            if not self._users[owner]:
                del self._users[owner], self._semaphores[owner]
