"""What is drawn: curves over steps, several in one panel.

Rules:
- What is no finite number has no height: the curve has a gap there, and the step is marked. On a logarithmic scale the
  same holds for what is not above 0.
- Nothing is left out in silence: `notes` says how many values have no place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple

#: A step and a value, or a place in a picture.
XY = Tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One metric of one trial."""

    name: str
    #: Rising.
    steps: Sequence[float]
    #: One for each step; None where it is no number.
    values: Sequence[Optional[float]]

    def runs(self, log: bool) -> List[List[XY]]:
        """The points between two gaps, as often as there are any."""
        runs: List[List[XY]] = []
        going = False
        for step, value in zip(self.steps, self.values):
            if value is None or not has_place(value, log):
                going = False
                continue
            if not going:
                runs.append([])
                going = True
            runs[-1].append((step, value))
        return runs

    def gaps(self, log: bool) -> List[float]:
        """The steps of values that have no place."""
        return [
            step for step, value in zip(self.steps, self.values) if value is None or not has_place(value, log)
        ]  # fmt: skip

    def last(self) -> Optional[float]:
        """Its last value, whatever that is."""
        return self.values[-1] if self.values else None


@dataclass(frozen=True)
class Panel:
    """Curves with the same axes."""

    #: The name of the metric.
    title: str
    curves: Sequence[Curve]
    #: Values stand on a logarithmic scale.
    log: bool = False
    #: What steps are.
    by: str = "step"
    #: Whether the legend says how each curve ends.
    with_last: bool = True

    def points(self) -> List[XY]:
        """All that have a place."""
        return [point for curve in self.curves for run in curve.runs(self.log) for point in run]

    def notes(self) -> List[str]:
        """What cannot be seen in the picture."""
        every = [value for curve in self.curves for value in curve.values]
        strange = sum(1 for value in every if value is None or not math.isfinite(value))
        below = sum(1 for value in every if value is not None and math.isfinite(value) and value <= 0)
        notes = []
        if strange:
            notes.append(f"{strange} of {len(every)} values {_are(strange)} no finite number: × on the axis")
        if self.log and below:
            notes.append(f"{below} of {len(every)} values {_are(below)} not above 0, which a log scale cannot show: ×")
        return notes


def has_place(value: float, log: bool) -> bool:
    """Whether a value can be drawn."""
    return math.isfinite(value) and (value > 0 or not log)


def thinned(points: Iterable[XY]) -> List[XY]:
    """Places in a picture, of those in one column only the first, the least, the greatest and the last."""
    columns: List[List[XY]] = []
    for point in points:
        if not columns or int(columns[-1][0][0]) != int(point[0]):
            columns.append([])
        columns[-1].append(point)
    return [point for column in columns for point in _extremes(column)]


def _extremes(column: List[XY]) -> List[XY]:
    if len(column) <= 4:
        return column
    rows = [row for _, row in column]
    places = sorted({0, rows.index(min(rows)), rows.index(max(rows)), len(column) - 1})
    return [column[place] for place in places]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
