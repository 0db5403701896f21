"""Reads the output that a supervisor keeps in segment files, and drops what is not needed any more.

A segment is named ``<stream>-<raw offset of its first byte, 20 digits>`` and is only ever appended to; what lies
between the end of one and the start of the next was dropped. Any number of readers; files may vanish between two calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path


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
