"""What stands in the files of spools, of either form."""

from __future__ import annotations

import json
from pathlib import Path

from tenax.wire.spool_names import LINES_SUFFIX, SEGMENT_SUFFIX
from tenax.wire.spool_records import read_lines

Record = dict[str, object]


def segment_lines(path: Path) -> list[bytes]:
    """All lines of a segment, those that stand for damaged records too."""
    lines: list[bytes] = []
    content = path.read_bytes()
    n = offset = 0
    while (batch := read_lines(lambda at, length: content[at : at + length], n, offset, len(content))).ends:
        lines += batch.data.splitlines()
        n, offset = batch.first + len(batch.ends) - 1, batch.ends[-1]
    return lines


def records_of(path: str | Path) -> list[Record]:
    """What a stream says."""
    path = Path(path)
    lines = segment_lines(path) if path.suffix == SEGMENT_SUFFIX else path.read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def streams_in(directory: Path) -> list[list[Record]]:
    """What each stream of a folder says, by name."""
    return [records_of(path) for path in sorted(directory.iterdir()) if path.suffix in (LINES_SUFFIX, SEGMENT_SUFFIX)]
