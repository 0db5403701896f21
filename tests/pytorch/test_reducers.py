"""One metric from those of many batches and ranks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tenax import pytorch
from tenax.errors import InvalidInput
from tenax.pytorch import metrics as of
from tenax.pytorch.reducers import ReducerContext, reduce_batches, reducer_of_each

AVG, SUM, MAX, MIN = pytorch.Reducer.AVG, pytorch.Reducer.SUM, pytorch.Reducer.MAX, pytorch.Reducer.MIN


@pytest.mark.parametrize(("how", "value"), [(AVG, 2.0), (SUM, 6.0), (MAX, 3.0), (MIN, 1.0)])
def test_values_become_one(how: Any, value: float) -> None:
    """Numbers, and arrays element by element."""
    assert reduce_batches("a", how, [1, 3, 2]) == value
    assert reduce_batches("a", how, [[1, 10], [3, 30], [2, 20]]) == [value, 10 * value]


def test_an_average_counts_batches_and_a_nan_is_seen() -> None:
    """Ranks with more batches count for more; what is no number spoils the result, and is not left out."""
    assert reduce_batches("a", AVG, [1.0, 4.0], [1, 2]) == 3.0
    assert str(reduce_batches("a", MAX, [1.0, float("nan")])) == "nan"


@pytest.mark.parametrize("values", [[None, None], ["x", "y"], [[1], [1, 2]], [{"b": 1}, {"b": 2}]])
def test_a_value_that_cannot_be_reduced_is_named(values: list[Any]) -> None:
    """Of ten metrics one must say which."""
    with pytest.raises(InvalidInput, match="the metric 'f1' must be a number"):
        reduce_batches("f1", AVG, values)


def test_each_metric_may_have_its_own() -> None:
    """All of them, and no other."""
    assert reducer_of_each(SUM, ["a", "b"]) == {"a": SUM, "b": SUM}
    assert reducer_of_each({"a": MAX, "b": MIN}, ["a", "b"]) == {"a": MAX, "b": MIN}
    for given in ({"a": MAX}, {"a": MAX, "b": "max"}, {"a": MAX, "b": MIN, "c": SUM}, "avg"):
        with pytest.raises(InvalidInput, match=r"evaluation_reducer\(\) must give a pytorch.Reducer"):
            reducer_of_each(given, ["a", "b"])  # type: ignore[arg-type]


def test_a_function_gets_the_values_of_all_ranks_in_the_order_of_batches() -> None:
    """Ranks took every second batch."""
    context = ReducerContext(lambda own: [own, [["b", "d"]]])
    order = context.wrap_reducer("".join, name="order")
    for value in ("a", "c", "e"):
        order.update(value)
    assert context.reduce_metrics(for_training=True) == {"order": "abcde"}
    context.reset_reducers()
    assert context.reduce_metrics(for_training=True) == {"order": "bd"}


class Counts(pytorch.MetricReducer):
    """Two metrics."""

    def __init__(self) -> None:
        self.count = 0

    def reset(self) -> None:
        self.count = 0

    def per_slot_reduce(self) -> int:
        return self.count

    def cross_slot_reduce(self, per_slot_metrics: list[int]) -> dict[str, int]:
        return {"all": sum(per_slot_metrics), "most": max(per_slot_metrics)}


def test_a_reducer_of_ones_own_gives_one_metric_or_several() -> None:
    """By whether it is named; each of the wrong kind is said."""
    context = ReducerContext(lambda own: [own, [5]])
    own = context.wrap_reducer(Counts(), for_training=False)
    own.count = 2
    assert context.reduce_metrics(for_training=True) == {}
    assert context.reduce_metrics(for_training=False) == {"all": 7, "most": 5}
    with pytest.raises(InvalidInput, match="was given to wrap_reducer"):
        context.wrap_reducer(own)
    named = ReducerContext()
    named.wrap_reducer(Counts(), name="counts")
    with pytest.raises(InvalidInput, match="must give one value, not dict"):
        named.reduce_metrics(for_training=True)
    with pytest.raises(InvalidInput, match=r"takes a function or a pytorch\.MetricReducer, not 3"):
        named.wrap_reducer(3)  # type: ignore[arg-type]


def test_a_function_that_fails_without_values_says_what_is_missing() -> None:
    """``max`` of nothing: it is for validation, and was asked in training. One that takes nothing is asked."""
    context = ReducerContext()
    largest = context.wrap_reducer(max, name="largest")
    context.wrap_reducer(sum, name="sum")
    with pytest.raises(InvalidInput, match=r"update\(\) was not called: call it for each batch, or say"):
        context.reduce_metrics(for_training=True)
    largest.update(3)
    assert context.reduce_metrics(for_training=True) == {"largest": 3, "sum": 0}
    largest.update("x")
    with pytest.raises(TypeError):
        context.reduce_metrics(for_training=True)


def test_metrics_of_batches_are_plain_numbers() -> None:
    """Tensors of any type and layout, numbers, and names that only some batches have."""
    given = [
        {"a": torch.tensor(1.0, dtype=torch.bfloat16), "b": [1], 3: 2},
        {"a": torch.tensor([2.0]), "c": "text"},
        {"a": 4, "d": torch.eye(2).to_sparse(), "e": None},
    ]
    batches = of.plain([of.of_batch(each, "train_batch") for each in given])
    assert batches[0] == {"a": 1.0, "b": [1], "3": 2}
    assert batches[1:] == [{"a": [2.0], "c": "text"}, {"a": 4, "d": [[1.0, 0.0], [0.0, 1.0]], "e": None}]
    assert of.averages([{"a": 1, "b": "x"}, {"a": 3, "b": 1}, {"c": [1, 2]}]) == {"a": 2.0, "c": [1.0, 2.0]}


def test_what_a_batch_gave_is_apart_from_what_it_does_next() -> None:
    """A tensor that is written in place later, and its graph, which would stay in memory."""
    loss = torch.ones(1, requires_grad=True) * 2
    kept = of.of_batch(loss, "train_batch")
    loss.detach().zero_()
    assert kept["loss"].item() == 2.0
    assert not kept["loss"].requires_grad


@pytest.mark.parametrize("given", [None, 0.5, "x", (1, 2)])
def test_a_batch_that_gives_no_metrics_is_told_what_to_return(given: Any) -> None:
    """A newcomer forgets to."""
    with pytest.raises(InvalidInput, match=r'train_batch\(\) must return a dict of metrics, such as {"loss": loss}'):
        of.of_batch(given, "train_batch")


def test_a_validation_is_of_all_ranks_that_had_a_batch() -> None:
    """One without is left out; none at all is said, and so are names that change."""
    assert of.validation([({"a": 1.0}, 3), ({}, 0), ({"a": 5.0}, 1)], AVG) == {"a": 2.0}
    with pytest.raises(InvalidInput, match="the validation data is empty"):
        of.validation([({}, 0)], AVG)
    with pytest.raises(InvalidInput, match="the same metrics for each batch: a at first, and then b"):
        of.of_rank([{"a": 1}, {"b": 1}], AVG)
