"""Batches: which, in which order, and how they get to the device."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils import data

from tenax import pytorch
from tenax.errors import InvalidInput
from tenax.pytorch import samplers
from tenax.pytorch.data import begin_pass

TEN: Any = range(10)
#: Four batches of a pass, the last one smaller.
BATCHES = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def batches() -> data.BatchSampler:
    return data.BatchSampler(data.SequentialSampler(TEN), 3, drop_last=False)


def seen(loader: Any, count: int | None = None) -> list[list[int]]:
    return [batch.tolist() for batch in islice(loader, count)]


# Samplers.


def test_what_repeats_has_the_length_of_one_pass() -> None:
    """Of samples and of batches; one of nothing ends."""
    repeated = samplers.RepeatSampler(data.SequentialSampler(TEN))
    assert len(repeated) == 10
    assert list(islice(repeated, 12)) == [*range(10), 0, 1]
    assert list(islice(samplers.RepeatBatchSampler(batches()), 6)) == [*BATCHES, *BATCHES[:2]]
    assert list(samplers.RepeatSampler(data.SequentialSampler([]))) == []


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 11])
def test_ranks_share_all_and_nothing_is_anothers(ranks: int) -> None:
    """However many; the length said is that had."""
    shares = [samplers.DistributedSampler(data.SequentialSampler(TEN), ranks, rank) for rank in range(ranks)]
    assert sorted(sample for share in shares for sample in share) == list(range(10))
    of_batches = [samplers.DistributedBatchSampler(batches(), ranks, rank) for rank in range(ranks)]
    assert sorted(batch for share in of_batches for batch in share) == BATCHES
    assert all(len(list(share)) == len(share) for share in (*shares, *of_batches))


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_is_none_is_refused(rank: int) -> None:
    """It would silently train nothing, or another's."""
    with pytest.raises(ValueError, match="rank must be from 0 to num_workers - 1"):
        samplers.DistributedBatchSampler(batches(), 2, rank)


def test_what_is_skipped_is_of_the_first_pass() -> None:
    """The length stays: an epoch of a run that goes on is as long as before."""
    skipped = samplers.SkipBatchSampler(batches(), 3)
    assert list(skipped) == [[9]]
    assert len(skipped) == 4
    assert list(samplers.SkipSampler(data.SequentialSampler(TEN), 8)) == [8, 9]


def test_a_shuffle_depends_on_the_seed_and_the_pass() -> None:
    """Of samples and of whole batches."""

    def passes(seed: int) -> list[list[int]]:
        shuffled = samplers.ReproducibleShuffleSampler(data.SequentialSampler(TEN), seed)
        return [list(shuffled), list(shuffled)]

    assert passes(1) == passes(1) != passes(2)
    assert passes(1)[0] != passes(1)[1]
    assert all(sorted(each) == list(TEN) for each in passes(1))
    assert sorted(samplers.ReproducibleShuffleBatchSampler(batches(), 4)) == BATCHES


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("skip", [0, 1, 3, 4, 9])
def test_a_run_that_goes_on_has_the_batches_that_are_left(ranks: int, skip: int) -> None:
    """On each rank, over several passes."""
    for rank in range(ranks):
        options = {"num_replicas": ranks, "rank": rank, "repeat": True}
        whole = list(islice(pytorch.adapt_batch_sampler(batches(), **options), 20))  # type: ignore[arg-type]
        rest = pytorch.adapt_batch_sampler(batches(), skip=skip, **options)  # type: ignore[arg-type]
        assert list(islice(rest, 20 - skip)) == whole[skip:]


# The loader.


def test_it_takes_what_pytorchs_takes() -> None:
    """Batches, their size and number, what makes them, and what is left over."""
    loader = pytorch.DataLoader(TEN, batch_size=3, collate_fn=lambda each: torch.tensor(each) * 2)
    assert seen(loader) == [[2 * sample for sample in batch] for batch in BATCHES]
    assert (len(loader), loader.batch_size, loader.dataset) == (4, 3, TEN)
    assert len(pytorch.DataLoader(TEN, batch_size=3, drop_last=True)) == 3
    assert seen(pytorch.DataLoader(TEN, batch_sampler=[[1, 2], [5]])) == [[1, 2], [5]]  # type: ignore[arg-type]
    assert seen(loader.get_data_loader(repeat=True, skip=1, num_replicas=2, rank=1), 2) == [[18], [6, 8, 10]]


class Endless(data.IterableDataset[int]):
    """No index, no length."""

    def __iter__(self) -> Iterator[int]:
        return iter(TEN)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"dataset": Endless()}, InvalidInput, "call context.experimental.disable_dataset_reproducibility_checks"),
        ({"dataset": iter(TEN)}, InvalidInput, "it takes items by their number. Of what can be read once only"),
        ({"dataset": TEN, "batch_size": None}, InvalidInput, "needs a batch_size or a batch_sampler"),
        ({"dataset": TEN, "shuffle": True, "sampler": [1]}, ValueError, "give shuffle or a sampler, not both"),
        ({"dataset": TEN, "batch_size": 0}, ValueError, "batch_size"),
        ({"dataset": TEN, "batch_size": 2, "batch_sampler": [[1]]}, ValueError, "mutually exclusive"),
        ({"dataset": TEN, "persistent_workers": True}, ValueError, "num_workers > 0"),
    ],
)
def test_what_it_cannot_do_is_said_where_it_is_made(options: Any, error: type[Exception], said: str) -> None:
    """And not at the first batch."""
    with pytest.raises(error, match=said):
        pytorch.DataLoader(**options)


def drawing(kind: str) -> pytorch.DataLoader:
    """Loaders whose order is random, in each way to ask for it."""
    if kind == "shuffle":
        return pytorch.DataLoader(TEN, batch_size=3, shuffle=True)
    weighted = data.WeightedRandomSampler([1.0 + sample for sample in TEN], 10)
    drawn: Any = {"random": data.RandomSampler(TEN), "subset": data.SubsetRandomSampler(TEN), "weighted": weighted}
    name, _, in_batches = kind.partition(" ")
    if in_batches:
        return pytorch.DataLoader(TEN, batch_sampler=data.BatchSampler(drawn[name], 3, drop_last=False))
    return pytorch.DataLoader(TEN, batch_size=3, sampler=drawn[name])


@pytest.mark.parametrize("kind", ["shuffle", "random", "subset", "weighted", "random batches", "weighted batches"])
def test_a_random_order_comes_from_the_seed_and_not_from_what_was_drawn_before(kind: str) -> None:
    """The training draws random numbers, too: a run that goes on has drawn others by then."""

    def order(seed: int, drawn: int) -> list[list[int]]:
        loader = drawing(kind)
        loader.seed_shuffle(seed)
        torch.rand(drawn)
        return seen(loader.get_data_loader(repeat=True), 8)

    assert order(3, 0) == order(3, 5) != order(4, 0)


@pytest.mark.parametrize("kind", ["shuffle", "random", "weighted batches"])
def test_a_loader_that_is_used_again_begins_anew(kind: str) -> None:
    """As one that is made anew for each `Trainer.fit`: batches are left out by their number."""
    loader = drawing(kind)
    orders = []
    for _ in range(2):
        loader.seed_shuffle(3)
        orders.append(seen(loader.get_data_loader(repeat=True), 8))
    assert orders[0] == orders[1]


def test_a_generator_of_ones_own_is_kept() -> None:
    """Who gives one decides the order."""
    orders = []
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(7)
        loader = pytorch.DataLoader(TEN, batch_size=3, shuffle=True, generator=generator)
        loader.seed_shuffle(seed)
        orders.append(seen(loader.get_data_loader()))
    assert orders[0] == orders[1]


# Batches.


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(5, 2),
        numpy.zeros((5, 2)),
        {"x": torch.zeros(5), "y": 3},
        [torch.zeros(5, 2), torch.zeros(1)],
        (torch.zeros(5), None),
        {"text": ["a"] * 5},
    ],
)
def test_a_batch_is_as_long_as_its_first_part(batch: Any) -> None:
    """Tensors, arrays, lists of texts."""
    assert pytorch.data_length(batch) == 5


@pytest.mark.parametrize("batch", [None, 5, {}, [], torch.tensor(1.0), {"x": torch.tensor(1.0)}, [3, 4], object()])
def test_a_batch_without_a_length_is_to_be_told(batch: Any) -> None:
    """A tensor of one number has none either."""
    with pytest.raises(InvalidInput, match=r"define get_batch_length\(self, batch\)"):
        pytorch.data_length(batch)


Pair = collections.namedtuple("Pair", "x y")


class Movable(collections.UserDict[str, Any]):
    """As tokenizers give: a mapping that moves itself and is asked by attribute."""

    moved: Any = None

    def to(self, device: Any) -> Movable:
        moved = Movable(self)
        moved.moved = device
        return moved


def test_parts_of_a_batch_move_and_keep_their_kind() -> None:
    """Lists, tuples, named tuples and dicts in one another; arrays become tensors."""
    meta = torch.device("meta")
    given = {"pair": Pair(torch.zeros(2), [torch.zeros(1)]), "array": (numpy.zeros(3),)}
    moved = pytorch.to_device(given, meta)
    assert isinstance(moved["pair"], Pair)
    assert moved["pair"].x.device == moved["pair"].y[0].device == moved["array"][0].device == meta
    assert isinstance(moved["array"], tuple)


def test_what_moves_itself_is_asked_to() -> None:
    """It was taken apart: a mapping lost its type, and a packed sequence its order."""
    moved = pytorch.to_device([Movable(x=1)], "cpu")[0]
    assert isinstance(moved, Movable)
    assert moved.moved == "cpu"
    packed = pytorch.to_device(pack_sequence([torch.ones(3), torch.ones(2)]), "meta")
    assert packed.data.device.type == "meta"
    assert packed.batch_sizes.device.type == "cpu"


def test_what_cannot_move_stays_and_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Once a type."""
    known: set[type] = set()
    for _ in range(3):
        assert pytorch.to_device(["a", 1, "b"], "cpu", known) == ["a", 1, "b"]
    said = capsys.readouterr().err
    assert said.count("values of type str in batches are not moved to cpu") == 1
    assert said.count("values of type int") == 1


def test_what_workers_cannot_be_sent() -> None:
    """Where they are not forked, which is the rule from Python 3.14 on."""
    loader = pytorch.DataLoader(TEN, num_workers=1, multiprocessing_context="spawn", collate_fn=lambda batch: batch)
    with pytest.raises(InvalidInput, match="give functions and classes of a module, not a lambda"):
        begin_pass(loader.get_data_loader())
