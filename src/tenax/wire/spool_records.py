"""Segments: the form of a stream that a training loop writes in microseconds. Standard library only, Python 3.9.

A segment is ``$DET_RUN_DIR/spool/<stream>.records``, and says what a file of lines says (`tenax.wire.spool`). Its room
is allocated ahead and mapped, so what is not written yet is zeros, up to the end. It begins with :data:`MAGIC`; then
come records, each at a multiple of 8 bytes::

    mark   u64  in its lower half the length of what follows it, in its upper one the CRC-32 of that; written last
    n      u64  the number of the line
    at     f64  when it was made, in seconds since 1970
    body        `TEXT`, the line's ``"kind":...,"body":...``; or `VALUES`, what `values_packer` makes

A record counts once its mark is there and its checksum is right. Where none stands the next one is looked for, as
behind a page that a power cut took, in the next few MiB: for each number that is missing comes a line that no master
takes, so that the others keep theirs. Readers trust nothing of it: a task may write there what it likes, and what a
look takes, in memory and in time, has a bound whatever stands there. Numbers are little-endian.

Agents that read segments say so in `tenax.wire.task_names.SPOOL_FORMATS`; without it a task writes lines.
"""

from __future__ import annotations

import struct
import zlib
from typing import Optional

from tenax.wire.spool_names import BATCH_BYTES, MAX_LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: The last digit changes when a reader of before would take a segment for something else.
MAGIC = b"TNXSPL1\n"
#: The first byte of a body.
TEXT, VALUES = b'"', b"\x01"

#: Of a record: its number and its time.
HEAD = struct.Struct("<Qd")
#: Of `VALUES`: that byte, how many there are, bytes of their names, steps completed.
_VALUES = struct.Struct("<BxHIq")
_MARK = struct.Struct("<Q")
_SHORTEST = HEAD.size + 1
#: Bytes that the longest record takes, and the shortest.
_MAX_RECORD, _MIN_RECORD = 8 + MAX_LINE_BYTES, (8 + _SHORTEST + 7) & -8
#: In so many bytes behind damage another record is looked for, and so many are checked of what looks like one.
_SEARCH_BYTES = 4 * 1024 * 1024
_CHECK_BYTES = _MAX_RECORD + _SEARCH_BYTES
_ZEROS = bytes(64)
#: Bytes that are read at once, and between two pauses.
_PIECE = 16 * 1024
_CODES = {"d": 8, "q": 8}


class SegmentUnknown(Exception):
    """A file of segments that another release has written."""


class SpoolLines:
    """Lines of a stream, as they are sent; ``ends``: the byte of its file after each."""

    __slots__ = ("damaged", "data", "ends", "first")

    def __init__(self, first: int, data: bytes, ends: list[int], damaged: Sequence[int] = ()) -> None:
        #: The number of the first.
        self.first = first
        self.data = data
        self.ends = ends
        #: Which of them, from 0, stand for records that are damaged.
        self.damaged = damaged


def values_packer(names: bytes, codes: str) -> Callable[..., bytes]:
    """What packs values of one kind: called with ``1, count, len(names), steps, names + codes, *values``.

    ``names``: the group and the names, as JSON, zeros between them; ``codes``: "d" of a float, "q" of an int, for each.
    """
    return struct.Struct(f"<BxHIq{len(names) + len(codes)}s{codes}").pack


def text_of_values(body: bytes) -> str:
    """The body of a line, JSON, of `VALUES`. Raises ValueError, struct.error."""
    _, count, length, steps = _VALUES.unpack_from(body)
    start = _VALUES.size + length
    codes = body[start : start + count].decode("ascii")
    group, *names = body[_VALUES.size : start].decode("ascii").split("\0")
    values = struct.unpack_from(f"<{codes}", body, start + count)
    if len(names) != len(values) or not set(codes) <= _CODES.keys():
        raise ValueError("names and values do not agree")
    pairs = ",".join(
        [
            f"{name}:{value!r}" if value - value == 0 else f'{name}:"{_special(value)}"'
            for name, value in zip(names, values)
        ]
    )
    return f'{{"group":{group},"stepsCompleted":{steps},"metrics":{{{pairs}}},"batchMetrics":null,"reportTime":null}}'


def read_lines(
    read: Callable[[int, int], bytes], n: int, offset: int, end: int, pause: Optional[Callable[[], None]] = None
) -> SpoolLines:
    """The lines after the ``n``-th, which ends at ``offset``, of one batch or one line. Raises SegmentUnknown, OSError.

    ``read(offset, length)`` gives bytes of the segment; what stands behind ``end`` is not looked at. ``pause`` is
    called after each few dozen lines.
    """
    if offset < len(MAGIC):
        if end <= offset:
            return SpoolLines(n + 1, b"", [])
        if read(0, len(MAGIC)) != MAGIC:
            raise SegmentUnknown("it was written by another release of Tenax")
        offset = len(MAGIC)
    lines: list[bytes] = []
    ends: list[int] = []
    damaged: list[int] = []
    size = 0
    length = _PIECE
    while offset < end:
        piece = read(offset, min(length, end - offset))
        before = len(ends)
        for line, after, is_whole in _lines(piece, n, offset + len(piece) >= end or len(piece) < length):
            if lines and size + len(line) > BATCH_BYTES:
                return SpoolLines(n + 1 - len(lines), b"".join(lines), ends, damaged)
            n, size = n + 1, size + len(line)
            if not is_whole:
                damaged.append(len(lines))
            lines.append(line)
            ends.append(offset + after)
        if len(ends) > before:
            offset, length = ends[-1], _PIECE
        elif offset + len(piece) >= end or len(piece) < length or length >= _MAX_RECORD:
            break
        else:
            length = min(2 * length, _MAX_RECORD)
        if pause is not None:
            pause()
    return SpoolLines(n + 1 - len(lines), b"".join(lines), ends, damaged)


def _lines(piece: bytes, n: int, is_rest: bool) -> Iterator[tuple[bytes, int, bool]]:
    """Lines after the ``n``-th in a piece of a segment, the byte of it after each, and whether a record says it.

    ``is_rest``: there is nothing behind it.
    """
    at = 0
    while True:
        begun = at
        record = _record(piece, at, n + 1, n + 1)
        if record is None:
            if not is_rest and _leads_out(piece, at):
                return
            at, record = _next_record(piece, at, n)
            if record is None:
                return
        number, body, after = record
        for missing in range(n + 1, number):
            # Whoever goes on behind one of them has to find the record again: it stands behind more than one batch.
            yield b'{"n":%d,"kind":"damaged on its disk","at":0,"body":{}}\n' % missing, begun, False
        line = _line(number, piece[at + 8 : at + 8 + HEAD.size], body)
        n, at = number, after
        yield line or b'{"n":%d,"kind":"unreadable","at":0,"body":{}}\n' % n, at, bool(line)


def _record(piece: bytes, at: int, lowest: int, highest: int) -> Optional[tuple[int, bytes, int]]:
    """The record at a place, if a whole one stands there whose number is one of those: number, body, the byte after."""
    length = _length(piece, at)
    end = at + 8 + length
    if not length or end > len(piece):
        return None
    number = HEAD.unpack_from(piece, at + 8)[0]
    if not lowest <= number <= highest:
        return None
    if zlib.crc32(memoryview(piece)[at + 8 : end]) != _MARK.unpack_from(piece, at)[0] >> 32:
        return None
    return number, piece[at + 8 + HEAD.size : end], (end + 7) & -8


def _length(piece: bytes, at: int) -> int:
    """What the mark of a place says of what follows it; 0: it is none of a record."""
    length = int(_MARK.unpack_from(piece, at)[0]) & 0xFFFFFFFF if at + 8 <= len(piece) else 0
    return length if _SHORTEST <= length <= MAX_LINE_BYTES else 0


def _leads_out(piece: bytes, at: int) -> bool:
    """Whether a record may begin here that ends behind the piece."""
    return at + 8 > len(piece) or at + 8 + _length(piece, at) > len(piece)


def _next_record(piece: bytes, at: int, n: int) -> tuple[int, Optional[tuple[int, bytes, int]]]:
    """The first whole record behind a place, and where it stands, of a number above ``n``."""
    begun, checked = at, 0
    end = min(len(piece) - 8 - _SHORTEST, at + _SEARCH_BYTES)
    while at <= end and checked < _CHECK_BYTES:
        at += 8
        while piece.startswith(_ZEROS, at):
            # There are many where nothing is written yet.
            at += len(_ZEROS)
        highest = n + 1 + (at - begun) // _MIN_RECORD
        record = _record(piece, at, n + 1, highest)
        if record is not None:
            return at, record
        checked += _length(piece, at)
    return at, None


def _line(n: int, head: bytes, body: bytes) -> bytes:
    """Empty for a body of another release, and for what would be no line, or several: the numbers of all must hold."""
    at = HEAD.unpack(head)[1]
    line = b""
    if body[:1] == TEXT:
        line = b'{"n":%d,"at":%.6f,%b}\n' % (n, at, body)
    elif body[:1] == VALUES:
        try:
            line = f'{{"n":{n},"kind":"metrics","at":{at:.6f},"body":{text_of_values(body)}}}\n'.encode("ascii")
        except (ValueError, struct.error):
            return b""
    return line if at - at == 0 and b"\r" not in line and line.find(b"\n") == len(line) - 1 else b""


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
