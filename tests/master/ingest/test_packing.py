"""Packed columns, summaries and charts: nothing is lost where nothing may be, and the shape is kept elsewhere."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tenax.jsonvalue import Json, to_json
from tenax.master.reading.charts import chart, keep
from tenax.master.store.metrics import packing
from tenax.master.store.metrics.series import Series
from tenax.master.telemetry import summary

SPECIAL = st.sampled_from(["NaN", "Infinity", "-Infinity"])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.one_of(FLOATS, st.integers(-(2**70), 2**70), SPECIAL, st.text(max_size=5), st.booleans(), st.none())
VALUES = st.one_of(
    st.lists(FLOATS, min_size=1),
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.one_of(FLOATS, SPECIAL, st.integers(-(2**53), 2**53)), min_size=1),
    st.lists(st.one_of(SCALARS, st.lists(SCALARS), st.dictionaries(st.text(max_size=3), SCALARS)), min_size=1),
)


def same(first: Json, second: Json) -> bool:
    """Equal, and true is no number."""
    return first == second and isinstance(first, bool) == isinstance(second, bool)


@given(VALUES)
def test_what_is_packed_comes_back(values: list[Json]) -> None:
    """Every list of JSON values is the same after packing."""
    back = packing.unpack_values(packing.pack_values(values))
    assert len(back) == len(values)
    assert all(map(same, back, values))


@given(VALUES)
def test_a_chart_sees_numbers_and_gaps(values: list[Json]) -> None:
    """As numbers, what is none is NaN."""
    numbers = packing.unpack_numbers(packing.pack_values(values))
    expected = [packing.as_float(value) for value in values]
    assert np.array_equal(numbers, np.array(expected, np.float64), equal_nan=True)


@given(st.lists(st.integers(-(2**62), 2**62)))
def test_steps_and_times_come_back(values: list[int]) -> None:
    """In any order."""
    assert packing.unpack_integers(packing.pack_integers(np.array(values, np.int64))).tolist() == values


@given(st.lists(st.booleans(), min_size=1))
def test_who_has_a_metric_comes_back(present: list[bool]) -> None:
    """All of them takes no room."""
    packed = packing.pack_present(np.array(present))
    assert (packed is None) == all(present)
    assert packing.unpack_present(packed, len(present)).tolist() == present


REPORTS = st.lists(st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3), max_size=12)


@given(REPORTS, st.integers(0, 12))
def test_a_summary_does_not_depend_on_how_reports_were_grouped(reports: list[dict[str, Json]], cut: int) -> None:
    """In one go or in two: the same types, counts, extremes; sums up to rounding."""
    whole = summary.add({}, reports)
    parts = summary.decode(summary.encode(summary.add(summary.add({}, reports[:cut]), reports[cut:])))
    assert parts.keys() == whole.keys()
    for name, expected in whole.items():
        actual = parts[name]
        assert (expected.type, expected.count if expected.type == "number" else 0) == (
            actual.type,
            actual.count if actual.type == "number" else 0,
        )
        if expected.type == "number":
            assert (to_json(expected.low), to_json(expected.high)) == (
                to_json(actual.low),
                to_json(actual.high),
            )
            assert math.isclose(expected.total, actual.total, rel_tol=1e-9, abs_tol=1e-6) or not math.isfinite(
                expected.total
            )


@given(st.lists(st.floats(), min_size=1, max_size=400), st.integers(1, 60))
def test_thinning_keeps_ends_and_extremes(values: list[float], most: int) -> None:
    """At most so many points, in order, the same each time; the least and the greatest value are among them."""
    series = np.array(values, np.float64)
    places = keep(series, most) if most < len(series) else np.arange(len(series))
    assert len(places) <= max(most, 0)
    assert (np.diff(places) > 0).all()
    assert places.tolist() == (keep(series, most) if most < len(series) else np.arange(len(series))).tolist()
    finite = series[np.isfinite(series)]
    if most >= 16 and finite.size == series.size:
        assert {series.min(), series.max(), series[0], series[-1]} <= set(series[places])


def test_a_chart_says_how_many_points_there_were() -> None:
    """Three of ten points are three, and special values are strings."""
    series = Series(np.arange(10), np.arange(10), np.arange(10.0))
    points = chart(series, 3)
    assert points["total"] == 10
    assert len(points["steps"]) == 3  # type: ignore[arg-type]
    assert chart(Series(np.arange(1), np.arange(1), np.array([np.nan])), 0)["values"] == ["NaN"]
