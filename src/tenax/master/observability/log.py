"""The master's own log: structlog on standard error, for people or as JSON lines; the newest lines are kept in memory.

Rules:

- tracebacks never show the values of variables: passwords and tokens are among them;
- libraries' records go the same way; uvicorn's access log is off: it would show queries, and the edge has its own;
- level and colour can be changed while the process runs;
- a line that is kept (`OWN_LOG`) has a number that never changes, so that a reader who was away goes on where it was;
  old lines go, and a reader who asks for them begins with the oldest that is left. Filled from any thread, read in the
  event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import traceback
from collections import deque
from dataclasses import dataclass

import structlog

from tenax.config.master import LogSettings
from tenax.display.terminal import visible
from tenax.master.observability import tracing

#: Seconds between two lines of OpenTelemetry, and characters of one.
_SELDOM_S, _SELDOM_CHARACTERS = 60.0, 300
_NOISY = ("uvicorn.access", "asyncio", "websockets")
#: What a line of `OWN_LOG` says beside its text.
_BESIDE = ("timestamp", "level", "logger", "exc_info", "stack_info", "event")


@dataclass(slots=True)
class LogSetup:
    """How the log is set up at the moment."""

    #: debug, info, warning, error, critical.
    level: str = "info"
    color: bool = False
    json_lines: bool = False


#: Of this process; changed by `set_up` and `change` alone.
CURRENT = LogSetup()


def set_up(settings: LogSettings) -> None:
    """Configure structlog and the standard library's logging for this process."""
    structlog.configure(
        processors=[
            # First: the level is that of the standard library's loggers, which can change at any time.
            structlog.stdlib.filter_by_level,
            *_before(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    OWN_LOG.setFormatter(_formatter(_plain_line))
    logging.getLogger().handlers[:] = [logging.StreamHandler(sys.stderr), OWN_LOG]
    for handler in logging.getLogger().handlers:
        handler.filters[:] = [_Seldom()]
    change(settings.level, sys.stderr.isatty() if settings.color is None else settings.color, settings.json_lines)
    # A database that is away is logged once per attempt, by whoever needs it.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)


def change(level: str, color: bool, json_lines: bool) -> None:
    """Log more or less from now on, with or without colour, or as JSON."""
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.setLevel(number)
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(max(number, logging.WARNING))
    after: list[structlog.typing.Processor]
    if json_lines:
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        after = [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        after = [structlog.dev.ConsoleRenderer(colors=color, exception_formatter=plain), _shown]
    for handler in root.handlers:
        if handler is not OWN_LOG:
            handler.setFormatter(_formatter(*after))
    CURRENT.level, CURRENT.color, CURRENT.json_lines = level, color, json_lines


class _Seldom(logging.Filter):
    """Of OpenTelemetry, which tells of each batch that a collector did not take, one line a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is shown."""
        if not record.name.startswith("opentelemetry"):
            return True
        if record.created < self._next:
            return False
        self._next = record.created + _SELDOM_S
        record.msg, record.args = record.getMessage()[:_SELDOM_CHARACTERS], ()
        return True


def _before() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        _traced,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _traced(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    event.update(tracing.ids())
    return event


def _formatter(*after: structlog.typing.Processor) -> structlog.stdlib.ProcessorFormatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_before(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
    )


def _shown(_logger: object, _method: str, line: object) -> str:
    """A line of the log as the operator's terminal may show it: names and addresses in it are others'."""
    return visible(str(line), colors=CURRENT.color)


def _plain_line(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    """``text name=value ... [logger]``, and the traceback below."""
    values = [f"{name}={value!s}" for name, value in event.items() if name not in _BESIDE]
    line = " ".join([str(event.get("event", "")), *values, f"[{event.get('logger', '')}]"])
    failure = event.get("exc_info")
    if failure is True:
        failure = sys.exc_info()
    if isinstance(failure, BaseException):
        failure = (type(failure), failure, failure.__traceback__)
    if isinstance(failure, tuple) and failure[0] is not None:
        line += "\n" + "".join(traceback.format_exception(*failure)).rstrip()
    return line


#: Lines that are kept, and characters of one.
LINES = 5000
MAX_MESSAGE = 8192


@dataclass(frozen=True, slots=True)
class OwnLogEntry:
    """One line."""

    #: From 0, since the process started.
    number: int
    #: Seconds since 1970.
    at: float
    #: As in logging: DEBUG, INFO, WARNING, ERROR, CRITICAL.
    level: str
    message: str


class OwnLog(logging.Handler):
    """Keeps what it is given. Thread-safe; `wait` is for event loops."""

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self._kept: deque[OwnLogEntry] = deque(maxlen=lines)
        self._next = 0
        self._guard = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, as the formatter has it."""
        try:
            message = self.format(record)[:MAX_MESSAGE]
        except Exception:
            self.handleError(record)
            return
        with self._guard:
            self._kept.append(OwnLogEntry(self._next, record.created, record.levelname, message))
            self._next += 1
            for loop, event in self._waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)

    @property
    def following(self) -> int:
        """The number that the next line will have."""
        return self._next

    def since(self, number: int, limit: int | None = None) -> list[OwnLogEntry]:
        """The lines from ``number`` on, as far as they are kept."""
        with self._guard:
            oldest = self._next - len(self._kept)
            start = max(0, number - oldest)
            end = len(self._kept) if limit is None else min(len(self._kept), start + limit)
            return [self._kept[place] for place in range(start, end)]

    async def wait(self, number: int, seconds: float) -> None:
        """Until there is a line of that number, ``seconds`` at most."""
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        with self._guard:
            if self._next > number:
                return
            self._waiting.add(waiter)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        finally:
            with self._guard:
                self._waiting.discard(waiter)


#: Of this process.
OWN_LOG = OwnLog()
