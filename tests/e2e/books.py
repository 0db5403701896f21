"""The books that the scripts of a test kept, compared row by row with what the master has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

#: (group, step, value)
Row = tuple[str, int, float]


@dataclass(slots=True)
class Book:
    """What one container of a run of a trial wrote down."""

    trial_id: int
    run_id: int
    #: The first letters of its name.
    container: str
    starts: list[dict[str, int]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    #: Lines of output.
    printed: int = 0
    #: Its last line says that it ended by itself.
    ended: bool = False


def read(directory: Path) -> list[Book]:
    """All books, by trial, run and container."""
    books = []
    for path in sorted(directory.glob("*.jsonl")):
        trial_id, run_id, container = path.stem.split("-")
        book = Book(int(trial_id), int(run_id), container)
        for line in path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                # Of a process that is writing, or was killed while it was.
                break
            told = json.loads(line)
            if told["did"] == "start":
                book.starts.append(told)
            elif told["did"] == "report":
                book.rows.append((told["group"], told["step"], told["value"]))
            elif told["did"] == "printed":
                book.printed = told["lines"]
            else:
                book.ended = True
        books.append(book)
    return books


def compare(books: Iterable[Book], stored: dict[tuple[int, int], list[Row]]) -> list[str]:
    """What differs, in words; empty when every report of every run is stored exactly once.

    A process that was killed may have reported one row more than it wrote down.
    """
    wrong = []
    for book in books:
        there = stored.get((book.trial_id, book.run_id), [])
        counted: dict[Row, int] = defaultdict(int)
        for row in there:
            counted[row] += 1
        name = f"trial {book.trial_id} run {book.run_id}"
        wrong += [f"{name}: {row} is stored {n} times" for row, n in counted.items() if n != 1]
        wrong += [f"{name}: {row} is not stored" for row in book.rows if row not in counted]
        extra = [row for row in counted if row not in set(book.rows)]
        if len(extra) > (0 if book.ended else 1):
            wrong.append(f"{name}: stored, but never reported: {extra[:3]}")
    return wrong
