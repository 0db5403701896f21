"""Levels of lines, of events, of the master's log; parts of output by line numbers; how long output is kept."""

from __future__ import annotations

from enum import Enum

from tenax.wire.message import Int64, Message, Timestamp


class LogLevel(str, Enum):
    """How serious a line or an event is."""

    UNSPECIFIED = "LOG_LEVEL_UNSPECIFIED"
    TRACE = "LOG_LEVEL_TRACE"
    DEBUG = "LOG_LEVEL_DEBUG"
    INFO = "LOG_LEVEL_INFO"
    WARNING = "LOG_LEVEL_WARNING"
    ERROR = "LOG_LEVEL_ERROR"
    CRITICAL = "LOG_LEVEL_CRITICAL"


class TrialRetentionRequest(Message):
    """Days after the end of a trial; -1: for ever."""

    num_days: int


class CleanupLogsResponse(Message):
    """How many lines were removed."""

    removed_count: Int64


class RemainingDaysResponse(Message):
    """Days for which the output is still kept; -1: for ever. Of a trial that runs, those after its end."""

    remaining_days: int


class OutputEntry(Message):
    """One line of output."""

    #: From 0, in the order of arrival: the ``id`` of the streams of lines. Of a line whose end has not come that of the
    #: next line.
    number: int
    timestamp: Timestamp
    #: At most 10,000 characters of it, without the rank and the level that stood before it.
    text: str
    #: Characters of it that are left out here.
    left_out: int = 0
    level: LogLevel
    #: ``task``, ``master`` or ``agent``.
    source: str
    rank_id: int | None = None
    allocation_id: str = ""
    container_id: str = ""
    agent_id: str = ""
    #: ``stdout`` or ``stderr``.
    stdtype: str = ""


class LogWindowResponse(Message):
    """Some lines, in order."""

    lines: list[OutputEntry]
    #: How many lines there are now.
    total: int
    #: Where the window reaches to the end: what running containers have written of lines whose end has not come, such
    #: as a bar of progress, as a terminal would show it now.
    unfinished: list[OutputEntry] = []


class LogHitsResponse(Message):
    """Which lines match, as ranges of neighbours: ``first[n]`` to ``last[n]``, both included."""

    first: list[int]
    last: list[int]
    #: Where to go on with the search; ``total`` when all lines were searched.
    next: int
    #: How many lines there are now.
    total: int


class LogHistogramResponse(Message):
    """Lines by time and level. All lists but ``levels`` and ``counts`` have an entry for each bucket."""

    #: Microseconds since 1970.
    begins: list[int]
    #: Microseconds that each bucket is long.
    width: int
    #: The least number of a line in the bucket; null where there is none.
    first_line: list[int | None]
    levels: list[LogLevel]
    #: Of each of the ``levels``, by bucket.
    counts: list[list[int]]
    #: False: of very long output, parts were counted that stand for those beside them.
    exact: bool


class TrialFailureResponse(Message):
    """Why a trial failed, and the line that shows it."""

    #: Empty: it has not failed.
    reason: str
    #: The newest attempt.
    run_id: int
    line: OutputEntry | None = None
