"""Grids: axes, order of points, and what cannot be a grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import InvalidInput
from tenax.search import grid
from tenax.search.config import Categorical, Const, Double, Int, Log, Map

TREE = Map({"b": Int(0, 10, 3), "a": Map({"x": Categorical((1, 2)), "e": Map()}), "c": Const("k")})


def test_golden_points() -> None:
    """Golden values: the first name varies slowest, an empty map stays, a constant is everywhere."""
    axes = grid.axes(TREE)
    points = [grid.point(axes, number) for number in range(grid.size(TREE))]
    assert points[0] == {"a": {"e": {}, "x": 1}, "b": 0, "c": "k"}
    assert [(point["a"]["x"], point["b"]) for point in points] == [(1, 0), (1, 5), (1, 10), (2, 0), (2, 5), (2, 10)]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("hyperparameter", "values"),
    [
        (Int(0, 20, 7), (0, 3, 7, 10, 13, 17, 20)),
        (Int(0, 3, 10), (0, 1, 2, 3)),
        (Int(0, 5, 1), (3,)),
        (Int(-5, 0, 1), (-3,)),
        (Double(0, 1, 1), (0.5,)),
        (Double(0, 1, 3), (0.0, 0.5, 1.0)),
        (Log(-2, 0, 10.0, 3), (0.01, 0.1, 1.0)),
    ],
)
def test_axis_values(hyperparameter: Int | Double | Log, values: tuple[float, ...]) -> None:
    """Counts are clamped to the integers there are, one point is the middle, halves round away from zero."""
    assert grid.axis_values(hyperparameter) == pytest.approx(values)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_point_is_there_once(counts: list[int]) -> None:
    """Points of a grid are distinct, as many as the product of the axes, and the grid knows them for its own."""
    tree = Map({f"p{number}": Double(0, 1, count) for number, count in enumerate(counts)})
    axes = grid.axes(tree)
    points = [grid.point(axes, number) for number in range(grid.size(tree))]
    assert len({str(point) for point in points}) == len(points)
    assert all(grid.holds(axes, point) for point in points)
    assert not grid.holds(axes, {**points[0], "p0": 0.123})


def test_a_number_without_a_count_is_refused_by_name() -> None:
    """The message names the hyperparameter that lacks a count."""
    with pytest.raises(InvalidInput, match=r"how many values a\.lr takes"):
        grid.size(Map({"a": Map({"lr": Log(-3, -1)})}))
