"""What the master says about itself: structlog on standard error, for people or as JSON lines.

Tracebacks never show the values of variables: passwords and tokens are among them.
Libraries' records go the same way; uvicorn's access log is off: it would show queries, and the edge has its own.
Level and colour can be changed while the process runs; what was said last is kept (`tenax.master.own_log`).
"""

from __future__ import annotations

import logging
import sys
import traceback
from dataclasses import dataclass

import structlog

from tenax.config.master import LogSettings
from tenax.master.own_log import OWN_LOG

_NOISY = ("uvicorn.access", "asyncio", "websockets")
#: What a line of `OWN_LOG` says beside its text.
_BESIDE = ("timestamp", "level", "logger", "exc_info", "stack_info", "event")


@dataclass(slots=True)
class Now:
    """How it is set at the moment."""

    #: debug, info, warning, error, critical.
    level: str = "info"
    color: bool = False
    json_lines: bool = False


#: Of this process; changed by `set_up` and `change` alone.
NOW = Now()


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
    change(settings.level, sys.stderr.isatty() if settings.color is None else settings.color, settings.json_lines)
    # A database that is away is told once per attempt, by whoever needs it.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)


def change(level: str, color: bool, json_lines: bool) -> None:
    """Say more or less from now on, with or without colour, or as JSON."""
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
        after = [structlog.dev.ConsoleRenderer(colors=color, exception_formatter=plain)]
    for handler in root.handlers:
        if handler is not OWN_LOG:
            handler.setFormatter(_formatter(*after))
    NOW.level, NOW.color, NOW.json_lines = level, color, json_lines


def _before() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatter(*after: structlog.typing.Processor) -> structlog.stdlib.ProcessorFormatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_before(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
    )


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
