"""Lengths and periods."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from tenax import pytorch
from tenax.pytorch.units import NEVER, FitPlan, TrainUnit


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (1, [1, 2, 3, 4, 5, 6]),
        (3, [3, 6]),
        (7, []),
        ([2, 5], [2, 5]),
        ((4,), [4]),
        ({1, 6}, [1, 6]),
        (range(0, 10, 2), [2, 4, 6]),
        ([], []),
    ],
)
def test_a_period_ends_each_so_many_or_at_those_named(value: Any, ends: list[int]) -> None:
    """Counted from 1; what is named may be any container."""
    assert [step for step in range(1, 7) if pytorch.Batch(value).should_stop(step)] == ends


def test_no_period_ends_before_the_first_step() -> None:
    """0 is a multiple of each number."""
    assert not pytorch.Epoch(5).should_stop(0)
    assert not any(NEVER.should_stop(step) for step in range(10))


def test_a_period_below_one_ends_after_each() -> None:
    """As in older programs, whose 0 is "as often as can be"."""
    assert pytorch.Batch(0).should_stop(3)


@pytest.mark.parametrize("value", ["10", b"10", 1.5, None, True, ["5"], [1.0], [True]])
def test_what_is_no_whole_number_is_refused_where_it_is_written(value: Any) -> None:
    """A string holds characters, and was taken for a list."""
    for kind in (pytorch.Batch, pytorch.Epoch):
        with pytest.raises(TypeError, match=f"{kind.__name__} takes a whole number or a list of them"):
            kind(value)


def test_units_are_equal_by_kind_and_value() -> None:
    """Ten batches are not ten epochs."""
    assert pytorch.Batch(10) == pytorch.Batch(10) != pytorch.Batch(11)
    assert pytorch.Batch(10) != pytorch.Epoch(10)
    assert repr(pytorch.Epoch([1, 2])) == "Epoch([1, 2])"


UNITS = [
    *(unit(value) for unit in (pytorch.Batch, pytorch.Epoch) for value in (0, 1, 3, 7, [2, 5], range(4, 30, 9))),
    NEVER,
]


@pytest.mark.parametrize("epoch_length", [1, 4, sys.maxsize])
@pytest.mark.parametrize("period", UNITS, ids=str)
def test_nothing_ends_before_it_is_due(period: TrainUnit, epoch_length: int) -> None:
    """Whatever number of batches a loop begins at, it may leave out all questions before the next one that is due."""

    def ends(batches: int) -> bool:
        if isinstance(period, pytorch.Epoch):
            return batches % epoch_length == 0 and period.should_stop(batches // epoch_length)
        return period.should_stop(batches)

    for length in (pytorch.Batch(40), pytorch.Epoch(9)):
        plan = FitPlan(length, NEVER, period, NEVER, "none", None, None, True, False, False)
        for begun in range(40):
            due = plan.next_due(begun, epoch_length)
            assert due > begun
            assert not any(ends(batches) for batches in range(begun + 1, min(due, 60)))
            assert due <= (40 if isinstance(length, pytorch.Batch) else (begun // epoch_length + 1) * epoch_length)


def test_a_period_of_many_batches_asks_seldom() -> None:
    """That is what each step saves."""
    plan = FitPlan(
        pytorch.Epoch(2), pytorch.Batch(100), NEVER, pytorch.Epoch(1), "none", None, None, True, False, False
    )
    assert [plan.next_due(batches, 250) for batches in (0, 99, 100, 200, 250, 499)] == [100, 100, 200, 250, 300, 500]
    assert replace(plan, test_mode=True).next_due(7, 250) == 8
