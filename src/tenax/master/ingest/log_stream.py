"""Reading output: from one end or the other, filtered, as long as the task goes on if asked to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tenax.master.ingest.log_search import Filters, Found, search
from tenax.master.ingest.threads import Threads
from tenax.master.store import logs
from tenax.master.store.database import Database
from tenax.master.store.logs import Place, Span
from tenax.master.store.wakeups import Listener, Subscription

#: Chunks that are looked through at a time, at first (a page needs few) and at most.
_FIRST, _MOST = 2, 8
#: After the end of a task its last lines may still be under way.
_LAST_LINES_S = 2.0
_BEYOND = 2**62


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader asks for."""

    filters: Filters
    #: None: all of them.
    limit: int | None = None
    follow: bool = False
    descending: bool = False


async def read(
    database: Database, listener: Listener, threads: Threads, task_id: str, wanted: Wanted, stop: asyncio.Event
) -> AsyncIterator[list[Found]]:
    """Lines of a task, some at a time; with ``follow`` until the task ends or ``stop`` is set. Raises NotFound."""
    async with database.connection() as conn:
        place = await logs.place_of(conn, task_id)
    reader = _Reader(database, threads, place, wanted)
    if not wanted.follow or wanted.descending:
        async for found in reader.rest():
            yield found
        return
    with listener.subscribe("logs", task_id) as ear:
        async for found in _follow(database, reader, ear, stop):
            yield found


async def _follow(
    database: Database, reader: _Reader, ear: Subscription, stop: asyncio.Event
) -> AsyncIterator[list[Found]]:
    while not stop.is_set():
        # Looked up before reading: what was written before the end is read after it.
        async with database.connection() as conn:
            ended_s = await logs.ended_since(conn, reader.place.task_id)
        async for found in reader.rest():
            yield found
        if reader.is_done or (ended_s is not None and ended_s > _LAST_LINES_S):
            return
        await _either(ear, stop, None if ended_s is None else _LAST_LINES_S)


async def _either(ear: Subscription, stop: asyncio.Event, seconds: float | None) -> None:
    waits = [
        asyncio.ensure_future(ear.wait() if seconds is None else ear.wait(seconds)),
        asyncio.ensure_future(stop.wait()),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


class _Reader:
    """Where a reader is."""

    def __init__(self, database: Database, threads: Threads, place: Place, wanted: Wanted) -> None:
        self.place = place
        self._database = database
        self._threads = threads
        self._wanted = wanted
        self._after = -1
        self._before = _BEYOND
        self._left = wanted.limit
        self._at_once = _FIRST

    @property
    def is_done(self) -> bool:
        """All that was asked for has been given."""
        return self._left == 0

    async def rest(self) -> AsyncIterator[list[Found]]:
        """The wanted lines from here to what is the end now."""
        while not self.is_done:
            async with self._database.connection() as conn:
                found = await logs.spans(
                    conn,
                    self.place,
                    after=self._after,
                    before=self._before,
                    descending=self._wanted.descending,
                    limit=self._at_once,
                )
            if not found:
                return
            self._at_once = min(2 * self._at_once, _MOST)
            lines = await self._threads.run(self._search, found)
            last = found[-1]
            if self._wanted.descending:
                self._before = last.first_line
            else:
                self._after = last.first_line + last.chunk.lines - 1
            if self._left is not None:
                self._left -= len(lines)
            if lines:
                yield lines

    def _search(self, spans: list[Span]) -> list[Found]:
        found: list[Found] = []
        for span in spans:
            most = None if self._left is None else self._left - len(found)
            if most != 0:
                down = self._wanted.descending
                found += search(span, self._wanted.filters, self._after, self._before, most, descending=down)
        return found
