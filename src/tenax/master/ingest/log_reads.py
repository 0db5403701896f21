"""Reading output for many at once: those who ask for the same at the same moment get one answer.

Rules: nobody gets an answer that was looked up before they asked, or a wake-up that came in between would be lost; one
who goes away takes the answer from nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar, cast

from tenax.master.store import logs
from tenax.master.store.database import Database
from tenax.master.store.logs import Place, Span

T = TypeVar("T")


class LogReads:
    """Looks into the database. For one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: By what is asked; those that have not looked yet.
        self._gathering: dict[Hashable, asyncio.Future[object]] = {}

    async def place_of(self, task_id: str) -> Place:
        """Raises NotFound, TryAgain."""
        async with self._database.connection() as conn:
            return await logs.place_of(conn, task_id)

    async def still_speaks_s(self, task_id: str) -> float | None:
        """As `tenax.master.store.logs.still_speaks_s`. Raises TryAgain."""

        async def look() -> float | None:
            async with self._database.connection() as conn:
                return await logs.still_speaks_s(conn, task_id)

        return await self._shared(("ended", task_id), look)

    async def spans(self, place: Place, after: int, before: int, *, descending: bool, limit: int) -> list[Span]:
        """As `tenax.master.store.logs.spans`; the list is everyone's. Raises TryAgain."""

        async def look() -> list[Span]:
            async with self._database.connection() as conn:
                return await logs.spans(conn, place, after=after, before=before, descending=descending, limit=limit)

        return await self._shared(("spans", place.task_id, after, before, descending, limit), look)

    async def _shared(self, key: Hashable, look: Callable[[], Awaitable[T]]) -> T:
        flight = self._gathering.get(key)
        if flight is None:
            flight = asyncio.ensure_future(cast("Awaitable[object]", self._look(key, look)))
            self._gathering[key] = flight
        return cast(T, await asyncio.shield(flight))

    async def _look(self, key: Hashable, look: Callable[[], Awaitable[T]]) -> T:
        # Whoever was woken in the same moment asks before this goes on.
        await asyncio.sleep(0)
        del self._gathering[key]
        return await look()
