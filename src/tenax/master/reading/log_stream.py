"""Reading the output of a task: from either end, filtered, and followed until the task ends.

Rules:
- Readers that ask for the same at the same moment share one query (single flight).
- Nobody gets an answer that was queried before they asked, or a wake-up that came in between would be lost.
- A reader that goes away does not cancel the query for the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from tenax.master.concurrency.threads import Threads
from tenax.master.reading.log_search import FoundLine, LogFilters, search
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, Subscription
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import LogSpan, Place

Answer = TypeVar("Answer")


class LogReads:
    """Queries of the database, shared. For one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: By query: those that were not sent yet.
        self._gathering: dict[Hashable, asyncio.Future[object]] = {}

    async def place_of(self, task_id: str) -> Place:
        """Raises NotFound, TryAgain."""
        async with self._database.connection() as conn:
            return await logs.place_of(conn, task_id)

    async def still_speaks_s(self, source: LogSource) -> float | None:
        """As `tenax.master.store.logs.rows.still_speaks_s`. Raises TryAgain."""

        async def query() -> float | None:
            async with self._database.connection() as conn:
                return await logs.still_speaks_s(conn, source.task_id, of_trial=source.of_trial)

        return await self._shared(("ended", source), query)

    async def spans(self, place: Place, after: int, before: int, *, descending: bool, limit: int) -> list[LogSpan]:
        """As `tenax.master.store.logs.rows.spans`; the list is everyone's. Raises TryAgain."""

        async def query() -> list[LogSpan]:
            async with self._database.connection() as conn:
                return await logs.spans(conn, place, after=after, before=before, descending=descending, limit=limit)

        return await self._shared(("spans", place.task_id, after, before, descending, limit), query)

    async def _shared(self, key: Hashable, query: Callable[[], Awaitable[Answer]]) -> Answer:
        flight = self._gathering.get(key)
        if flight is None:
            flight = asyncio.ensure_future(cast("Awaitable[object]", self._run_query(key, query)))
            self._gathering[key] = flight
        return cast(Answer, await asyncio.shield(flight))

    async def _run_query(self, key: Hashable, query: Callable[[], Awaitable[Answer]]) -> Answer:
        # Whoever was woken in the same moment asks before this goes on.
        await asyncio.sleep(0)
        del self._gathering[key]
        return await query()


T = TypeVar("T")

#: Chunks that are looked through at a time, at first (a page needs few) and at most.
_FIRST, _MAX_AT_ONCE = 2, 8
_BEYOND = 2**62


@dataclass(frozen=True, slots=True)
class LogSource:
    """Whose lines are read: those of a task, or of all tasks of its trial."""

    task_id: str
    of_trial: bool = False

    def task_in(self, place: Place) -> str | None:
        """The task that lines of its log must name (`LogFilters.task`); None: any."""
        return None if self.of_trial else place.name_of(self.task_id)


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines to read, and how."""

    filters: LogFilters
    #: None: all of them.
    limit: int | None = None
    follow: bool = False
    descending: bool = False


async def read(
    reads: LogReads, listener: Listener, threads: Threads, source: LogSource, query: LogQuery, stop: asyncio.Event
) -> AsyncIterator[list[FoundLine]]:
    """Its lines, some at a time; with ``follow`` until it ends or ``stop`` is set. Raises NotFound."""
    place = await reads.place_of(source.task_id)
    filters = replace(query.filters, task=source.task_in(place))
    reader = _Reader(reads, threads, place, replace(query, filters=filters))
    if not query.follow or query.descending:
        async for lines in reader.rest():
            yield lines
        return
    with listener.subscribe("logs", place.task_id) as ear:
        async for lines in _follow(reads, source, reader, ear, stop):
            yield lines


async def until_end(
    reads: LogReads,
    listener: Listener,
    source: LogSource,
    stop: asyncio.Event,
    read_from: Callable[[Place], Awaitable[T]],
    *,
    follow: bool,
) -> AsyncIterator[T]:
    """What ``read_from`` gives; with ``follow`` again after each output, until it ends or ``stop`` is set.

    Raises NotFound.
    """
    place = await reads.place_of(source.task_id)
    if not follow:
        yield await read_from(place)
        return
    with listener.subscribe("logs", place.task_id) as ear:
        while not stop.is_set():
            # Checked before reading: what was written before the end is read after it.
            left_s = await reads.still_speaks_s(source)
            yield await read_from(place)
            if left_s is not None and left_s <= 0:
                return
            await _either(ear, stop, left_s)


async def _follow(
    reads: LogReads, source: LogSource, reader: _Reader, ear: Subscription, stop: asyncio.Event
) -> AsyncIterator[list[FoundLine]]:
    while not stop.is_set():
        # As above: checked before reading.
        left_s = await reads.still_speaks_s(source)
        async for lines in reader.rest():
            yield lines
        if reader.is_done or (left_s is not None and left_s <= 0):
            return
        await _either(ear, stop, left_s)


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

    def __init__(self, reads: LogReads, threads: Threads, place: Place, query: LogQuery) -> None:
        self._place = place
        self._reads = reads
        self._threads = threads
        self._query = query
        self._after = -1
        self._before = _BEYOND
        self._left = query.limit
        self._at_once = _FIRST

    @property
    def is_done(self) -> bool:
        """All lines of the query were given."""
        return self._left == 0

    async def rest(self) -> AsyncIterator[list[FoundLine]]:
        """The matching lines from here to what is the end now."""
        while not self.is_done:
            spans = await self._reads.spans(
                self._place, self._after, self._before, descending=self._query.descending, limit=self._at_once
            )
            if not spans:
                return
            self._at_once = min(2 * self._at_once, _MAX_AT_ONCE)
            lines = await self._threads.run(self._search, spans)
            last = spans[-1]
            if self._query.descending:
                self._before = last.first_line
            else:
                self._after = last.first_line + last.chunk.lines - 1
            if self._left is not None:
                self._left -= len(lines)
            if lines:
                yield lines

    def _search(self, spans: list[LogSpan]) -> list[FoundLine]:
        lines: list[FoundLine] = []
        for span in spans:
            most = None if self._left is None else self._left - len(lines)
            if most != 0:
                down = self._query.descending
                lines += search(span, self._query.filters, self._after, self._before, most, descending=down)
        return lines
