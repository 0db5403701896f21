"""A series with fewer points, that still looks the same: the least and the greatest value of every stretch are kept."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tsdownsample import LTTBDownsampler, MinMaxDownsampler

from tenax.jsonvalue import Json, JsonObject, to_json
from tenax.master.store.series import Series

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
