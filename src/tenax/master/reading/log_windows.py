"""Parts of an output by the numbers of its lines: windows, which lines match, how many of each level over time.

Rules:
- Lines are numbered from 0 in the order of arrival, and keep their numbers: whoever asks goes on from a number.
- A window unpacks the chunks that hold its lines and no others. A search looks through `_MAX_CHUNKS` at a time, and
  says how far it came; a histogram unpacks `_MAX_UNPACKED`: where there are more, some stand for their neighbours.
- Chunks are unpacked in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.master.concurrency.threads import Threads
from tenax.master.reading.log_search import FoundLine, LogFilters, lines_at, matching
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import windows
from tenax.master.store.logs.packing import columns_of
from tenax.master.store.logs.rows import LogSpan, Place, place_of, spans
from tenax.master.store.logs.windows import ChunkOutline
from tenax.master.telemetry.log_lines import LEVELS, Origin, OutputLine

#: Lines of a window, ranges of hits and buckets of a histogram that may be asked for.
MAX_LINES, MAX_RANGES, MAX_BUCKETS = 500, 50_000, 500
#: Chunks that are held in memory at a time, that one search looks through, that one histogram unpacks.
_AT_ONCE, _MAX_CHUNKS, _MAX_UNPACKED = 8, 256, 1024
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """Which lines: at most one of the places, none of them for the newest lines."""

    limit: int
    #: From this line on.
    offset: int | None = None
    #: The last ones before this line.
    before: int | None = None
    #: With this line, or the first of this time (microseconds since 1970), in the middle.
    around_line: int | None = None
    around_us: int | None = None
    #: These lines.
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        places = [self.offset, self.before, self.around_line, self.around_us, self.numbers or None]
        if sum(place is not None for place in places) > 1:
            raise InvalidInput(
                "offset, before, aroundLine, aroundTime and numbers exclude one another: give one of them"
            )
        if len(self.numbers) > MAX_LINES:
            raise InvalidInput(f"at most {MAX_LINES} lines are asked for at once, and these are {len(self.numbers)}")


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Lines, and where they stand."""

    lines: list[FoundLine]
    #: Of the task.
    total: int
    #: What was written of lines whose end has not come; only where the window reaches to the end.
    unfinished: list[tuple[OutputLine, Origin]]


async def window(database: Database, threads: Threads, task_id: str, query: WindowQuery) -> LogWindow:
    """A part of a task's output. Raises NotFound."""
    async with database.snapshot() as conn:
        place, total = await _place(conn, task_id)
        if query.numbers:
            return LogWindow(await _chosen(conn, threads, place, query.numbers), total, [])
        first = await _first(conn, place, query, total)
        last = total if query.before is None else min(total, query.before)
        end = min(last, first + query.limit)
        loaded = await spans(conn, place, after=first - 1, before=end, limit=MAX_LINES) if first < end else []
        unfinished = await windows.unfinished(conn, task_id) if end >= total else []
    lines = await threads.run(_between, loaded, first, end)
    return LogWindow(lines, total, unfinished)


async def _place(conn: Connection, task_id: str) -> tuple[Place, int]:
    place = await place_of(conn, task_id)
    return place, await windows.total(conn, place)


async def _first(conn: Connection, place: Place, query: WindowQuery, total: int) -> int:
    """The number of the first line of a window."""
    if query.offset is not None:
        return query.offset
    if query.before is not None:
        return max(0, min(total, query.before) - query.limit)
    middle = query.around_line
    if query.around_us is not None:
        middle = await windows.number_at(conn, place, query.around_us)
    # At either end the window is moved, and not cut.
    last = max(0, total - query.limit)
    return last if middle is None else min(last, max(0, middle - query.limit // 2))


async def _chosen(conn: Connection, threads: Threads, place: Place, numbers: Sequence[int]) -> list[FoundLine]:
    ordered = np.unique(np.array(numbers, np.int64))
    firsts = await windows.spans_holding(conn, place, ordered.tolist())
    lines: list[FoundLine] = []
    for start in range(0, len(firsts), _AT_ONCE):
        loaded = await windows.spans_at(conn, place, firsts[start : start + _AT_ONCE])
        lines += await threads.run(_among, loaded, ordered)
    return lines


def _between(loaded: Sequence[LogSpan], first: int, end: int) -> list[FoundLine]:
    lines: list[FoundLine] = []
    for span in loaded:
        start = max(0, first - span.first_line)
        lines += lines_at(span, np.arange(start, min(span.chunk.lines, end - span.first_line)))
    return lines


def _among(loaded: Sequence[LogSpan], numbers: Numbers) -> list[FoundLine]:
    lines: list[FoundLine] = []
    for span in loaded:
        places = numbers - span.first_line
        lines += lines_at(span, places[(places >= 0) & (places < span.chunk.lines)])
    return lines


@dataclass(slots=True)
class Hits:
    """Which lines match: ranges of neighbours, both ends included, in order."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    #: The number of the line where the search goes on; ``total`` where it is through.
    next: int = 0
    #: Lines of the task.
    total: int = 0

    def add(self, numbers: Numbers, limit: int) -> None:
        """More of them, in order; at ``limit`` ranges the search stops, and goes on after the last of these."""
        if not numbers.size:
            return
        begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
        starts, ends = numbers[begins], numbers[np.append(begins[1:], numbers.size) - 1]
        if self.last and starts[0] == self.last[-1] + 1:
            self.last[-1] = int(ends[0])
            starts, ends = starts[1:], ends[1:]
        room = limit - len(self.first)
        self.first += starts[:room].tolist()
        self.last += ends[:room].tolist()


async def hits(
    database: Database, threads: Threads, task_id: str, filters: LogFilters, offset: int, limit: int
) -> Hits:
    """The lines from ``offset`` on that match, in ``limit`` ranges at most. Raises NotFound."""
    async with database.connection() as conn:
        place, total = await _place(conn, task_id)
    result = Hits(next=offset, total=total)
    # What tells of an error may be of any level.
    levels = 0 if filters.errors else sum(1 << level for level in filters.levels)
    for _ in range(_MAX_CHUNKS // _AT_ONCE):
        if result.next >= total:
            break
        after = result.next - 1
        async with database.connection() as conn:
            loaded = await windows.spans_with(conn, place, after, total, _AT_ONCE, levels=levels, text=filters.of_text)
        for numbers in await threads.run(_numbers, loaded, filters, after, total):
            result.add(numbers, limit)
            if len(result.first) >= limit:
                result.next = result.last[-1] + 1
                return result
        last = loaded[-1] if len(loaded) == _AT_ONCE else None
        result.next = total if last is None else min(total, last.first_line + last.chunk.lines)
    return result


def _numbers(loaded: Sequence[LogSpan], filters: LogFilters, after: int, before: int) -> list[Numbers]:
    """Of each chunk."""
    return [matching(span, filters, after, before) + span.first_line for span in loaded]


@dataclass(frozen=True, slots=True)
class LogHistogram:
    """Lines by time and level. All lists but ``counts`` have one length: that of the buckets."""

    #: When each begins and how long each is, in microseconds.
    begins_us: list[int]
    width_us: int
    #: The least number of a line in each; None: there is none.
    first_line: list[int | None]
    #: By the number of a level, then by bucket.
    counts: list[list[int]]
    #: False: chunks stood for their neighbours.
    exact: bool


async def histogram(database: Database, threads: Threads, task_id: str, buckets: int) -> LogHistogram:
    """How many lines of each level there are over time. Raises NotFound."""
    async with database.snapshot() as conn:
        place, _ = await _place(conn, task_id)
        rows = await windows.outline(conn, place)
        if not rows:
            return LogHistogram([], 0, [], [[] for _ in LEVELS], True)
        counting = _Counting(rows, buckets)
        chosen = _evenly(rows, _MAX_UNPACKED)
        for start in range(0, len(chosen), 8 * _AT_ONCE):
            part = chosen[start : start + 8 * _AT_ONCE]
            heads = await windows.spans_at(conn, place, [row.first_line for row, _ in part], heads=True)
            await threads.run(counting.add, heads, [weight for _, weight in part])
    return counting.result(exact=len(chosen) == len(rows))


def _evenly(rows: Sequence[ChunkOutline], count: int) -> list[tuple[ChunkOutline, float]]:
    """At most so many of them, each with how many times its lines count."""
    if len(rows) <= count:
        return [(row, 1.0) for row in rows]
    groups = [rows[len(rows) * n // count : len(rows) * (n + 1) // count] for n in range(count)]
    return [(group[0], sum(row.lines for row in group) / group[0].lines) for group in groups]


class _Counting:
    """Lines as they are counted."""

    def __init__(self, rows: Sequence[ChunkOutline], buckets: int) -> None:
        self._start = min(row.first_at_us for row in rows)
        self._width = (max(row.last_at_us for row in rows) - self._start) // buckets + 1
        self._counts = np.zeros((len(LEVELS), buckets))
        self._first = np.full(buckets, -1, np.int64)

    def add(self, heads: Sequence[LogSpan], weights: Sequence[float]) -> None:
        for span, weight in zip(heads, weights):
            columns = columns_of(span.chunk)
            places = (columns.at_us - self._start) // self._width
            size = self._counts.size
            flat = columns.level.astype(np.int64) * len(self._first) + places
            self._counts += weight * np.bincount(flat, minlength=size).reshape(self._counts.shape)
            buckets, first = np.unique(places, return_index=True)
            fresh = self._first[buckets] < 0
            self._first[buckets[fresh]] = span.first_line + first[fresh]

    def result(self, *, exact: bool) -> LogHistogram:
        return LogHistogram(
            [self._start + self._width * n for n in range(len(self._first))],
            self._width,
            [None if number < 0 else number for number in self._first.tolist()],
            np.rint(self._counts).astype(np.int64).tolist(),
            exact,
        )
