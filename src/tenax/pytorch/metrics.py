"""Metrics of batches, from tensors on a device to the numbers of a report: one copy of many batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import torch

from tenax.errors import InvalidInput
from tenax.pytorch.reducers import Reducer, reduce_batches, reducer_of_each


def of_batch(given: Any, who: str) -> dict[str, Any]:
    """What a trial's ``train_batch`` gave, apart from its graph and from what it writes next. Raises InvalidInput."""
    if isinstance(given, torch.Tensor):
        return {"loss": _apart(given)}
    if type(given) is not dict and not isinstance(given, Mapping):
        example = '{"loss": loss}, or the loss as a tensor' if who == "train_batch" else '{"accuracy": 0.9}'
        raise InvalidInput(f"{who}() must return a dict of metrics, such as {example}, not {type(given).__name__}")
    return {str(name): _apart(value) if isinstance(value, torch.Tensor) else value for name, value in given.items()}


def _apart(tensor: torch.Tensor) -> torch.Tensor:
    own = tensor.detach().clone()
    return own if own.layout is torch.strided else own.to_dense()


def plain(batches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same with numbers and lists for tensors."""
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for batch in batches for name in batch):
        values = [batch[name] for batch in batches if name in batch]
        if all(isinstance(value, torch.Tensor) and value.numel() == 1 for value in values):
            if all(value.is_cpu for value in values) and len({value.dtype for value in values}) == 1:
                columns[name] = [value.item() for value in values]
            else:
                # From a device all are copied at once.
                columns[name] = torch.stack([value.reshape(()) for value in values]).tolist()
        else:
            columns[name] = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    at = dict.fromkeys(columns, 0)
    rows = []
    for batch in batches:
        row = {}
        for name in batch:
            row[name] = columns[name][at[name]]
            at[name] += 1
        rows.append(row)
    return rows


def averages(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each metric the average of the batches that have it; what is no number has none."""
    result = {}
    for name in dict.fromkeys(name for batch in batches for name in batch):
        values = [batch[name] for batch in batches if name in batch]
        if all(_numeric(value) for value in values):
            result[name] = reduce_batches(name, Reducer.AVG, values)
    return result


def of_all_ranks(by_rank: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Batch by batch the average of the ranks that trained it."""
    result = []
    for batches in zip(*by_rank):
        row = averages(batches)
        row.update({name: value for name, value in batches[0].items() if name not in row})
        result.append(row)
    return result


def validation(by_rank: Sequence[tuple[Mapping[str, Any], int]], how: Any) -> dict[str, Any]:
    """One value a metric, from what each rank made of its batches, and of how many. Raises InvalidInput for none."""
    counted = [(metrics, batches) for metrics, batches in by_rank if batches]
    if not counted:
        raise InvalidInput("the validation data is empty: build_validation_data_loader() gave no batch")
    reducers = reducer_of_each(how, counted[0][0])
    weights = [batches for _, batches in counted]
    return {
        name: reduce_batches(name, reducer, [metrics[name] for metrics, _ in counted], weights)
        for name, reducer in reducers.items()
    }


def of_rank(batches: Sequence[Mapping[str, Any]], how: Any) -> dict[str, Any]:
    """What a rank makes of its batches; nothing where it had none. Raises InvalidInput where their names differ."""
    if not batches:
        return {}
    names = batches[0].keys()
    for batch in batches:
        if batch.keys() != names:
            raise InvalidInput(
                f"evaluate_batch() must give the same metrics for each batch: {', '.join(names)} at first, and then "
                f"{', '.join(batch) or 'none'}"
            )
    reducers = reducer_of_each(how, names)
    return {
        name: reduce_batches(name, reducer, [batch[name] for batch in batches]) for name, reducer in reducers.items()
    }


def _numeric(value: Any) -> bool:
    if type(value) is float:
        return True
    if isinstance(value, list):
        return bool(value) and all(map(_numeric, value))
    return isinstance(value, Real)
