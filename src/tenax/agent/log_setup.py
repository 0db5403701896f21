"""What the agent says about itself: structlog on standard error, for people or as JSON lines; never values of
variables."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TextIO, cast

import structlog

from tenax.display.terminal import visible


def set_up(level_name: str, *, json_lines: bool = False) -> None:
    """Configure structlog for this process."""
    level = logging.getLevelNamesMapping()[level_name.upper()]
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if json_lines:
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        processors += [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        processors.append(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain))
        processors.append(_shown)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, UnfailingStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )


class UnfailingStream:
    """A stream whose disk may be full, or whose reader gone: what is said of work never stops the work."""

    def __init__(self, below: TextIO) -> None:
        self._below = below

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._below.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._below.flush()


def _shown(_logger: object, _method: str, line: object) -> str:
    """A line as a terminal may show it: what an image or a program says of itself is in it."""
    return visible(str(line), colors=sys.stderr.isatty())
