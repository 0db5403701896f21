"""The options of commands that print a log, and what they ask for."""

from __future__ import annotations

import functools
from typing import Callable

import click

_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_options(command: Callable[..., int]) -> Callable[..., int]:
    """Which lines to print: a filter by every field that a line has, which the command gets as ``where``."""

    @functools.wraps(command)
    def with_filter(*arguments: object, **options: object) -> int:
        from tenax.client.trials import LogFilter

        given = {name: value for name in _FIELDS if (value := options.pop(name))}
        return command(*arguments, where=LogFilter(**given), **options)  # type: ignore[arg-type]

    for option in reversed(_OPTIONS):
        with_filter = option(with_filter)
    return with_filter


#: Of a `LogFilter`, those that there is an option for.
_FIELDS = ("search", "regex", "level", "ranks", "agents", "containers", "sources", "streams", "after", "before")
_OPTIONS = (
    click.option("--search", default="", metavar="TEXT", help="Only lines that contain this text, ignoring case."),
    click.option("--regex", is_flag=True, help="TEXT is a regular expression."),
    click.option(
        "--level", type=click.Choice(_LEVELS, case_sensitive=False), help="Only lines of this level or above."
    ),
    click.option("--rank", "--rank-id", "ranks", type=int, multiple=True, metavar="N", help="Only lines of this rank."),
    click.option(
        "--agent", "--agent-id", "agents", multiple=True, metavar="ID", help="Only lines from this agent's machine."
    ),
    click.option(
        "--container",
        "--container-id",
        "containers",
        multiple=True,
        metavar="ID",
        help="Only lines from this container.",
    ),
    click.option("--source", "sources", multiple=True, metavar="NAME", help="Only lines from task, master or agent."),
    click.option(
        "--stream",
        "--stdtype",
        "streams",
        multiple=True,
        metavar="NAME",
        help="Only lines written to stdout or stderr.",
    ),
    click.option("--after", "--timestamp-after", default="", metavar="TIME", help="Only later lines (RFC 3339)."),
    click.option("--before", "--timestamp-before", default="", metavar="TIME", help="Only earlier lines (RFC 3339)."),
)
