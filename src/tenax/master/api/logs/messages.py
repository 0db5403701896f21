"""Levels of lines, of events, of the master's log; how long output is kept."""

from __future__ import annotations

from enum import Enum

from tenax.wire.message import Int64, Message


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
