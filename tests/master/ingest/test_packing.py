"""Packed columns, summaries and charts: nothing is lost where nothing may be, and the shape is kept elsewhere."""

from __future__ import annotations

import math
import zlib

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tenax.jsonvalue import Json, to_json
from tenax.master.reading.charts import Bounds, ChartQuery, chart, keep, points
from tenax.master.store.metrics import packing
from tenax.master.store.metrics.series import MetricGroup, PackedSeries, Series
from tenax.master.telemetry import summary
from tenax.master.telemetry.cuts import Cuts

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


def _series(metric: str, rows: list[tuple[int, float]]) -> PackedSeries:
    """A series of which nothing is packed yet."""
    tail = {
        "run_id": 1,
        "steps": [step for step, _ in rows],
        "times": [step * 1000 for step, _ in rows],
        "bodies": b"\n".join(msgspec.json.encode({metric: value}) for _, value in rows),
    }
    return PackedSeries(MetricGroup(1, "training", 0, Cuts(), b"", 0, len(rows)), metric, [], [tail] if rows else [])


_ROWS = st.lists(st.tuples(st.integers(-1, 30), st.floats(-9, 9)), max_size=40).map(sorted)


@given(_ROWS, _ROWS, st.one_of(st.none(), st.integers(0, 20)), st.one_of(st.none(), st.integers(10, 30)))
def test_points_have_all_values_of_their_step(
    first: list[tuple[int, float]], second: list[tuple[int, float]], low: int | None, high: int | None
) -> None:
    """Whether a step is in one series or in both, once or several times: the last value of it counts."""
    query = ChartQuery(0, Bounds(low=low, high=high))
    wanted: dict[int, dict[str, float]] = {}
    for name, rows in (("a", first), ("b", second)):
        for step, value in rows:
            if (low is None or step >= low) and (high is None or step <= high):
                wanted.setdefault(step, {})[name] = value
    drawn = points([_series("a", first), _series("b", second)], None, query)
    assert [(point["batches"], point["values"]) for point in drawn] == [
        (max(0, step), wanted[step]) for step in sorted(wanted)
    ]
    few = points([_series("a", first), _series("b", second)], None, ChartQuery(8, query.steps))
    assert all(point in drawn for point in few)


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=4, max_size=4), st.integers(-7, 7))
def test_the_ends_of_bounds_are_where_nothing_is_beyond(limits: list[int | None], value: int) -> None:
    """Whatever is inside lies between them."""
    bounds = Bounds(*limits)
    low, high = bounds.ends
    if bounds.inside(np.array([float(value)]))[0]:
        assert low is None or value >= low
        assert high is None or value <= high


_WAVES = st.builds(
    lambda count, seed, noise, digits, single: (
        (np.sin(np.arange(count) / 50) + noise * np.random.default_rng(seed).standard_normal(count))
        .round(digits)
        .astype(np.float32 if single else np.float64)
        .astype(np.float64)
    ),
    st.integers(1, 5000),
    st.integers(0, 99),
    st.sampled_from([0.0, 1e-9, 0.01, 1e3]),
    st.sampled_from([1, 3, 6, 20]),
    st.booleans(),
)


@given(_WAVES, st.lists(st.tuples(st.integers(0), st.sampled_from([math.nan, math.inf, -math.inf]))))
def test_measurements_come_back(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], special: list[tuple[int, float]]
) -> None:
    """Bit for bit, in what any zlib reads, and hardly longer than what it makes of them alone."""
    for place, value in special:
        values[place % len(values)] = value
    packed = packing.pack_values([to_json(value) for value in values.tolist()])
    back = packing.unpack_numbers(packed)
    assert np.array_equal(back, values, equal_nan=True)
    into = np.zeros(len(values))
    packing.unpack_numbers_into(packed, into)
    assert np.array_equal(into, values, equal_nan=True)
    width = 4 if packed[:1] == b"f" else 8
    planes = zlib.decompress(packed[1:])
    assert len(planes) == width * len(values)
    alone = zlib.compress(planes, 1)
    assert len(packed) <= 1.02 * len(alone) + 64
    # What earlier releases packed.
    assert np.array_equal(packing.unpack_numbers(packed[:1] + alone), values, equal_nan=True)


def test_noise_stands_as_it_is() -> None:
    """The low bytes of a measurement are read without being inflated; they are packed one plane after the other."""
    values = np.random.default_rng(2).standard_normal(2000)
    packed = packing.pack_values(values.tolist())
    for plane in values.view(np.uint8).reshape(-1, 8).T[:6]:
        assert plane.tobytes() in packed
