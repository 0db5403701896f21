"""A series with fewer points, that still looks the same: the least and the greatest value of every stretch are kept.

Metrics of one group as points of a chart: thinned together, so that each point has all values of its step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tsdownsample import LTTBDownsampler, MinMaxDownsampler

from tenax.jsonvalue import Json, JsonObject, to_json
from tenax.master.reading.log_search import timestamp
from tenax.master.store.metrics.packing import Integers
from tenax.master.store.metrics.series import PackedSeries, Series

Places: TypeAlias = npt.NDArray[np.int64]
_LTTB = LTTBDownsampler()  # type: ignore[no-untyped-call]
_MIN_MAX = MinMaxDownsampler()  # type: ignore[no-untyped-call]
#: Below so many points minimum and maximum say less than the shape.
_FEW = 8


def chart(points: Series, most: int) -> JsonObject:
    """``{"total", "steps", "times", "values"}`` with at most ``most`` points (0: all of them)."""
    kept = keep(points.values, most) if 0 < most < len(points) else np.arange(len(points))
    values = points.values[kept].tolist()
    numbers: list[Json] = values if np.isfinite(points.values[kept]).all() else [to_json(value) for value in values]
    return {
        "total": len(points),
        "steps": points.steps[kept].tolist(),
        "times": points.times[kept].tolist(),
        "values": numbers,
    }


def keep(values: npt.NDArray[np.float64], most: int) -> Places:
    """Places of at most ``most`` of the values, rising; the same ones each time.

    What is no finite number has no height: it gets a share of the points of its own, spread evenly.
    """
    finite = np.flatnonzero(np.isfinite(values))
    other = np.flatnonzero(~np.isfinite(values))
    if not other.size:
        return _thinned(values, most)
    of_other = min(other.size, max(1, most // 4)) if most > 1 else 0
    spread = other[np.linspace(0, other.size - 1, of_other).astype(np.int64)] if of_other else other[:0]
    shape = finite[_thinned(values[finite], most - of_other)] if finite.size else finite
    return np.sort(np.concatenate([spread, shape]))


def _thinned(values: npt.NDArray[np.float64], most: int) -> Places:
    if len(values) <= most:
        return np.arange(len(values))
    if most <= 2:
        return np.array([0, len(values) - 1][:most], dtype=np.int64)
    if most < _FEW:
        return np.asarray(_LTTB.downsample(values, n_out=most), dtype=np.int64)
    # It takes pairs; the first and the last point are kept beside them.
    inner = _MIN_MAX.downsample(values, n_out=(most - 2) // 2 * 2)
    return np.unique(np.concatenate([[0], np.asarray(inner, dtype=np.int64), [len(values) - 1]]))


EPOCH = "epoch"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which points are wanted; None: no matter. ``low`` and ``high`` are inside, ``above`` and ``below`` are not."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    among: frozenset[float] | None = None
    without: frozenset[float] = frozenset()

    def inside(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which of ``values`` are."""
        found = np.ones(len(values), dtype=bool)
        for limit, compare in (
            (self.low, np.greater_equal),
            (self.high, np.less_equal),
            (self.above, np.greater),
            (self.below, np.less),
        ):
            if limit is not None:
                found &= compare(values, limit)
        if self.among is not None:
            found &= np.isin(values, list(self.among))
        if self.without:
            found &= ~np.isin(values, list(self.without))
        return found


@dataclass(frozen=True, slots=True)
class ChartQuery:
    """What a chart asks for."""

    #: 0: all points.
    most: int = 0
    steps: Bounds = Bounds()
    #: Microseconds since 1970.
    times: Bounds = Bounds()
    epochs: Bounds | None = None


def points(packed: Sequence[PackedSeries], epochs: PackedSeries | None, wanted: ChartQuery) -> list[JsonObject]:
    """``{"batches", "time", "epoch", "values"}`` by step. For a thread."""
    lines = {one.metric: _bounded(one.points(), wanted) for one in packed}
    axis = None if epochs is None else epochs.points()
    if wanted.epochs is not None:
        lines = {name: _at_epochs(line, axis, wanted.epochs) for name, line in lines.items()}
    lines = {name: line for name, line in lines.items() if len(line)}
    share = wanted.most // max(1, len(lines)) or min(1, wanted.most)
    steps: set[int] = set()
    for line in lines.values():
        kept = keep(line.values, share) if 0 < share < len(line) else np.arange(len(line))
        steps.update(line.steps[kept].tolist())
    told: dict[int, JsonObject] = {}
    for name, line in lines.items():
        chosen = np.isin(line.steps, list(steps))
        rows = zip(line.steps[chosen].tolist(), line.times[chosen].tolist(), line.values[chosen].tolist())
        for step, time, value in rows:
            point = told.setdefault(step, {"batches": max(0, step), "time": timestamp(time), "values": {}})
            values = point["values"]
            assert isinstance(values, dict)
            values[name] = to_json(value)
    rising = sorted(told)
    for step, epoch in zip(rising, _epochs(axis, np.array(rising, np.int64)).tolist()):
        if np.isfinite(epoch):
            told[step]["epoch"] = epoch
    return [told[step] for step in rising]


def _bounded(line: Series, wanted: ChartQuery) -> Series:
    inside = wanted.steps.inside(line.steps.astype(np.float64)) & wanted.times.inside(line.times.astype(np.float64))
    return _only(line, inside)


def _at_epochs(line: Series, axis: Series | None, bounds: Bounds) -> Series:
    found = _epochs(axis, line.steps)
    return _only(line, np.isfinite(found) & bounds.inside(found))


def _epochs(axis: Series | None, steps: Integers) -> npt.NDArray[np.float64]:
    """At each of ``steps``; NaN where none was told."""
    if axis is None or not len(axis):
        return np.full(len(steps), np.nan)
    places = np.minimum(np.searchsorted(axis.steps, steps), len(axis) - 1)
    return np.where(axis.steps[places] == steps, axis.values[places], np.nan)


def _only(line: Series, inside: npt.NDArray[np.bool_]) -> Series:
    return Series(line.steps[inside], line.times[inside], line.values[inside])
