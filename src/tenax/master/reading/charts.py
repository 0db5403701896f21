"""From series to the points of a chart: thinned so that it still looks the same.

Rules:
- The least and the greatest value of every stretch are kept.
- Metrics of one group are thinned together, so that each point has all values of its step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tsdownsample import LTTBDownsampler, MinMaxDownsampler

from tenax.jsonvalue import Json, JsonObject, to_json
from tenax.master.reading.log_search import timestamps
from tenax.master.store.metrics.packing import Integers
from tenax.master.store.metrics.series import PackedSeries, Series

Places: TypeAlias = npt.NDArray[np.int64]
_LTTB = LTTBDownsampler()  # type: ignore[no-untyped-call]
_MIN_MAX = MinMaxDownsampler()  # type: ignore[no-untyped-call]
#: Below so many points minimum and maximum say less than the shape.
_FEW = 8


def keep(values: npt.NDArray[np.float64], most: int) -> Places:
    """Places of at most ``most`` of the values, rising; the same ones each time.

    What is no finite number has no height: it gets a share of the points of its own, spread evenly.
    """
    numbers = np.isfinite(values)
    if numbers.all():
        return _thinned(values, most)
    finite, other = np.flatnonzero(numbers), np.flatnonzero(~numbers)
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
    """A range of numbers; None: no limit. ``low`` and ``high`` are inside, ``above`` and ``below`` are not."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    among: frozenset[float] | None = None
    without: frozenset[float] = frozenset()

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Nothing below the first and nothing above the second is inside; None: no limit."""
        lows = [limit for limit in (self.low, self.above) if limit is not None]
        highs = [limit for limit in (self.high, self.below) if limit is not None]
        return max(lows, default=None), min(highs, default=None)

    def inside(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which of ``values`` are."""
        inside = np.ones(len(values), dtype=bool)
        for limit, compare in (
            (self.low, np.greater_equal),
            (self.high, np.less_equal),
            (self.above, np.greater),
            (self.below, np.less),
        ):
            if limit is not None:
                inside &= compare(values, limit)
        if self.among is not None:
            inside &= np.isin(values, list(self.among))
        if self.without:
            inside &= ~np.isin(values, list(self.without))
        return inside


_EVERYWHERE = Bounds()


def chart(series: Series, most: int, steps: Bounds | None = None) -> JsonObject:
    """``{"total", "steps", "times", "values"}`` with at most ``most`` points (0: all of them) of those at ``steps``."""
    if steps is not None and steps != _EVERYWHERE:
        series = _only(series, steps.inside(series.steps.astype(np.float64)))
    kept = keep(series.values, most) if 0 < most < len(series) else np.arange(len(series))
    return {
        "total": len(series),
        "steps": series.steps[kept].tolist(),
        "times": series.times[kept].tolist(),
        "values": _as_json(series.values[kept]),
    }


@dataclass(frozen=True, slots=True)
class ChartQuery:
    """Which points a chart shows."""

    #: 0: all points.
    most: int = 0
    steps: Bounds = Bounds()
    #: Microseconds since 1970.
    times: Bounds = Bounds()
    epochs: Bounds | None = None


def points(packed: Sequence[PackedSeries], epochs: PackedSeries | None, query: ChartQuery) -> list[JsonObject]:
    """``{"batches", "time", "epoch", "values"}`` by step. For a thread."""
    all_series = {packed_series.metric: _bounded(packed_series.unpack(), query) for packed_series in packed}
    axis = None if epochs is None else epochs.unpack()
    if query.epochs is not None:
        all_series = {name: _at_epochs(series, axis, query.epochs) for name, series in all_series.items()}
    all_series = {name: series for name, series in all_series.items() if len(series)}
    share = query.most // max(1, len(all_series)) or min(1, query.most)
    kept = [
        series.steps[keep(series.values, share)] if 0 < share < len(series) else series.steps
        for series in all_series.values()
    ]
    steps = np.unique(np.concatenate(kept)) if kept else np.empty(0, np.int64)
    values: list[JsonObject] = [{} for _ in steps]
    times = np.empty(len(steps), np.int64)
    dated = []
    for name, series in all_series.items():
        chosen = _places(series.steps, steps)
        at = np.searchsorted(steps, series.steps[chosen])
        dated.append((at, series.times[chosen]))
        for place, value in zip(at.tolist(), _as_json(series.values[chosen])):
            values[place][name] = value
    # The time of a step is that of the first value: written last, it stays.
    for at, given in reversed(dated):
        times[at[::-1]] = given[::-1]
    whole = zip(np.maximum(steps, 0).tolist(), timestamps(times), _epochs(axis, steps).tolist(), values)
    return [
        {"batches": batches, "time": time, **({"epoch": epoch} if math.isfinite(epoch) else {}), "values": of_step}
        for batches, time, epoch, of_step in whole
    ]


def _as_json(values: npt.NDArray[np.float64]) -> list[Json]:
    numbers = values.tolist()
    return numbers if np.isfinite(values).all() else [to_json(number) for number in numbers]


def _places(within: Integers, steps: Integers) -> Places:
    """Where ``steps`` are; both rise. One may be there several times, or not at all."""
    first = np.searchsorted(within, steps, "left")
    counts = np.searchsorted(within, steps, "right") - first
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())


def _bounded(series: Series, query: ChartQuery) -> Series:
    if query.steps == _EVERYWHERE and query.times == _EVERYWHERE:
        return series
    inside = query.steps.inside(series.steps.astype(np.float64)) & query.times.inside(series.times.astype(np.float64))
    return _only(series, inside)


def _at_epochs(series: Series, axis: Series | None, bounds: Bounds) -> Series:
    epochs = _epochs(axis, series.steps)
    return _only(series, np.isfinite(epochs) & bounds.inside(epochs))


def _epochs(axis: Series | None, steps: Integers) -> npt.NDArray[np.float64]:
    """At each of ``steps``; NaN where none was reported."""
    if axis is None or not len(axis):
        return np.full(len(steps), np.nan)
    places = np.minimum(np.searchsorted(axis.steps, steps), len(axis) - 1)
    return np.where(axis.steps[places] == steps, axis.values[places], np.nan)


def _only(series: Series, inside: npt.NDArray[np.bool_]) -> Series:
    return Series(series.steps[inside], series.times[inside], series.values[inside])
