"""Chunks of lines as bytes: the text compressed as one, what is known about each line in columns beside it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenax.jsonvalue import JsonObject
from tenax.master.ingest.log_lines import Line, Origin

_LEVEL = 1
_COLUMNS = (("at_us", "<i8"), ("rank", "<i4"), ("level", "u1"), ("origin", "<u2"))
#: The most origins in one chunk.
MAX_ORIGINS = 65535


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines of one task, packed; without their place in the task."""

    lines: int
    first_at_us: int
    last_at_us: int
    #: One bit per level that occurs.
    levels: int
    origins: tuple[Origin, ...]
    meta: bytes
    body: bytes


def pack(lines: Sequence[Line], origins: Sequence[Origin]) -> Chunk:
    """At least one line; no text holds a line feed."""
    body = "\n".join(line.text for line in lines).encode("utf-8", "replace")
    columns = [np.array([getattr(line, name) for line in lines], dtype=kind).tobytes() for name, kind in _COLUMNS]
    levels = 0
    for level in {line.level for line in lines}:
        levels |= 1 << level
    times = [line.at_us for line in lines]
    return Chunk(
        len(lines),
        min(times),
        max(times),
        levels,
        tuple(origins),
        zlib.compress(b"".join(columns), _LEVEL),
        zlib.compress(body, _LEVEL),
    )


def unpack(chunk: Chunk) -> list[Line]:
    """What `pack` packed."""
    at_us, rank, level, origin = columns_of(chunk)
    texts = zlib.decompress(chunk.body).decode().split("\n")
    return [Line(*fields) for fields in zip(at_us, texts, level, rank, origin)]


def columns_of(chunk: Chunk) -> tuple[list[int], list[int], list[int], list[int]]:
    """Times (microseconds since 1970), ranks, levels, numbers of origins; one each per line."""
    data, start, found = zlib.decompress(chunk.meta), 0, []
    for _, kind in _COLUMNS:
        dtype = np.dtype(kind)
        column: list[int] = np.frombuffer(data, dtype, count=chunk.lines, offset=start).tolist()
        found.append(column)
        start += dtype.itemsize * chunk.lines
    at_us, rank, level, origin = found
    return at_us, rank, level, origin


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Neighbouring chunks as one."""
    numbers: dict[Origin, int] = {}
    lines: list[Line] = []
    for chunk in chunks:
        places = [numbers.setdefault(origin, len(numbers)) for origin in chunk.origins]
        lines += [Line(line.at_us, line.text, line.level, line.rank, places[line.origin]) for line in unpack(chunk)]
    return pack(lines, list(numbers))


def origins_to_json(origins: Sequence[Origin]) -> list[JsonObject]:
    """As stored."""
    return [{name: value for name in Origin.__slots__ if (value := getattr(origin, name))} for origin in origins]


def origins_from_json(rows: Sequence[dict[str, str]]) -> tuple[Origin, ...]:
    """What `origins_to_json` gave."""
    return tuple(Origin(**{"source": "", **row}) for row in rows)
