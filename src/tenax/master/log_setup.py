"""What the master says about itself: structlog on standard error, for people or as JSON lines.

Tracebacks never show the values of variables: passwords and tokens are among them.
Libraries' records go the same way; uvicorn's access log is off: it would show queries, and the edge has its own.
"""

from __future__ import annotations

import logging
import sys

import structlog

from tenax.config.master import LogSettings


def set_up(settings: LogSettings) -> None:
    """Configure structlog and the standard library's logging for this process."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    color = sys.stderr.isatty() if settings.color is None else settings.color
    before: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    after: list[structlog.typing.Processor]
    if settings.json_lines:
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        after = [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        after = [structlog.dev.ConsoleRenderer(colors=color, exception_formatter=plain)]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("uvicorn.access", "asyncio", "websockets"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    # A database that is away is told once per attempt, by whoever needs it.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
