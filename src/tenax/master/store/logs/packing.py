"""Chunks of lines as bytes: the text compressed as one, what is known about each line in columns beside it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenax.jsonvalue import JsonObject
from tenax.master.telemetry.log_lines import Origin, OutputLine, Texts

#: A joined chunk has so many lines, and bytes as stored, at most.
JOINED_LINES = 8192
JOINED_BYTES = 256 * 1024

_LEVEL = 1
_COLUMNS = (("at_us", "<i8"), ("rank", "<i4"), ("level", "u1"), ("origin", "<u2"))


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


def pack(lines: Sequence[OutputLine], origins: Sequence[Origin]) -> Chunk:
    """At least one line; no text holds a line feed."""
    return _pack(
        [line.text for line in lines],
        {name: [getattr(line, name) for line in lines] for name, _ in _COLUMNS},
        origins,
    )


def pack_output(texts: Texts, at_us: int, origin: Origin) -> Chunk:
    """At least one line, all of one moment and one speaker."""
    count = len(texts.texts)
    columns = {"at_us": [at_us] * count, "rank": texts.ranks, "level": texts.levels, "origin": [0] * count}
    return _pack(texts.texts, columns, [origin])


def _pack(texts: list[str], columns: dict[str, list[int]], origins: Sequence[Origin]) -> Chunk:
    meta = b"".join(np.array(columns[name], dtype=kind).tobytes() for name, kind in _COLUMNS)
    levels = 0
    for level in set(columns["level"]):
        levels |= 1 << level
    return Chunk(
        len(texts),
        min(columns["at_us"]),
        max(columns["at_us"]),
        levels,
        tuple(origins),
        zlib.compress(meta, _LEVEL),
        zlib.compress("\n".join(texts).encode("utf-8", "replace"), _LEVEL),
    )


def unpack(chunk: Chunk) -> list[OutputLine]:
    """What `pack` packed."""
    columns = columns_of(chunk)
    texts = zlib.decompress(chunk.body).decode().split("\n")
    numbers = (columns.level.tolist(), columns.rank.tolist(), columns.origin.tolist())
    return [OutputLine(*fields) for fields in zip(columns.at_us.tolist(), texts, *numbers)]


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of each line beside its text. All have one length."""

    #: Microseconds since 1970.
    at_us: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int32]
    level: npt.NDArray[np.uint8]
    #: Place among the chunk's origins.
    origin: npt.NDArray[np.uint16]


def columns_of(chunk: Chunk) -> Columns:
    """The columns of a chunk."""
    data, start = zlib.decompress(chunk.meta), 0
    arrays = {}
    for name, kind in _COLUMNS:
        dtype = np.dtype(kind)
        arrays[name] = np.frombuffer(data, dtype, count=chunk.lines, offset=start)
        start += dtype.itemsize * chunk.lines
    return Columns(arrays["at_us"], arrays["rank"], arrays["level"], arrays["origin"])


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Neighbouring chunks as one."""
    numbers: dict[Origin, int] = {}
    lines: list[OutputLine] = []
    for chunk in chunks:
        places = [numbers.setdefault(origin, len(numbers)) for origin in chunk.origins]
        lines += [
            OutputLine(line.at_us, line.text, line.level, line.rank, places[line.origin]) for line in unpack(chunk)
        ]
    return pack(lines, list(numbers))


def origins_to_json(origins: Sequence[Origin]) -> list[JsonObject]:
    """As stored."""
    return [{name: value for name in Origin.__slots__ if (value := getattr(origin, name))} for origin in origins]


def origins_from_json(rows: Sequence[dict[str, str]]) -> tuple[Origin, ...]:
    """What `origins_to_json` gave."""
    return tuple(Origin(**{"source": "", **row}) for row in rows)
