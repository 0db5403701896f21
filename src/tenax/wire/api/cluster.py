"""The master's own: its settings, what it says about itself, and the message that administrators show to everyone."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Document, Message, Timestamp


class LogLevel(str, Enum):
    """How loud a line is."""

    UNSPECIFIED = "LOG_LEVEL_UNSPECIFIED"
    TRACE = "LOG_LEVEL_TRACE"
    DEBUG = "LOG_LEVEL_DEBUG"
    INFO = "LOG_LEVEL_INFO"
    WARNING = "LOG_LEVEL_WARNING"
    ERROR = "LOG_LEVEL_ERROR"
    CRITICAL = "LOG_LEVEL_CRITICAL"


class GetMasterConfigResponse(Message):
    """The settings, without secrets."""

    config: Document


class LogConfig(Message):
    """How the master talks."""

    level: LogLevel | None = None
    color: bool | None = None


class Config(Message):
    """What can change while the master runs."""

    log: LogConfig = LogConfig()


class FieldMask(Message):
    """Which fields are meant, by path: ``log.level``; a prefix means all below it."""

    paths: list[str] = []


class PatchMasterConfigRequest(Message):
    """Changes of this process, until it ends."""

    config: Config = Config()
    #: A list, or one text with commas between.
    field_mask: FieldMask | str = FieldMask()


class LogEntry(Message):
    """One line of the master's."""

    id: int
    message: str
    timestamp: Timestamp
    level: LogLevel


class MasterLogsResponse(Message):
    """One line of the stream."""

    log_entry: LogEntry


class ClusterMessageView(Message):
    """The message as people see it."""

    message: str
    start_time: Timestamp
    end_time: Timestamp | None = None
    created_time: Timestamp | None = None


class GetClusterMessageResponse(Message):
    """Absent where there is none."""

    cluster_message: ClusterMessageView | None = None


class SetClusterMessageRequest(Message):
    """Until ``endTime``, or for a ``duration`` (``24h``, ``2w``), or until it is taken back."""

    message: str = ""
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    duration: str | None = None
