"""Output of tasks by the numbers of its lines: any part of it at once, what matches, how much there is over time.

Rules it keeps: who may read the streams of lines may read these; an answer is bounded, whatever is asked for and
however long the output is; lines are written out in a thread. Numbers are those of a whole log: of a task of a trial
that was continued these routes show what all its tasks wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec
from fastapi import Depends, Query, Response

from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.allocations.exit_reason import CHUNKS, evidence
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import JSON
from tenax.master.api.http.routing import Routes
from tenax.master.api.logs.messages import (
    LogHistogramResponse,
    LogHitsResponse,
    LogLevel,
    LogWindowResponse,
    TrialFailureResponse,
)
from tenax.master.api.logs.routes import FiltersDep, task_of
from tenax.master.context import Master
from tenax.master.reading import log_windows
from tenax.master.reading.log_search import FoundLine, LogFilters, timestamp
from tenax.master.reading.log_windows import MAX_BUCKETS, MAX_LINES, MAX_RANGES, LogWindow, WindowQuery
from tenax.master.store.allocations import containers
from tenax.master.store.logs import rows as logs
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import TrialView
from tenax.master.telemetry.log_lines import LEVELS, NO_RANK
from tenax.master.telemetry.reports import microseconds

routes = Routes("logs")

#: Characters of a line that are sent.
_MAX_TEXT = 10_000
#: No line has a greater number.
_MAX_NUMBER = 2**53
Number = Annotated[int | None, Query(ge=0, le=_MAX_NUMBER)]


def _window_of(
    offset: Number = None,
    before: Number = None,
    around_line: Number = None,
    around_time: str | None = None,
    numbers: Annotated[list[int], Query()] = [],  # noqa: B006
    limit: Annotated[int, Query(ge=1, le=MAX_LINES)] = 200,
) -> WindowQuery:
    """Which lines: from ``offset`` on, the last before ``before``, those around a line or a time, or just ``numbers``.

    Without any of these the newest lines. Raises InvalidInput.
    """
    if any(not 0 <= number <= _MAX_NUMBER for number in numbers):
        raise InvalidInput("numbers of lines are not negative, and at most 2**53")
    around_us = None if around_time is None else microseconds(around_time)
    return WindowQuery(limit, offset, before, around_line, around_us, tuple(numbers))


def _filters_of(filters: FiltersDep, errors: bool = False) -> LogFilters:
    """As for the streams of lines; ``errors``: of these, lines of that level and those that name an exception."""
    return replace(filters, errors=errors)


WindowDep = Annotated[WindowQuery, Depends(_window_of)]
HitsDep = Annotated[LogFilters, Depends(_filters_of)]
Offset = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]
Ranges = Annotated[int, Query(ge=1, le=MAX_RANGES)]
Buckets = Annotated[int, Query(ge=1, le=MAX_BUCKETS)]


@routes.get("/api/v1/tasks/{task_id}/logs/lines", "GetTaskLogLines", allow=Allow.USER, response_model=LogWindowResponse)
async def task_lines(master: MasterDep, task_id: str, query: WindowDep) -> Response:
    """Some lines of a task's output by their numbers, however long it is."""
    loaded = await log_windows.window(master.db, master.readers, task_id, query)
    return Response(await master.readers.run(_window_message, loaded), media_type=JSON)


@routes.get(
    "/api/v1/trials/{trial_id}/logs/lines", "GetTrialLogLines", allow=Allow.USER, response_model=LogWindowResponse
)
async def trial_lines(master: MasterDep, trial_id: int, query: WindowDep) -> Response:
    """As `task_lines`, of a trial's task."""
    return await task_lines(master, await task_of(master, trial_id), query)


@routes.get("/api/v1/tasks/{task_id}/logs/hits", "GetTaskLogHits", allow=Allow.USER, response_model=LogHitsResponse)
async def task_hits(
    master: MasterDep, task_id: str, filters: HitsDep, offset: Offset = 0, limit: Ranges = 10_000
) -> Response:
    """Which lines from ``offset`` on match, in ``limit`` ranges at most; ``next`` says where to go on."""
    threads = master.readers if filters.pattern is None and not filters.errors else master.searchers
    hits = await log_windows.hits(master.db, threads, task_id, filters, offset, limit)
    message = {"first": hits.first, "last": hits.last, "next": hits.next, "total": hits.total}
    return Response(await master.readers.run(msgspec.json.encode, message), media_type=JSON)


@routes.get("/api/v1/trials/{trial_id}/logs/hits", "GetTrialLogHits", allow=Allow.USER, response_model=LogHitsResponse)
async def trial_hits(
    master: MasterDep, trial_id: int, filters: HitsDep, offset: Offset = 0, limit: Ranges = 10_000
) -> Response:
    """As `task_hits`, of a trial's task."""
    return await task_hits(master, await task_of(master, trial_id), filters, offset, limit)


@routes.get("/api/v1/tasks/{task_id}/logs/histogram", "GetTaskLogHistogram", allow=Allow.USER)
async def task_histogram(master: MasterDep, task_id: str, buckets: Buckets = 120) -> LogHistogramResponse:
    """How many lines of each level a task has written over time."""
    counted = await log_windows.histogram(master.db, master.readers, task_id, buckets)
    return LogHistogramResponse(
        begins=counted.begins_us,
        width=counted.width_us,
        first_line=counted.first_line,
        levels=[LogLevel(f"LOG_LEVEL_{name}") for name in LEVELS],
        counts=counted.counts,
        exact=counted.exact,
    )


@routes.get("/api/v1/trials/{trial_id}/logs/histogram", "GetTrialLogHistogram", allow=Allow.USER)
async def trial_histogram(master: MasterDep, trial_id: int, buckets: Buckets = 120) -> LogHistogramResponse:
    """As `task_histogram`, of a trial's task."""
    return await task_histogram(master, await task_of(master, trial_id), buckets)


@routes.get(
    "/api/v1/trials/{trial_id}/logs/failure", "GetTrialFailure", allow=Allow.USER, response_model=TrialFailureResponse
)
async def trial_failure(master: MasterDep, trial_id: int) -> Response:
    """Why a trial failed, with the line of its output that shows it, where there is one."""
    async with master.db.connection() as conn:
        trial = await trial_lists.get(conn, trial_id)
    number = await failure_line(master, trial) if trial.shown_state == "ERROR" else None
    message: JsonObject = {"reason": trial.reason if trial.shown_state == "ERROR" else "", "runId": trial.run_id}
    if number is not None:
        query = WindowQuery(1, numbers=(number,))
        loaded = await log_windows.window(master.db, master.readers, trial.task_id, query)
        message |= {"line": _entry(loaded.lines[0])} if loaded.lines else {}
    return Response(msgspec.json.encode(message), media_type=JSON)


async def failure_line(master: Master, trial: TrialView) -> int | None:
    """The number of the line that shows why the newest attempt of a trial failed, where one does."""
    async with master.db.snapshot() as conn:
        members = await containers.last_failed(conn, trial.id)
        spans = await logs.spans(conn, await logs.place_of(conn, trial.task_id), descending=True, limit=CHUNKS)
    return await master.readers.run(evidence, spans[::-1], members)


def _window_message(loaded: LogWindow) -> bytes:
    begun = [FoundLine(loaded.total, line, origin) for line, origin in loaded.unfinished]
    return msgspec.json.encode(
        {
            "lines": [_entry(line) for line in loaded.lines],
            "total": loaded.total,
            "unfinished": [_entry(line) for line in begun],
        }
    )


def _entry(read: FoundLine) -> JsonObject:
    line, origin = read.line, read.origin
    entry: JsonObject = {
        "number": read.number,
        "timestamp": timestamp(line.at_us),
        "text": line.text[:_MAX_TEXT],
        "leftOut": max(0, len(line.text) - _MAX_TEXT),
        "level": f"LOG_LEVEL_{LEVELS[line.level]}",
        "source": origin.source,
        "allocationId": origin.allocation_id,
        "containerId": origin.container_id,
        "agentId": origin.agent_id,
        "stdtype": origin.stdtype,
    }
    return entry if line.rank == NO_RANK else {**entry, "rankId": line.rank}
