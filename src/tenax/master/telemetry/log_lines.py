"""Output as lines: split, progress collapsed, rank and level read from the text. No database, no clock.

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
#: By number; 0: none in the text.
LEVELS = ("UNSPECIFIED", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_NUMBER = {name: number for number, name in enumerate(LEVELS)}
_HEAD = re.compile(r"(?: ?\[rank=(\d{1,9})\] ?)?(?:(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL):(?: |$))?")
_GAP = re.compile(r"\[\d+ bytes of output are missing here: they were dropped\]")
_ANY_HEAD = re.compile(r"^(?: ?\[rank=|(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL):)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who spoke. Empty where it is not known."""

    allocation_id: str = ""
    container_id: str = ""
    agent_id: str = ""
    #: ``task``, ``master`` or ``agent``.
    source: str = "task"
    stdtype: str = ""
    #: Whose line it is, where that is another task than the one whose log it is: of a trial that was continued.
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line, without its end."""

    at_us: int
    text: str
    level: int = 0
    rank: int = NO_RANK
    #: Its place among the origins that it is kept with.
    origin: int = 0


def gap_line(missing: int) -> str:
    """What stands for so many bytes of output that are gone for good."""
    return f"[{missing} bytes of output are missing here: they were dropped]"


def is_gap(text: str) -> bool:
    """Whether a line is such a one, and no word of the task's."""
    return _GAP.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Texts:
    """Lines as columns; all have one length."""

    texts: list[str]
    ranks: list[int]
    levels: list[int]


def lines_of(raw: bytes, carry: bytes, *, final: bool) -> tuple[Texts, bytes]:
    """The lines that end in ``raw``, which goes on after ``carry``; and what is carried over."""
    data = carry + raw
    end = data.rfind(b"\n")
    ended, rest = (data[:end], data[end + 1 :]) if end >= 0 else (None, data)
    texts = [] if ended is None else _split(ended)
    rest = _collapsed(rest)
    if rest and (final or len(rest) > MAX_LINE):
        texts += _cut(rest)
        rest = b""
    return _with_heads(texts), rest


def _split(ended: bytes) -> list[str]:
    texts = ended.decode("utf-8", "replace").split("\n")
    if b"\r" not in ended and b"\x00" not in ended and max(map(len, texts)) <= MAX_LINE // 4:
        return texts
    return [text for piece in ended.split(b"\n") for text in _cut(piece)]


def _with_heads(texts: list[str]) -> Texts:
    """Most output names neither rank nor level: one check of all of it is enough."""
    if not _ANY_HEAD.search("\n".join(texts)):
        return Texts(texts, [NO_RANK] * len(texts), [0] * len(texts))
    heads = [read_head(text) for text in texts]
    return Texts([head[2] for head in heads], [head[0] for head in heads], [head[1] for head in heads])


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
    """Without what no column of the database takes; lines of output are packed, and keep it."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def _cut(piece: bytes) -> Iterator[str]:
    piece = _collapsed(piece).rstrip(b"\r")
    for start in range(0, max(1, len(piece)), MAX_LINE):
        yield piece[start : start + MAX_LINE].decode("utf-8", "replace")


def _collapsed(piece: bytes) -> bytes:
    """What the last carriage return that was followed by something has left."""
    if b"\r" not in piece:
        return piece
    body = piece.rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :] + piece[len(body) :][:1]
