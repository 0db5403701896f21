"""Batches: where they come from, in an order that a paused run goes on with exactly, and how they get to the device."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import torch
from torch.utils import data

from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.pytorch import samplers

#: Samplers of PyTorch's that draw random numbers.
_DRAW = (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)

#: What `to_device` gives: tensors, or lists, tuples and dicts of them.
TorchData = Union[dict[str, torch.Tensor], list[torch.Tensor], tuple[torch.Tensor, ...], torch.Tensor]

_ITERABLE = (
    "pytorch.DataLoader cannot share out or continue a data set that is iterated over (IterableDataset). Return a "
    "torch.utils.data.DataLoader instead and call context.experimental.disable_dataset_reproducibility_checks() in "
    "__init__: shuffling, sharing out among ranks and skipping what was trained are up to the data set then"
)


@dataclass(frozen=True)
class DataShare:
    """Which part of the data is a rank's, and what becomes of its metrics."""

    rank: int
    size: int
    #: Whether it has data loaders, and whether its metrics count.
    loads: bool = True
    reports: bool = True
    #: How many batches of its loader make a batch of the loop.
    micro_batches: int = 1


class DataLoader:
    """As `torch.utils.data.DataLoader`, with its arguments; the loop makes the real one of it, which repeats, is shared
    out among ranks and begins where the run was paused.

    With ``shuffle``, the order comes from the trial's seed: the same in a run that was paused as in one that was not.
    Raises InvalidInput for a data set that is iterated over and where nothing makes batches, ValueError as PyTorch.
    """

    def __init__(
        self,
        dataset: data.Dataset[Any],
        batch_size: Optional[int] = 1,
        shuffle: bool = False,
        sampler: Optional[data.Sampler[Any]] = None,
        batch_sampler: Optional[data.Sampler[list[int]]] = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[list[Any]], Any]] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        generator: Optional[torch.Generator] = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
    ) -> None:
        if isinstance(dataset, data.IterableDataset):
            raise InvalidInput(_ITERABLE)
        if not hasattr(dataset, "__getitem__"):
            raise InvalidInput(
                f"the data set of pytorch.DataLoader is a {type(dataset).__name__}: it takes items by their number. Of "
                "what can be read once only, as a generator, make a list: list(...)"
            )
        if batch_sampler is None and batch_size is None:
            raise InvalidInput("pytorch.DataLoader needs a batch_size or a batch_sampler: it counts in batches")
        if shuffle and sampler is not None:
            raise ValueError("give shuffle or a sampler, not both")
        self._shuffle: Optional[samplers.SeededShuffle] = None
        #: What a sampler of PyTorch's is given that has none.
        self._drawn_from = torch.Generator()
        if shuffle and generator is None and batch_sampler is None:
            sampler = self._shuffle = samplers.SeededShuffle(dataset)  # type: ignore[arg-type]
            shuffle = False
        self._rest: dict[str, Any] = {
            "num_workers": num_workers,
            "pin_memory": pin_memory,
            "timeout": timeout,
            "worker_init_fn": worker_init_fn,
            "multiprocessing_context": multiprocessing_context,
            "generator": generator,
            "prefetch_factor": prefetch_factor,
            "persistent_workers": persistent_workers,
        }
        # It checks all of it, as its users know it, and starts no worker yet.
        self._model = data.DataLoader(
            dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
            drop_last=drop_last,
            **self._rest,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def __len__(self) -> int:
        """Number of batches of one pass, of all ranks."""
        return len(self._model)

    def __iter__(self) -> Iterator[Any]:
        """One pass, as PyTorch's own: for use without a Trainer."""
        return iter(self.get_data_loader())

    def seed_shuffle(self, seed: int) -> None:
        """The order comes from ``seed``, and begins anew, where this loader shuffles and was given no generator."""
        if self._shuffle is not None:
            self._shuffle.begin(seed)
            return
        for drawn in (self._model.sampler, getattr(self._model.batch_sampler, "sampler", None)):
            if isinstance(drawn, _DRAW) and drawn.generator in (None, self._drawn_from):
                # It would draw from what the training draws from, and a run that goes on has drawn less by then.
                drawn.generator = self._drawn_from.manual_seed(seed)

    def get_data_loader(
        self, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
    ) -> data.DataLoader[Any]:
        """PyTorch's loader of the batches of ``rank`` of ``num_replicas``, but for the first ``skip`` of them;
        ``repeat``: without end."""
        return data.DataLoader(
            self._model.dataset,
            batch_sampler=adapt_batch_sampler(
                self._model.batch_sampler,  # type: ignore[arg-type]
                repeat=repeat,
                skip=skip,
                num_replicas=num_replicas,
                rank=rank,
            ),
            collate_fn=self._model.collate_fn,
            **self._rest,
        )


def begin_pass(loader: data.DataLoader[Any]) -> Iterator[Any]:
    """``iter(loader)``. Raises InvalidInput where its workers cannot be sent what they need."""
    try:
        return iter(loader)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        if not getattr(loader, "num_workers", 0) or "pickle" not in str(error):
            raise
        raise InvalidInput(
            f"the workers of a data loader cannot be started: {error}. Data set, collate_fn and worker_init_fn are "
            "sent to them: give functions and classes of a module, not a lambda or a function inside of another, or "
            "num_workers=0"
        ) from error


def adapt_batch_sampler(
    batch_sampler: data.BatchSampler, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
) -> data.BatchSampler:
    """A batch sampler that repeats, then is shared out, then skips: in that order it goes on where it was paused."""
    if repeat:
        batch_sampler = samplers.RepeatBatchSampler(batch_sampler)
    if num_replicas > 1:
        batch_sampler = samplers.DistributedBatchSampler(batch_sampler, num_replicas, rank)
    if skip > 0:
        batch_sampler = samplers.SkipBatchSampler(batch_sampler, skip)
    return batch_sampler


def data_length(data: Any) -> int:
    """Number of records of a batch: the length of the first tensor or array in it. Raises InvalidInput."""
    first = data
    if isinstance(data, Mapping) and data:
        first = next(iter(data.values()))
    elif isinstance(data, (list, tuple)) and data:
        first = data[0]
    elif not (isinstance(data, torch.Tensor) or _is_array(data)):
        first = None
    # A tensor of one number has a length, which raises.
    if hasattr(first, "__len__") and getattr(first, "ndim", 1) > 0:
        return len(first)
    raise InvalidInput(
        f"a batch of {type(data).__name__} does not say how many records it has: define get_batch_length(self, batch)"
    )


def to_device(data: Any, device: Union[str, torch.device], warned_types: Optional[set[type]] = None) -> Any:
    """Tensors and NumPy arrays, in lists, tuples and dicts too, as tensors on a device; what cannot be moved stays as
    it is, which is said once a type."""
    warned = set() if warned_types is None else warned_types
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=True)
    if type(data) is list:  # as most batches are, each time
        return [to_device(each, device, warned) for each in data]
    if callable(getattr(data, "to", None)):
        # It knows what of it stays, as a packed sequence does, and keeps its type.
        return data.to(device)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(to_device(each, device, warned) for each in data))
    if isinstance(data, (list, tuple)):
        return type(data)(to_device(each, device, warned) for each in data)
    if isinstance(data, Mapping):
        return {name: to_device(each, device, warned) for name, each in data.items()}
    if _is_array(data) and data.dtype.kind in "biufc":
        return torch.from_numpy(data).to(device)
    if type(data) not in warned:
        warned.add(type(data))
        say(f"values of type {type(data).__name__} in batches are not moved to {device}")
    return data


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
