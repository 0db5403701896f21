"""A curve in a cell of a table: eight heights, one for each stretch of it."""

from __future__ import annotations

import math
from typing import List, Optional, Sequence

_HEIGHTS = "▁▂▃▄▅▆▇█"
WIDTH = 10


def sparkline(values: Sequence[Optional[float]], width: int = WIDTH) -> str:
    """At most ``width`` characters, from the least of the means to the greatest; × where there is no finite number."""
    means = [_mean(stretch) for stretch in _stretches(values, width)]
    known = [mean for mean in means if mean is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    return "".join("×" if mean is None else _height(mean, low, high) for mean in means)


def _stretches(values: Sequence[Optional[float]], width: int) -> List[Sequence[Optional[float]]]:
    count = min(width, len(values))
    bounds = [len(values) * at // count for at in range(count + 1)] if count else [0]
    return [values[start:end] for start, end in zip(bounds, bounds[1:])]


def _mean(stretch: Sequence[Optional[float]]) -> Optional[float]:
    finite = [value for value in stretch if value is not None and math.isfinite(value)]
    # Each is divided first: a sum of large numbers is none.
    return sum(value / len(finite) for value in finite) if finite else None


def _height(mean: float, low: float, high: float) -> str:
    if low == high:
        return _HEIGHTS[3]
    share = (mean / 2 - low / 2) / (high / 2 - low / 2)
    return _HEIGHTS[min(len(_HEIGHTS) - 1, int(share * len(_HEIGHTS)))]
