"""What the last traceback in some lines of output says. Pure; standard library only, Python 3.9.

A line that one of several ranks wrote begins with ``[rankN]: ``, as PyTorch does it. What Python says of
exceptions that it ignores, as while it ends, is no reason of anything. A script that is no Python has no traceback: the
place stands alone before the error.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

BEGINNING = "Traceback (most recent call last):"
#: Stands before the traceback of an exception that goes nowhere.
_IGNORED = "Exception ignored "
#: The line that names an exception: ``package.SomeError: text``.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")
_RANK = re.compile(r"\[rank(\d+)\]: ?")
#: Of a script that is no Python; its place is at most so many lines before it.
_SYNTAX = re.compile(r"(SyntaxError|IndentationError|TabError)(:|$)")
_ABOVE = 4
_FRAME = re.compile(r'\s*File "(.+)", line (\d+)')
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MAX_LINE = 300


def exception_line(lines: Sequence[str]) -> Optional[str]:
    """The line that names the exception of the last traceback; None where there is none."""
    at = exception_at(lines)
    return None if at is None else cut(of_rank(lines[at])[1])


def exception_at(lines: Sequence[str]) -> Optional[int]:
    """The place of the line that names the exception of the last traceback; None where there is none."""
    start = last_traceback(lines)
    if start is None:
        return None
    rank, _ = of_rank(lines[start])
    for at in range(start + 1, len(lines)):
        other, line = of_rank(lines[at])
        if other == rank and line and not line[0].isspace() and _EXCEPTION.match(line):
            return at
    return None


def last_frame(lines: Sequence[str]) -> str:
    """Where the last traceback ends: ``code/train.py, line 12``; empty: nowhere.

    The folders before the last one differ from run to run. Ranks that do not say which they are may fail at once, and
    their lines are mixed then: of an exception that comes several times, the frame before the last counts.
    """
    start = last_traceback(lines)
    if start is None:
        return ""
    rank, _ = of_rank(lines[start])
    raised = (exception_line(lines) or "").partition(":")[0]
    frame, ended = "", ""
    for other, line in map(of_rank, lines[start:]):
        match = _FRAME.match(line) if other == rank else None
        if match:
            frame = f"{'/'.join(match[1].split('/')[-2:])}, line {match[2]}"
        elif other == rank and line and not line[0].isspace():
            if ended and line.partition(":")[0] != raised:
                continue
            ended = frame or ended
    return ended or frame


def last_traceback(lines: Sequence[str]) -> Optional[int]:
    """The number of the line that it begins with."""
    for at in range(len(lines) - 1, -1, -1):
        rank, line = of_rank(lines[at])
        if line.strip() == BEGINNING and not _before(lines, at, rank).startswith(_IGNORED):
            return at
        if _SYNTAX.match(line):
            place = _place_above(lines, at, rank)
            if place is not None:
                return place
    return None


def _place_above(lines: Sequence[str], at: int, rank: str) -> Optional[int]:
    """Where the place of a syntax error stands, if no traceback leads to it."""
    above = [number for number in range(at - 1, -1, -1) if of_rank(lines[number])[0] == rank][: _ABOVE + 1]
    place = next((number for number in above[:_ABOVE] if _FRAME.match(of_rank(lines[number])[1])), None)
    if place is None:
        return None
    before = _before(lines, place, rank)
    return None if before[:1].isspace() or before.strip() == BEGINNING else place


def _before(lines: Sequence[str], at: int, rank: str) -> str:
    """The line that the same rank wrote before that one; empty: none."""
    earlier = (of_rank(line) for line in reversed(lines[:at]))
    return next((line for other, line in earlier if other == rank), "")


def of_rank(line: str) -> tuple[str, str]:
    """The rank, empty for none, and the rest of a line."""
    line = _COLOURS.sub("", line)
    match = _RANK.match(line)
    return (match[1], line[match.end() :]) if match else ("", line)


def cut(line: str) -> str:
    """No longer than a reason may be."""
    return line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "..."
