"""Reads the output that a supervisor keeps in segment files, and drops what is not needed any more.

A segment is named ``<stream>-<raw offset of its first byte, 20 digits>`` and is only ever appended to; what lies
between the end of one and the start of the next was dropped. Any number of readers; files may vanish between two calls.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

#: Beyond any moment of a mark.
_LATEST = 2**64


def read(folder: Path, stream: str, offset: int, limit: int) -> tuple[int, bytes]:
    """Up to ``limit`` bytes from ``offset`` on, from one segment; (offset of the first byte, bytes), empty at the
    end."""
    for start, path in _from(folder, stream, offset):
        first = max(start, offset)
        try:
            with path.open("rb") as file:
                file.seek(first - start)
                data = file.read(limit)
        except FileNotFoundError:
            continue
        if data:
            return first, data
    return offset, b""


def written(folder: Path, stream: str, offset: int) -> tuple[float, int | None]:
    """(when the byte at ``offset`` was written, on the monotonic clock; the first byte that came later by more than a
    second and a hundredth of the age). inf: not known, or not later than what follows."""
    try:
        data = (folder.parent / f"times-{stream}").read_bytes()
    except OSError:
        return math.inf, None
    numbers = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) - len(data) % 16, 8)]
    marks = sorted(zip(numbers[::2], numbers[1::2]))
    here = bisect.bisect_right(marks, (offset, _LATEST)) - 1
    if here < 0:
        # Older than what is remembered: as old as the oldest that is.
        return (marks[0][1] / 1e6, marks[0][0]) if marks else (math.inf, None)
    at = marks[here][1]
    apart = max(1_000_000, (marks[-1][1] - at) // 100)
    return at / 1e6, next((start for start, then in marks[here + 1 :] if then - at > apart), None)


def trim(folder: Path, stream: str, offset: int) -> None:
    """Remove the segments that end at or before ``offset``. The newest stays: it may still be written to."""
    segments = list(_all(folder, stream))
    for (_, path), (next_start, _) in pairwise(segments):
        if next_start <= offset:
            path.unlink(missing_ok=True)


def _from(folder: Path, stream: str, offset: int) -> Iterator[tuple[int, Path]]:
    segments = list(_all(folder, stream))
    first = max((number for number, (start, _) in enumerate(segments) if start <= offset), default=0)
    yield from segments[first:]


def _all(folder: Path, stream: str) -> Iterator[tuple[int, Path]]:
    try:
        names = sorted(path for path in folder.iterdir() if path.name.startswith(stream + "-"))
    except FileNotFoundError:
        return
    for path in names:
        yield int(path.name.rpartition("-")[2]), path
