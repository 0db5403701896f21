"""Output as lines: split, progress collapsed, rank and level told from the text. No database, no clock.

Rules:
- A line ends with a line feed; what comes after the last one is carried over, and is a line once the stream has ended.
- A carriage return writes over the line: only its last state counts. Bytes that are not UTF-8 are replaced.
- ``[rank=N] `` at the beginning gives the rank, ``LEVEL:`` after it the level; both are taken off the text.
- A line longer than `MAX_LINE` is cut into several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 64 * 1024
NO_RANK = -1
#: By number; 0: not told.
LEVELS = ("UNSPECIFIED", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_NUMBER = {name: number for number, name in enumerate(LEVELS)}
_HEAD = re.compile(r"(?: ?\[rank=(\d{1,9})\] ?)?(?:(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL):(?: |$))?")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who spoke. Empty where it is not known."""

    allocation_id: str = ""
    container_id: str = ""
    agent_id: str = ""
    #: ``task``, ``master`` or ``agent``.
    source: str = "task"
    stdtype: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its end."""

    at_us: int
    text: str
    level: int = 0
    rank: int = NO_RANK
    #: Its place among the origins that it is kept with.
    origin: int = 0


def lines_of(raw: bytes, carry: bytes, at_us: int, *, final: bool) -> tuple[list[Line], bytes]:
    """The lines that end in ``raw``, which goes on after ``carry``; and what is carried over."""
    *ended, rest = (carry + raw).split(b"\n")
    lines = [line for piece in ended for line in _lines(piece, at_us)]
    rest = _collapsed(rest)
    if rest and (final or len(rest) > MAX_LINE):
        lines += _lines(rest, at_us)
        rest = b""
    return lines, rest


def read_head(text: str) -> tuple[int, int, str]:
    """(rank, level, what is left) of a line."""
    match = _HEAD.match(text)
    if match is None or not match.end():
        return NO_RANK, 0, text
    rank, level = match.groups()
    return NO_RANK if rank is None else int(rank), _NUMBER[level] if level else 0, text[match.end() :]


def level_number(name: str | None) -> int:
    """Of ``LOG_LEVEL_INFO``, ``INFO`` or ``info``; 0 for what is none."""
    return _NUMBER.get((name or "").upper().removeprefix("LOG_LEVEL_"), 0)


def clean(text: str) -> str:
    """Without what JSON or a terminal could choke on."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def _lines(piece: bytes, at_us: int) -> Iterator[Line]:
    piece = _collapsed(piece).rstrip(b"\r")
    for start in range(0, max(1, len(piece)), MAX_LINE):
        rank, level, text = read_head(clean(piece[start : start + MAX_LINE].decode("utf-8", "replace")))
        yield Line(at_us, text, level, rank)


def _collapsed(piece: bytes) -> bytes:
    """What the last carriage return that was followed by something has left."""
    if b"\r" not in piece:
        return piece
    body = piece.rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :] + piece[len(body) :][:1]
