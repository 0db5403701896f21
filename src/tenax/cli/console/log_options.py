"""The options of commands that print a log, and what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Tuple, TypeVar

import click

if TYPE_CHECKING:
    from tenax.client.trials import LogFilter

Function = TypeVar("Function", bound=Callable[..., object])

_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_options(function: Function) -> Function:
    """Which lines to print: a filter by every field that a line has (`log_filter` reads them)."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


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


def log_filter(
    search: str,
    regex: bool,
    level: Optional[str],
    ranks: Tuple[int, ...],
    agents: Tuple[str, ...],
    containers: Tuple[str, ...],
    sources: Tuple[str, ...],
    streams: Tuple[str, ...],
    after: str,
    before: str,
) -> LogFilter:
    """What the options of `log_options` ask for."""
    from tenax.client.trials import LogFilter

    return LogFilter(
        search=search,
        regex=regex,
        level=level or "",
        agents=agents,
        containers=containers,
        ranks=ranks,
        sources=sources,
        streams=streams,
        after=after,
        before=before,
    )
