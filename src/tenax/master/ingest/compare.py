"""Metrics of one group as points of a chart: thinned together, so that each point has all values of its step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenax.jsonvalue import JsonObject, to_json
from tenax.master.ingest.charts import keep
from tenax.master.ingest.log_search import timestamp
from tenax.master.store.packing import Integers
from tenax.master.store.series import PackedSeries, Series

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
class Wanted:
    """What a chart asks for."""

    #: 0: all points.
    most: int = 0
    steps: Bounds = Bounds()
    #: Microseconds since 1970.
    times: Bounds = Bounds()
    epochs: Bounds | None = None


def points(packed: Sequence[PackedSeries], epochs: PackedSeries | None, wanted: Wanted) -> list[JsonObject]:
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


def _bounded(line: Series, wanted: Wanted) -> Series:
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
