"""Samplers to build a sequence of samples from that a paused run goes on with exactly: shuffle, then repeat, then
share out among ranks, then skip what was trained. Each wraps another, of samples or of batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from itertools import islice
from typing import Any, cast

import torch
from torch.utils.data import BatchSampler, Sampler


def _length(sampler: object) -> int:
    return len(cast(Sized, sampler))


class RepeatSampler(Sampler[Any]):
    """A sampler again and again, without end; its length is that of one pass."""

    def __init__(self, sampler: Sampler[Any]) -> None:
        self._sampler = sampler

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        while True:
            empty = True
            for index in self._sampler:
                empty = False
                yield index
            if empty:
                return


class RepeatBatchSampler(BatchSampler):
    """A batch sampler again and again, without end; its length is that of one pass."""

    def __init__(self, batch_sampler: BatchSampler) -> None:
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        return _length(self.batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(RepeatSampler(self.batch_sampler))


class DistributedSampler(Sampler[Any]):
    """Of ``num_workers`` ranks the share of one: each ``num_workers``-th sample. Unlike PyTorch's it takes any sampler,
    and drops and doubles nothing."""

    def __init__(self, sampler: Sampler[Any], num_workers: int, rank: int) -> None:
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank must be from 0 to num_workers - 1, not {rank} of {num_workers}")
        self._sampler = sampler
        self._num_workers = num_workers
        self._rank = rank

    def __len__(self) -> int:
        return (_length(self._sampler) - self._rank + self._num_workers - 1) // self._num_workers

    def __iter__(self) -> Iterator[Any]:
        return islice(self._sampler, self._rank, None, self._num_workers)


class DistributedBatchSampler(BatchSampler):
    """Of ``num_workers`` ranks the share of one: each ``num_workers``-th batch. Without repetition, ranks may get one
    batch more or less than others."""

    def __init__(self, batch_sampler: BatchSampler, num_workers: int, rank: int) -> None:
        self._shared = DistributedSampler(batch_sampler, num_workers, rank)
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.rank = rank

    def __len__(self) -> int:
        return len(self._shared)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._shared)


class SkipSampler(Sampler[Any]):
    """All but the first ``skip``; its length is that without the skip. For batches of one size only: what was trained
    is counted in batches."""

    def __init__(self, sampler: Sampler[Any], skip: int) -> None:
        self._sampler = sampler
        self._skip = skip

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        return islice(self._sampler, self._skip, None)


class SkipBatchSampler(BatchSampler):
    """All but the first ``skip`` batches; its length is that without the skip."""

    def __init__(self, batch_sampler: BatchSampler, skip: int) -> None:
        self.batch_sampler = batch_sampler
        self.skip = skip

    def __len__(self) -> int:
        return _length(self.batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return islice(self.batch_sampler, self.skip, None)


class ReproducibleShuffleSampler(Sampler[Any]):
    """A sampler in an order that depends on ``seed`` and on which pass it is; another one in each."""

    def __init__(self, sampler: Sampler[Any], seed: int) -> None:
        self._sampler = sampler
        self._random = random.Random(seed)

    def __len__(self) -> int:
        return _length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        order = list(self._sampler)
        self._random.shuffle(order)
        return iter(order)


class ReproducibleShuffleBatchSampler(BatchSampler):
    """Batches in such an order. The samples of a batch stay together: shuffle samples where you can."""

    def __init__(self, batch_sampler: BatchSampler, seed: int) -> None:
        self._batch_sampler = batch_sampler
        self._shuffled = ReproducibleShuffleSampler(batch_sampler, seed)

    def __len__(self) -> int:
        return _length(self._batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._shuffled)


class SeededShuffle(Sampler[int]):
    """All samples of a data set in an order that depends on ``seed`` and on which pass it is, and on nothing else."""

    def __init__(self, data_source: Sized) -> None:
        self._data_source = data_source
        #: None: the seed that PyTorch was given last.
        self.seed: int | None = None
        self._passes = 0

    def __len__(self) -> int:
        return len(self._data_source)

    def begin(self, seed: int) -> None:
        """From here on with this seed, as if there had been no pass."""
        self.seed = seed
        self._passes = 0

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator()
        seed = torch.initial_seed() if self.seed is None else self.seed
        # One multiple of a large odd number per pass: no pass of a run is that of another with the next seed.
        generator.manual_seed((seed + 0x9E3779B97F4A7C15 * self._passes) % 2**63)
        self._passes += 1
        order: list[int] = torch.randperm(len(self._data_source), generator=generator).tolist()
        return iter(order)
