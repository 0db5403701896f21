"""The books that ``examples/noop`` keeps: one file per trial, a line per report and event of all its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast


class Line(TypedDict, total=False):
    """A report (``group``, ``metrics``), or an ``event``: start (after ``step``), preempted or done (at ``step``)."""

    trial: int
    run: int
    pid: int
    step: int
    event: str
    group: str
    metrics: dict[str, float]


def read(directory: Path, trial_id: int) -> list[Line]:
    """The book of one trial."""
    text = (directory / f"trial-{trial_id}.jsonl").read_text()
    # The last line of a running trial may not be whole yet.
    return [cast(Line, json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def books(directory: Path) -> dict[int, list[Line]]:
    """All books, by trial."""
    numbers = sorted(int(path.stem.removeprefix("trial-")) for path in directory.glob("trial-*.jsonl"))
    return {number: read(directory, number) for number in numbers}


def reports(directory: Path) -> int:
    """How many reports were made so far, by all trials together."""
    return sum("group" in line for book in books(directory).values() for line in book)
