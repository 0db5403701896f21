"""Output of tasks: taken in from agents and from Determined's shipper, read back, and kept for a time.

Rules it keeps: a trial's owner says how long its output is kept; what is older is removed on a schedule, or at once
when an administrator asks; lines for which there is no room are refused to agents, which keep them while they can, and
dropped with a warning where the shipper would end the task.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated

import structlog
from fastapi import Depends, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tenax.errors import Forbidden, InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import AgentDep, CallerDep, MasterDep
from tenax.master.api.http.requests import decode_large
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import line, ndjson
from tenax.master.api.logs.messages import CleanupLogsResponse, RemainingDaysResponse, TrialRetentionRequest
from tenax.master.context import Master
from tenax.master.ingest.budget import NoRoom
from tenax.master.reading.log_search import FoundLine, LogFilters, rendered, timestamp
from tenax.master.reading.log_stream import LogQuery, LogSource, read, until_end
from tenax.master.store.database.faults import DatabaseFull
from tenax.master.store.logs import retention
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import Place
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.log_lines import LEVELS, MAX_LINE, NO_RANK, Origin, OutputLine, level_number
from tenax.master.telemetry.reports import microseconds
from tenax.wire.message import Empty, OrderBy

#: A year: nothing of an agent's is older.
_OLDEST_MS = 366 * 24 * 3600 * 1000
routes = Routes("logs")
log = structlog.get_logger("tenax.logs")

#: A task, lines of it, and where they come from.
Posted = tuple[str, list[OutputLine], list[Origin]]

#: Lines in one request, and in one part of a stream.
_MAX_LINES, _PART_LINES = 10_000, 1000
Texts = Annotated[list[str], Query()]
Numbers = Annotated[list[int], Query()]


@routes.post("/agents/logs", "ShipOutput", allow=Allow.AGENT, often=True, response_class=Response)
async def ship_output(
    master: MasterDep,
    agent_id: AgentDep,
    request: Request,
    container_id: str,
    stream: str,
    offset: int,
    gone_from: int = 0,
    final: bool = False,
    age_ms: Annotated[int, Query(ge=0, le=_OLDEST_MS)] = 0,
) -> Response:
    """Store output of a container (`tenax.wire.logs`); 507 when there is no room for it."""
    try:
        body = await request.body()
        following = await master.intake.logs.output(
            agent_id, container_id, stream, offset, body, gone_from=gone_from, final=final, age_us=age_ms * 1000
        )
    except (NoRoom, DatabaseFull) as error:
        return JSONResponse({"message": str(error)}, status_code=507)
    return JSONResponse({"next": following})


@routes.get("/agents/logs/offsets", "GetOutputOffsets", allow=Allow.AGENT, response_class=Response)
async def output_offsets(master: MasterDep, agent_id: AgentDep, container_id: str) -> Response:
    """The first byte of each stream that is not here yet."""
    return JSONResponse(await master.intake.logs.offsets(agent_id, container_id))


@routes.post("/api/v1/task/logs", "PostTaskLogs", allow=Allow.REPORTER, response_class=Response)
async def post_task_logs(master: MasterDep, caller: CallerDep, request: Request) -> Response:
    """Store lines of one task, as its own shipper made them.

    Without room for them they are dropped, with a line in the master's log: the shipper would end the task otherwise.
    """
    body = await request.body()
    task_id, lines, origins = await master.intake.threads.run(_posted, body)
    if caller.task is not None and caller.task.task_id != task_id:
        raise Forbidden(f"the token is not that of task {task_id}")
    if caller.task is None and not caller.is_admin:
        raise Forbidden("only a task itself adds to its output")
    await keep(master, task_id, lines, origins)
    return Response(b"{}", media_type="application/json")


async def keep(master: Master, task_id: str, lines: list[OutputLine], origins: list[Origin]) -> None:
    """Store lines of a task; without room for them they are dropped. Raises NotFound."""
    try:
        await master.intake.logs.posted(task_id, lines, origins)
    except (NoRoom, DatabaseFull) as error:
        log.warning("lines of a task were dropped", task=task_id, lines=len(lines), reason=str(error))


def filters_of(
    allocation_ids: Texts = [],  # noqa: B006
    agent_ids: Texts = [],  # noqa: B006
    container_ids: Texts = [],  # noqa: B006
    rank_ids: Numbers = [],  # noqa: B006
    levels: Texts = [],  # noqa: B006
    sources: Texts = [],  # noqa: B006
    stdtypes: Texts = [],  # noqa: B006
    timestamp_after: str | None = None,
    timestamp_before: str | None = None,
    search_text: str = "",
    enable_regex: bool = False,
) -> LogFilters:
    """Which lines are meant. Raises InvalidInput."""
    return LogFilters(
        frozenset(allocation_ids),
        frozenset(agent_ids),
        frozenset(container_ids),
        frozenset(rank_ids),
        frozenset(_level(name) for name in levels),
        frozenset(sources),
        frozenset(stdtypes),
        None if timestamp_after is None else microseconds(timestamp_after),
        None if timestamp_before is None else microseconds(timestamp_before),
        search_text,
        enable_regex,
    )


FiltersDep = Annotated[LogFilters, Depends(filters_of)]


def selection_of(
    filters: FiltersDep,
    limit: Annotated[int, Query(ge=0)] = 0,
    follow: bool = False,
    order_by: OrderBy = OrderBy.UNSPECIFIED,
) -> LogQuery:
    """What a reader asks for. ``limit`` 0: all lines. Raises InvalidInput for what excludes one another."""
    if follow and limit:
        raise InvalidInput("follow and limit exclude each other: a log that is followed has no last line")
    if follow and order_by is OrderBy.DESC:
        raise InvalidInput("a log is followed from its beginning: leave orderBy out, or follow")
    return LogQuery(filters, limit or None, follow, order_by is OrderBy.DESC)


SelectionDep = Annotated[LogQuery, Depends(selection_of)]


@routes.stream("/api/v1/tasks/{task_id}/logs", "TaskLogs", allow=Allow.USER)
async def task_logs(master: MasterDep, task_id: str, selection: SelectionDep) -> StreamingResponse:
    """Lines of a task, one message each: a stream, without end until the task's with ``follow``.

    Of a trial that was continued they are those of this task alone, by their numbers in the output of the trial.
    """
    await _check_task(master, task_id)
    return ndjson(_lines(master, LogSource(task_id), {"taskId": task_id}, selection))


@routes.stream("/api/v1/trials/{trial_id}/logs", "TrialLogs", allow=Allow.USER)
async def trial_logs(master: MasterDep, trial_id: int, selection: SelectionDep) -> StreamingResponse:
    """Lines of a trial, as `task_logs`: of all its tasks, numbered through."""
    source = LogSource(await task_of(master, trial_id), of_trial=True)
    return ndjson(_lines(master, source, {"trialId": trial_id}, selection))


@routes.stream("/api/v1/tasks/{task_id}/logs/fields", "TaskLogsFields", allow=Allow.USER)
async def task_log_fields(master: MasterDep, task_id: str, follow: bool = False) -> StreamingResponse:
    """What the lines of a task can be filtered by; with ``follow`` again whenever it has changed, until its end."""
    await _check_task(master, task_id)
    return ndjson(_fields(master, LogSource(task_id), follow))


@routes.stream("/api/v1/trials/{trial_id}/logs/fields", "TrialLogsFields", allow=Allow.USER)
async def trial_log_fields(master: MasterDep, trial_id: int, follow: bool = False) -> StreamingResponse:
    """As `task_log_fields`."""
    return ndjson(_fields(master, LogSource(await task_of(master, trial_id), of_trial=True), follow))


async def _lines(master: Master, source: LogSource, whose: JsonObject, selection: LogQuery) -> AsyncIterator[bytes]:
    threads = master.readers if selection.filters.pattern is None else master.searchers
    parts = read(master.log_reads, master.listener, threads, source, selection, master.shutdown)
    async for lines in parts:
        for start in range(0, len(lines), _PART_LINES):
            yield await master.readers.run(_messages, whose, lines[start : start + _PART_LINES])


async def _fields(master: Master, source: LogSource, follow: bool) -> AsyncIterator[bytes]:
    sent: JsonObject | None = None

    async def load(place: Place) -> JsonObject:
        async with master.db.connection() as conn:
            return await logs.fields_of_task(conn, place, source.task_in(place))

    async for now in until_end(master.log_reads, master.listener, source, master.shutdown, load, follow=follow):
        if now != sent:
            sent = now
            yield line(now)


async def _check_task(master: Master, task_id: str) -> None:
    async with master.db.connection() as conn:
        await logs.place_of(conn, task_id)


async def task_of(master: Master, trial_id: int) -> str:
    """The newest task of a trial. Raises NotFound."""
    async with master.db.connection() as conn:
        task_id = await logs.task_of_trial(conn, trial_id)
    if task_id is None:
        raise NotFound(f"trial {trial_id} not found")
    return task_id


def _messages(whose: JsonObject, entries: list[FoundLine]) -> bytes:
    return b"".join(line({**whose, **_message(entry)}) for entry in entries)


def _message(entry: FoundLine) -> JsonObject:
    written = entry.line
    origin = entry.origin
    message: JsonObject = {
        "id": str(entry.number),
        "timestamp": timestamp(written.at_us),
        "message": rendered(entry),
        "log": written.text + "\n",
        "level": f"LOG_LEVEL_{LEVELS[written.level]}",
        "source": origin.source,
    }
    if written.rank != NO_RANK:
        message["rankId"] = written.rank
    for name, value in (
        ("allocationId", origin.allocation_id),
        ("containerId", origin.container_id),
        ("agentId", origin.agent_id),
        ("stdtype", origin.stdtype),
    ):
        if value:
            message[name] = value
    return message


def _posted(body: bytes) -> Posted:
    document = decode_large(body, keeps_nul=True)
    return posted(document.get("logs") if isinstance(document, dict) else None)


def posted(rows: Json) -> Posted:
    """Lines of one task, as a shipper writes them. Raises InvalidInput."""
    if not isinstance(rows, list) or not rows:
        raise InvalidInput("logs must be a list of at least one line")
    if len(rows) > _MAX_LINES:
        raise InvalidInput(f"a request has at most {_MAX_LINES} lines, and this one has {len(rows)}")
    task_ids: set[str] = set()
    lines: list[OutputLine] = []
    origins: dict[Origin, int] = {}
    for row in rows:
        if not isinstance(row, dict):
            raise InvalidInput("each line is an object")
        task_ids.add(_text(row, "task_id", "taskId"))
        origin = Origin(
            _text(row, "allocation_id", "allocationId"),
            _text(row, "container_id", "containerId"),
            _text(row, "agent_id", "agentId"),
            _text(row, "source") or "task",
            _text(row, "stdtype"),
        )
        lines += _lines_of(row, origins.setdefault(origin, len(origins)), _MAX_LINES - len(lines))
    task_id = next(iter(task_ids))
    if len(task_ids) > 1 or not task_id:
        raise InvalidInput("all lines of a request are of one task: give each its task_id")
    return task_id, lines, list(origins)


def _lines_of(row: dict[str, Json], origin: int, most: int) -> list[OutputLine]:
    written_at = _text(row, "timestamp")
    at_us = microseconds(written_at) if written_at else time.time_ns() // 1000
    rank = row.get("rank_id", row.get("rankId"))
    number = rank if isinstance(rank, int) and 0 <= rank < 2**31 else NO_RANK
    level = level_number(_text(row, "level"))
    written = row.get("log")
    text = (written if isinstance(written, str) else "").removesuffix("\n")
    if text.count("\n") >= most:
        raise InvalidInput(f"a request has at most {_MAX_LINES} lines, and this one has more")
    texts = [
        line[start : start + MAX_LINE] for line in text.split("\n") for start in range(0, len(line) or 1, MAX_LINE)
    ]
    return [OutputLine(at_us, text, level, number, origin) for text in texts]


def _text(row: dict[str, Json], *names: str) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, str):
            if "\0" in value:
                raise InvalidInput(f"{name} holds a NUL character, which only the log itself may")
            return value
    return ""


def _level(name: str) -> int:
    number = level_number(name)
    if not number and not name.upper().endswith("UNSPECIFIED"):
        raise InvalidInput(f"there is no level {name!r}: {', '.join(LEVELS[1:])} are all")
    return number


@routes.post("/api/v1/cleanup_logs", "CleanupLogs", allow=Allow.ADMIN)
async def clean_logs(master: MasterDep) -> CleanupLogsResponse:
    """Remove output past its retention now, without waiting for the schedule."""
    lines = 0
    while not master.shutdown.is_set():
        async with master.db.transaction() as conn:
            tasks, removed = await retention.clean(conn, master.settings.log_retention_days)
        lines += removed
        if tasks < retention.BATCH:
            break
    return CleanupLogsResponse(removed_count=lines)


@routes.put("/api/v1/trials/{trial_id}/retain_logs", "PutTrialRetainLogs", allow=Allow.USER)
async def retain_trial(master: MasterDep, caller: CallerDep, trial_id: int, body: TrialRetentionRequest) -> Empty:
    """Keep the output of a trial that many days after its end, whatever its experiment says."""
    check_days(body.num_days)
    async with master.db.transaction() as conn:
        view = await trial_lists.get(conn, trial_id)
        caller.may_change(view.owner_id, f"trial {trial_id}")
        await retention.set_trial(conn, trial_id, body.num_days)
    return Empty()


@routes.get("/api/v1/trials/{id}/remaining_log_retention_days", "GetTrialRemainingLogRetentionDays", allow=Allow.USER)
async def remaining(master: MasterDep, id: int) -> RemainingDaysResponse:
    """For how many days the output of a trial is still there."""
    async with master.db.connection() as conn:
        kept = await retention.of_trial(conn, id, master.settings.log_retention_days)
    if kept.days == retention.FOR_EVER or kept.remaining is None:
        return RemainingDaysResponse(remaining_days=kept.days)
    return RemainingDaysResponse(remaining_days=max(0, kept.remaining))


def check_days(days: int) -> None:
    """Raises InvalidInput."""
    if not retention.FOR_EVER <= days <= retention.MAX_DAYS:
        raise InvalidInput(f"numDays is {days}: write 0 to {retention.MAX_DAYS} days, or -1 for ever")
