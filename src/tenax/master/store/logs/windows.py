"""Reading output by the numbers of its lines: how many there are, and the chunks that hold some of them.

Rules:
- What is read hangs on how much is asked for, and never on how long the output is; an outline alone looks at the row of
  every chunk, without what the chunk holds.
- Chunks may be joined between two statements: lines keep their numbers, so numbers are what is gone on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.master.store.logs.packing import columns_of
from tenax.master.store.logs.rows import EPOCH, LogSpan, Place, span_of
from tenax.master.telemetry.log_lines import Origin, OutputLine, lines_of

Q = load("logs")

#: Lines without an end that are read of one task.
_MAX_UNFINISHED = 32


@dataclass(frozen=True, slots=True)
class ChunkOutline:
    """What the row of a chunk says without its lines."""

    first_line: int
    lines: int
    #: Microseconds since 1970.
    first_at_us: int
    last_at_us: int


async def total(conn: Connection, place: Place) -> int:
    """How many lines a task has; the number of the next one."""
    lines: int | None = await conn.fetchval(Q.total, place.task_id)
    return lines or 0


async def spans_holding(conn: Connection, place: Place, numbers: Sequence[int]) -> list[int]:
    """The first lines of the chunks that hold these lines, in order."""
    rows = await conn.fetch(Q.firsts_of, place.month, place.task_id, list(numbers))
    return sorted(row["first_line"] for row in rows if row["first_line"] is not None)


async def spans_at(conn: Connection, place: Place, firsts: Sequence[int], *, heads: bool = False) -> list[LogSpan]:
    """The chunks that begin with these lines, in order; ``heads``: without what the lines say."""
    rows = await conn.fetch(Q.heads_at if heads else Q.spans_at, place.month, place.task_id, list(firsts))
    return [span_of(row) for row in rows]


async def spans_with(
    conn: Connection, place: Place, after: int, before: int, limit: int, *, levels: int = 0, text: bool = True
) -> list[LogSpan]:
    """Chunks with lines after one number and before another, in order.

    ``levels``: a bit for each level that is looked for, 0 for any; ``text``: with what the lines say.
    """
    rows = await conn.fetch(Q.spans_with, place.month, place.task_id, after, before, limit, levels, text)
    return [span_of(row) for row in rows]


async def number_at(conn: Connection, place: Place, at_us: int) -> int:
    """The number of the first line of that time or later, as far as lines came in the order of their times."""
    row = await conn.fetchrow(Q.span_at_time, place.month, place.task_id, EPOCH + timedelta(microseconds=at_us))
    if row is None:
        return 0
    span = span_of(row)
    later = np.flatnonzero(columns_of(span.chunk).at_us >= at_us)
    return span.first_line + (int(later[0]) if later.size else span.chunk.lines)


async def outline(conn: Connection, place: Place) -> list[ChunkOutline]:
    """All chunks of a task, in order."""
    rows = await conn.fetch(Q.outline, place.month, place.task_id)
    step = timedelta(microseconds=1)
    return [
        ChunkOutline(
            row["first_line"], row["lines"], (row["first_at"] - EPOCH) // step, (row["last_at"] - EPOCH) // step
        )
        for row in rows
    ]


async def unfinished(conn: Connection, task_id: str) -> list[tuple[OutputLine, Origin]]:
    """What containers that run have written of lines whose end has not come: a bar of progress, a question."""
    rows = await conn.fetch(Q.unfinished, task_id, _MAX_UNFINISHED)
    begun = []
    for row in rows:
        texts, _ = lines_of(b"", row["carry"], final=True)
        at_us = (row["now"] - EPOCH) // timedelta(microseconds=1)
        origin = Origin(row["allocation_id"], row["container_id"], row["agent_id"], stdtype=row["stream"])
        begun += [
            (OutputLine(at_us, text, level, rank), origin)
            for text, rank, level in zip(texts.texts, texts.ranks, texts.levels)
        ]
    return begun
