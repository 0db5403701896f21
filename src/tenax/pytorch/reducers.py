"""One metric from those of many batches and ranks: by average, sum, extreme, or by code of the trial's."""

from __future__ import annotations

import copy
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Optional, Union

import torch

from tenax.errors import InvalidInput


class Reducer(enum.Enum):
    """How values of batches become one."""

    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


def reduce_batches(name: str, how: Reducer, values: Sequence[Any], weights: Optional[Sequence[float]] = None) -> Any:
    """One value from at least one: a number, or a (nested) list where the values are arrays, element by element.

    ``weights``: of each value in an average. Raises InvalidInput for values of different shapes.
    """
    try:
        if all(type(value) is float for value in values):
            stacked = torch.tensor(values, dtype=torch.float64)
        else:
            stacked = torch.stack([torch.as_tensor(value, dtype=torch.float64) for value in values])
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"the metric {name!r} must be a number, or an array of one shape, in each batch: {error}. What is none "
            "belongs to no metrics; for values of all batches together there is context.wrap_reducer()"
        ) from None
    if how is Reducer.SUM:
        return stacked.sum(0).tolist()
    if how is Reducer.MAX:
        return stacked.amax(0).tolist()
    if how is Reducer.MIN:
        return stacked.amin(0).tolist()
    if weights is None:
        return stacked.mean(0).tolist()
    shares = torch.as_tensor(weights, dtype=torch.float64)
    return (torch.tensordot(shares, stacked, dims=1) / shares.sum()).tolist()


def reducer_of_each(given: Union[Reducer, Mapping[str, Reducer]], names: Iterable[str]) -> dict[str, Reducer]:
    """What `PyTorchTrial.evaluation_reducer` says of each metric. Raises InvalidInput where it does not."""
    names = list(names)
    each = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)
    wrong = [name for name in names if not isinstance(each.get(name), Reducer)]
    unknown = [name for name in each if name not in names]
    if wrong or unknown:
        raise InvalidInput(
            "evaluation_reducer() must give a pytorch.Reducer, or one for each metric of evaluate_batch(): "
            f"{', '.join(names)}; it gives none for {', '.join(wrong) or 'none of them'}"
            + (f", and one for {', '.join(unknown)}" if unknown else "")
        )
    return each


class MetricReducer(ABC):
    """A metric that cannot be had from those of batches, such as an area under a curve: it gathers what it needs.

    ``reset``: begin anew. ``per_slot_reduce``: what this rank gathered, as something that pickle takes.
    ``cross_slot_reduce``: the metric, from what each rank gave.
    """

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def per_slot_reduce(self) -> Any: ...

    @abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any: ...


class FunctionReducer(MetricReducer):
    """A metric that is a function of all that was given to ``update``, in the order of the batches."""

    _NOTHING = object()

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self.function = function
        self._values: list[Any] = []

    def reset(self) -> None:
        self._values = []

    def update(self, value: Any) -> None:
        self._values.append(value)

    def per_slot_reduce(self) -> Any:
        return self._values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        rounds = zip_longest(*per_slot_metrics, fillvalue=self._NOTHING)
        values = [value for each in rounds for value in each if value is not self._NOTHING]
        try:
            return self.function(values)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if values:
                raise
            raise InvalidInput(
                f"a function given to wrap_reducer() fails without values ({error}), and update() was not called: call "
                "it for each batch, or say wrap_reducer(..., for_training=False) or for_validation=False"
            ) from error


@dataclass
class _Wrapped:
    reducer: MetricReducer
    name: Optional[str]
    for_training: bool
    for_validation: bool


class ReducerContext:
    """The reducers of a trial. ``allgather``: what each rank gives, on all ranks."""

    def __init__(self, allgather: Callable[[Any], list[Any]] = lambda value: [value]) -> None:
        self._wrapped: list[_Wrapped] = []
        self._allgather = allgather

    def wrap_reducer(
        self,
        reducer: Union[MetricReducer, Callable[[list[Any]], Any]],
        name: Optional[str] = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> Any:
        """A metric over all batches and ranks: a `MetricReducer`, or a function of the list of all that is given to
        ``update`` of what comes back. ``name`` None: it gives a dict of metrics. Raises InvalidInput."""
        if not isinstance(reducer, MetricReducer):
            if not callable(reducer):
                raise InvalidInput(f"wrap_reducer() takes a function or a pytorch.MetricReducer, not {reducer!r}")
            reducer = FunctionReducer(reducer)
        if any(each.reducer is reducer for each in self._wrapped):
            raise InvalidInput(f"this {type(reducer).__name__} was given to wrap_reducer() before: make another one")
        self._wrapped.append(_Wrapped(reducer, name, for_training, for_validation))
        return reducer

    def reset_reducers(self) -> None:
        for each in self._wrapped:
            each.reducer.reset()

    @contextmanager
    def reducers_kept(self) -> Iterator[None]:
        """What they are given inside is forgotten: a pass that is made for other ranks' sake does not count."""
        kept = [(each.reducer, copy.deepcopy(vars(each.reducer))) for each in self._wrapped]
        try:
            yield
        finally:
            for reducer, before in kept:
                vars(reducer).clear()
                vars(reducer).update(before)

    def gathered(self, for_training: bool) -> list[list[Any]]:
        """What each of them has from each rank: a list of those of one rank, of each rank. All ranks call it."""
        return self._allgather([each.reducer.per_slot_reduce() for each in self._chosen(for_training)])

    def _chosen(self, for_training: bool) -> list[_Wrapped]:
        return [each for each in self._wrapped if (each.for_training if for_training else each.for_validation)]

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """The metrics of the reducers for training, or for validation. All ranks call it. Raises InvalidInput."""
        chosen = self._chosen(for_training)
        if not chosen:
            return {}
        gathered = self.gathered(for_training)
        metrics: dict[str, Any] = {}
        for each, of_ranks in zip(chosen, zip(*gathered)):
            value = each.reducer.cross_slot_reduce(list(of_ranks))
            if isinstance(value, Mapping) != (each.name is None):
                gives = "a dict of metrics" if each.name is None else "one value"
                raise InvalidInput(
                    f"the reducer {each.name or type(each.reducer).__name__} must give {gives}, not "
                    f"{type(value).__name__}: wrap_reducer(..., name=...) decides which"
                )
            metrics.update(value if each.name is None else {each.name: value})
        return metrics
