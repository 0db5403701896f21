"""Output of tasks: compressed chunks of lines, numbered in the order of arrival; no row per line.

Rules:
- The lines of a log are numbered from 0 without gaps; a number is given in the transaction that stores the line.
- A task has a log of its own, but for the further tasks of a trial that was continued: their lines go where those of
  the first do (``tasks.log_task_id``), and name their task. Each line is of one task.
- Output of a container is known by its byte offset: what was stored is not stored again, and a beginning of a line
  whose end has not come is kept beside the offset.
- A chunk never changes; small neighbours are joined into one, with the same numbers.
- The values that output can be filtered by (`fields_of_task`) are read from the chunks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np
from asyncpg import Connection, Record

from tenax.errors import Stale
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.logs import packing as log_packing
from tenax.master.store.logs.packing import Chunk, columns_of, origins_from_json, origins_to_json
from tenax.master.telemetry.log_lines import NO_RANK, Origin, OutputLine, clean, level_number

Q = load("logs")

#: A task with so many small chunks gets them joined.
JOIN_AT = 64
#: After the end of a trial that is trained elsewhere its last lines may still be under way.
_LAST_LINES_S = 5.0
#: Their place in a row of a chunk.
_ORIGINS = 7
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task's lines are."""

    #: Whose log it is.
    task_id: str
    #: Year and month of that task, 202611.
    month: int

    def name_of(self, task_id: str) -> str:
        """How lines of a task name it here: not at all, where the log is its own."""
        return "" if task_id == self.task_id else task_id


@dataclass(frozen=True, slots=True)
class Stream:
    """How far the output of a container has been taken in."""

    next_offset: int = 0
    #: The beginning of a line whose end has not come.
    carry: bytes = b""


@dataclass(frozen=True, slots=True)
class Member:
    """A container, as far as its output goes."""

    place: Place
    origin: Origin
    #: By name; a stream without output is not there.
    streams: Mapping[str, Stream]
    #: When this was read, in microseconds since 1970.
    now_us: int

    @property
    def task_id(self) -> str:
        """Whose container it is."""
        return self.origin.task_id or self.place.task_id


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A chunk, and the number of its first line."""

    first_line: int
    chunk: Chunk


async def place_of(conn: Connection, task_id: str) -> Place:
    """Raises NotFound."""
    return (await _place_now(conn, task_id))[0]


async def member(conn: Connection, container_id: str, agent_id: str) -> Member | None:
    """The container of that agent; None: it is not one of its."""
    rows = await conn.fetch(Q.member, container_id, agent_id)
    if not rows:
        return None
    place = Place(rows[0]["log_task_id"], rows[0]["month"])
    return Member(
        place,
        Origin(rows[0]["allocation_id"], container_id, agent_id, task_id=place.name_of(rows[0]["task_id"])),
        {row["stream"]: Stream(row["next_offset"], row["carry"]) for row in rows if row["stream"] is not None},
        _microseconds(rows[0]["now"]),
    )


async def script(conn: Connection, task_id: str, name: str, host: str) -> Member:
    """What runs outside of the cluster, as if it were a container of this name. Raises NotFound."""
    place, now_us = await _place_now(conn, task_id)
    streams = {row["stream"]: Stream(row["next_offset"], row["carry"]) for row in await conn.fetch(Q.output_of, name)}
    return Member(place, Origin("", name, host, task_id=place.name_of(task_id)), streams, now_us)


async def advance(conn: Connection, place: Place, container_id: str, name: str, before: Stream, after: Stream) -> None:
    """Move a stream on. Raises Stale when it is not where ``before`` says."""
    if before == Stream():
        await conn.execute(Q.begin_task, place.task_id, place.month)
        moved = await conn.fetchval(Q.begin_stream, container_id, name, place.task_id, after.next_offset, after.carry)
    else:
        moved = await conn.fetchval(
            Q.advance, container_id, name, before.next_offset, before.carry, after.next_offset, after.carry
        )
    if moved is None:
        raise Stale


async def append(conn: Connection, place: Place, chunk: Chunk) -> int:
    """Store lines at the end of a task; returns how many chunks wait to be joined. The task's row stays locked."""
    row = await conn.fetchrow(Q.number, place.task_id, chunk.lines)
    if row is None:
        await conn.execute(Q.begin_task, place.task_id, place.month)
        row = await conn.fetchrow(Q.number, place.task_id, chunk.lines)
    await _insert(conn, place, row["first_line"], chunk)
    await notify(conn, "logs", place.task_id)
    return int(row["loose_chunks"])


async def append_system_line(
    conn: Connection,
    task_id: str,
    text: str,
    level: str = "INFO",
    *,
    allocation_id: str = "",
    container_id: str = "",
    agent_id: str = "",
    source: str = "master",
) -> None:
    """A line of the platform's own in the output of a task, in the caller's transaction. Raises NotFound."""
    place, at_us = await _place_now(conn, task_id)
    lines = [OutputLine(at_us, clean(part), level_number(level)) for part in text.splitlines() or [""]]
    origin = Origin(allocation_id, container_id, agent_id, source, task_id=place.name_of(task_id))
    await append(conn, place, log_packing.pack(lines, [origin]))


@dataclass(frozen=True, slots=True)
class SystemLine:
    """A line of the platform's own, for the output of a task."""

    task_id: str
    text: str
    level: str = "INFO"
    allocation_id: str = ""


async def append_system_lines(conn: Connection, lines: Sequence[SystemLine]) -> None:
    """Of several tasks, one for each, in the caller's transaction; nothing for a task that is gone."""
    if not lines:
        return
    rows = await conn.fetch(Q.places, [line.task_id for line in lines])
    places = {row["task_id"]: (_place(row), _microseconds(row["now"])) for row in rows}
    chunks: dict[Place, Chunk] = {}
    for line in lines:
        if line.task_id in places:
            place, at_us = places[line.task_id]
            parts = line.text.splitlines() or [""]
            output = [OutputLine(at_us, clean(part), level_number(line.level)) for part in parts]
            origin = Origin(line.allocation_id, "", "", "master", task_id=place.name_of(line.task_id))
            chunks[place] = log_packing.pack(output, [origin])
    if not chunks:
        return
    firsts = await _first_lines(conn, chunks)
    columns = list(map(list, zip(*(_row(place, firsts[place.task_id], chunk) for place, chunk in chunks.items()))))
    columns[_ORIGINS] = [json.dumps(origins) for origins in columns[_ORIGINS]]
    await conn.execute(Q.insert_many, *columns)
    for place in chunks:
        await notify(conn, "logs", place.task_id)


async def _first_lines(conn: Connection, chunks: Mapping[Place, Chunk]) -> dict[str, int]:
    """The number of the first line of each chunk; the logs' rows stay locked."""
    firsts: dict[str, int] = {}
    missing = list(chunks)
    for _ in range(2):
        counts = [chunks[place].lines for place in missing]
        names = [place.task_id for place in missing]
        await conn.fetch(Q.hold, names)
        rows = await conn.fetch(Q.next_lines, names, counts)
        firsts |= {row["task_id"]: row["first_line"] for row in rows}
        missing = [place for place in missing if place.task_id not in firsts]
        if missing:
            await _begin(conn, missing)
        else:
            break
    return firsts


async def reopen(conn: Connection, task_ids: Sequence[str]) -> None:
    """These logs go on, in the transaction that makes the tasks by which they do."""
    # Begun, too: what begins one at the same moment might not see that it goes on.
    await _begin(conn, [_place(row) for row in await conn.fetch(Q.places, task_ids)])
    await conn.fetch(Q.hold, task_ids)
    await conn.execute(Q.reopen, task_ids)


async def _begin(conn: Connection, places: Sequence[Place]) -> None:
    names, months = [place.task_id for place in places], [place.month for place in places]
    await conn.execute(Q.begin_tasks, names, months)


async def spans(
    conn: Connection, place: Place, *, after: int = -1, before: int | None = None, descending: bool = False, limit: int
) -> list[LogSpan]:
    """Chunks with lines after number ``after`` and before ``before``, in order."""
    statement = Q.spans_down if descending else Q.spans_up
    rows = await conn.fetch(statement, place.month, place.task_id, after, 2**62 if before is None else before, limit)
    return [span_of(row) for row in rows]


async def last_spans_of(conn: Connection, place: Place, container_ids: Collection[str], limit: int) -> list[LogSpan]:
    """The last chunks with lines of any of these containers, the last first."""
    rows = await conn.fetch(Q.last_spans_of, place.month, place.task_id, list(container_ids), limit)
    return [LogSpan(row["first_line"], _chunk(row)) for row in rows]


async def still_speaks_s(conn: Connection, task_id: str, *, of_trial: bool = False) -> float | None:
    """Seconds for which lines of a task may still come, not more than 0: none will; None: it goes on.

    ``of_trial``: of its trial, by whichever task. An agent reports an end after all output is here. What is trained
    elsewhere sends its last lines after its end.
    """
    row = await conn.fetchrow(Q.still_speaks, task_id, _LAST_LINES_S, of_trial)
    return 0.0 if row is None else row["seconds"]


async def loose(conn: Connection, place: Place) -> list[LogSpan]:
    """The chunks of a task that were not joined yet, in order; locks the task's lines."""
    first = await conn.fetchval(Q.lock_loose, place.task_id)
    return [] if first is None else await spans(conn, place, after=first - 1, limit=4 * JOIN_AT)


async def replace(conn: Connection, place: Place, old: Sequence[LogSpan], new: Chunk) -> None:
    """Put ``new`` in the place of neighbours, which were locked by `loose`."""
    await conn.execute(Q.drop, place.month, place.task_id, [span.first_line for span in old])
    await _insert(conn, place, old[0].first_line, new)


async def joined(conn: Connection, place: Place, up_to: int) -> None:
    """Chunks before line ``up_to`` are not looked at again."""
    await conn.execute(Q.joined, place.task_id, up_to)


async def delete_tasks(conn: Connection, task_ids: list[str]) -> None:
    """Forget the output of tasks; their rows may go after that."""
    await conn.execute(Q.delete_chunks, task_ids)
    await conn.execute(Q.delete_tasks, task_ids)


async def _place_now(conn: Connection, task_id: str) -> tuple[Place, int]:
    """Where a task's lines are, and the time in microseconds since 1970. Raises NotFound."""
    row = await existing(conn, f"task {task_id}", Q.places, [task_id])
    return _place(row), _microseconds(row["now"])


def _place(row: Record) -> Place:
    return Place(row["log_task_id"], row["month"])


async def _insert(conn: Connection, place: Place, first_line: int, chunk: Chunk) -> None:
    await conn.execute(Q.insert, *_row(place, first_line, chunk))


def _row(place: Place, first_line: int, chunk: Chunk) -> tuple[object, ...]:
    return (
        place.month,
        place.task_id,
        first_line,
        chunk.lines,
        EPOCH + timedelta(microseconds=chunk.first_at_us),
        EPOCH + timedelta(microseconds=chunk.last_at_us),
        chunk.levels,
        origins_to_json(chunk.origins),
        chunk.meta,
        chunk.body,
    )


def span_of(row: Record) -> LogSpan:
    """A row of a chunk."""
    return LogSpan(row["first_line"], _chunk(row))


def _chunk(row: Record) -> Chunk:
    return Chunk(
        row["lines"],
        _microseconds(row["first_at"]),
        _microseconds(row["last_at"]),
        row["levels"],
        origins_from_json(row["origins"]),
        row["meta"],
        row["body"],
    )


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


#: Ranks are looked up in the first chunks only: every rank speaks early.
_CHUNKS_FOR_RANKS = 16


async def fields_of_task(conn: Connection, place: Place, task: str | None = None) -> JsonObject:
    """Every value that occurs, sorted, in the shape of Determined's answer.

    ``task``: in lines that name it so (`Place.name_of`); None: in all.
    """
    rows = await conn.fetch(Q.origins, place.month, place.task_id)
    origins = [row["origin"] for row in rows if task is None or row["origin"].get("task_id", "") == task]
    ranks: set[int] = set()
    for span in await spans(conn, place, limit=_CHUNKS_FOR_RANKS):
        columns = columns_of(span.chunk)
        ours = [n for n, origin in enumerate(span.chunk.origins) if task is None or origin.task_id == task]
        ranks.update(columns.rank[np.isin(columns.origin, ours)].tolist())
    return {
        "allocationIds": _values(origins, "allocation_id"),
        "agentIds": _values(origins, "agent_id"),
        "containerIds": _values(origins, "container_id"),
        "rankIds": list[Json](sorted(ranks - {NO_RANK})),
        "stdtypes": _values(origins, "stdtype"),
        "sources": _values(origins, "source"),
    }


async def task_of_trial(conn: Connection, trial_id: int) -> str | None:
    """The task of a trial; None: no such trial."""
    task_id: str | None = await conn.fetchval(Q.task_of_trial, trial_id)
    return task_id


def _values(origins: Sequence[Mapping[str, str]], name: str) -> list[Json]:
    return list[Json](sorted({value for origin in origins if (value := origin.get(name))}))
