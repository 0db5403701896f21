"""Checkpoints that are stored while the training goes on are those of the moment at which they were made."""

from __future__ import annotations

import collections
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from tenax import core, pytorch
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch import saving
from tenax.pytorch import state as states
from tenax.storage.port import StorageFailed
from tests.pytorch.trials import Digits, StopAfter, directory_of

LENGTH = 18
EVERY = pytorch.Batch(5)


class Watched(Digits):
    """Writes down what is stored, and after which batch it got to know."""

    def __init__(self, context: pytorch.PyTorchTrialContext, reports: int | None = None) -> None:
        super().__init__(context)
        self.watch = StopAfter(context, reports)
        #: Has a state that changes in place with each batch.
        self.count = Counting()

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch, "count": self.count}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.count.batches.append(batch_idx)
        self.count.total += batch_idx
        return super().train_batch(batch, epoch_idx, batch_idx)


class Counting(pytorch.PyTorchCallback):
    """Gives what it has itself, not a copy."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.total = torch.zeros(3)

    def state_dict(self) -> dict[str, Any]:
        return {"batches": self.batches, "total": self.total, "again": self.total[1:]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.batches, self.total = state_dict["batches"], state_dict["total"]


def train(trial_class: type[Watched] = Watched, reports: int | None = None, **fit: Any) -> Watched:
    torch.manual_seed(11)
    with pytorch.init() as context:
        trial = trial_class(context, reports)
        options: dict[str, Any] = {"max_length": pytorch.Batch(LENGTH), "checkpoint_period": EVERY, **fit}
        pytorch.Trainer(trial, context).fit(**options)
        return trial


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if type(one).__module__ == "numpy":
        return bool((one == other).all())
    return bool(one == other)


class Slow:
    """Copies are written only once the training is so far: the state has changed by then, all over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, until: int) -> None:
        self.writing, self.reached, self.until = threading.Event(), threading.Event(), until
        save = torch.save

        def saving_late(*arguments: Any, **named: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                self.writing.set()
                assert self.reached.wait(240)
            save(*arguments, **named)

        monkeypatch.setattr(torch, "save", saving_late)

    def trial(self) -> type[Watched]:
        slow = self

        class Reaching(Watched):
            def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
                if batch_idx >= slow.until:
                    slow.reached.set()
                return super().train_batch(batch, epoch_idx, batch_idx)

        return Reaching


def test_it_is_the_checkpoint_of_that_moment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is trained until it is written: its state is that of a save at once, and a run from it is the run."""
    whole = train(async_checkpoints=False)
    with monkeypatch.context() as patch:
        late = train(Slow(patch, 8).trial(), async_checkpoints=True)
    assert late.seen == whole.seen
    assert len(late.watch.stored) == len(whole.watch.stored) == 4
    for one, other in zip(late.watch.stored, whole.watch.stored, strict=True):
        assert same(states.read(directory_of(one, here)), states.read(directory_of(other, here)))
    for stored, first in zip(late.watch.stored, (5, 10, 15), strict=False):
        rest = train(latest_checkpoint=stored, async_checkpoints=True)
        assert rest.seen == whole.seen[first:]
        assert rest.parameters() == whole.parameters()
        assert rest.count.batches == list(range(LENGTH))


def test_callbacks_get_to_know_when_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before; at the latest when the next one is made."""
    slow = Slow(monkeypatch, 8)
    after: list[int] = []

    class Noting(slow.trial()):  # type: ignore[misc]
        def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
            self.watch.on_checkpoint_upload_end = lambda uuid: after.append(len(self.seen))  # type: ignore[method-assign]
            return super().build_callbacks()

    train(Noting, async_checkpoints=True, reporting_period=pytorch.Batch(1))
    assert 8 < after[0] <= 10
    assert after[1:] == sorted(after[1:])
    assert after[-1] == LENGTH


def test_who_is_asked_to_stop_waits_until_it_is_stored(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is on its way, and the last one; the run goes on from there as if it had not stopped."""
    first = train(Slow(monkeypatch, 6).trial(), 2, async_checkpoints=True, reporting_period=pytorch.Batch([7]))
    assert len(first.seen) == 7
    assert len(first.watch.stored) == 2
    assert all(directory_of(uuid, here).is_dir() for uuid in first.watch.stored)
    assert train(latest_checkpoint=first.watch.stored[-1]).parameters() == train().parameters()


def test_a_save_that_fails_ends_the_training(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next checkpoint, or in the end: with words that say what to do."""
    slow = Slow(monkeypatch, 8)

    class Removing(slow.trial()):  # type: ignore[misc]
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            if batch_idx == 8:
                assert slow.writing.wait(240)
                shutil.rmtree(here / "checkpoints")
            return super().train_batch(batch, epoch_idx, batch_idx)  # type: ignore[no-any-return]

    with pytest.raises(StorageFailed, match="is gone: was its storage removed"):
        train(Removing, async_checkpoints=True)


class Looking(Watched):
    """Adds a file to each checkpoint before it is stored."""

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        self.watch.on_checkpoint_upload_end = lambda uuid: self.watch.stored.append(uuid)  # type: ignore[method-assign]
        return {**super().build_callbacks(), "adds": Adding()}


class Adding(pytorch.PyTorchCallback):
    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        (Path(checkpoint_dir) / "added").write_text("x")


def test_a_callback_that_looks_into_the_directory_holds_the_training(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said once, with its name; what it adds is stored."""
    trial = train(Looking, async_checkpoints=True)
    assert all((directory_of(uuid, here) / "added").exists() for uuid in trial.watch.stored)
    said = capsys.readouterr().err
    assert said.count("the training waits while checkpoints are stored: the callback 'adds' works on each") == 1


@pytest.mark.parametrize(
    ("large", "left", "chosen", "in_background"),
    [
        (True, 1e12, None, True),
        (False, 1e12, None, False),
        (True, 1e3, None, False),
        (True, 1e3, True, False),
        (False, 1e12, True, True),
        (True, 1e12, False, False),
    ],
)
def test_when_it_is_stored_in_the_background(
    monkeypatch: pytest.MonkeyPatch, large: bool, left: float, chosen: bool | None, in_background: bool
) -> None:
    """Large states by themselves, where there is memory for a copy; never the last one, which nothing goes on after."""
    threads: list[bool] = []
    save = torch.save

    def noting(*arguments: Any, **named: Any) -> None:
        threads.append(threading.current_thread() is not threading.main_thread())
        save(*arguments, **named)

    monkeypatch.setattr(torch, "save", noting)
    monkeypatch.setattr("tenax.pytorch.state_copy.memory_left", lambda: left)
    if large:
        monkeypatch.setattr(saving, "_LARGE", 100)
    train(async_checkpoints=chosen)
    assert threads == [in_background] * 3 + [False]


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="async_checkpoints must be True, False or None, not 'yes'"):
        train(async_checkpoints="yes")


Named = collections.namedtuple("Named", ["first", "second"])


def test_a_copy_has_all_that_can_be_saved(tmp_path: Path) -> None:
    """As torch.save has it: shared memory stays shared, and what is saved later is not what it became meanwhile."""
    base = torch.arange(10.0)
    weight = torch.nn.Parameter(torch.ones(2, 3))
    weight.grad = torch.zeros(2, 3)
    state = {
        "views": Named(base[2:5], base.reshape(2, 5).t()),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "empty": torch.empty(0, 4),
        "scalar": torch.tensor(3, dtype=torch.int64),
        "sparse": torch.eye(3).to_sparse(),
        "complex": torch.tensor([1 + 2j]).conj(),
        "parameter": weight,
        "twice": [base, base],
        "plain": {"list": [1, 2], "text": "x", "none": None},
    }
    torch.save(state, tmp_path / "at once.pt")
    write = pytorch.StateCopy().take(state)
    base.zero_()
    state["plain"]["list"].append(3)  # type: ignore[index, union-attr]
    with torch.no_grad():
        weight.zero_()
    write(tmp_path)
    here, there = (torch.load(tmp_path / name, weights_only=False) for name in ("state.pt", "at once.pt"))
    for name in state:
        one, other = (each.to_dense() if name == "sparse" else each for each in (here[name], there[name]))
        assert same(one, other), name
    assert isinstance(here["parameter"], torch.nn.Parameter)
    assert here["twice"][0] is here["twice"][1]
    here["twice"][0].fill_(7)
    assert here["views"].first.tolist() == [7, 7, 7]


def test_copies_use_the_same_memory_and_one_at_a_time(tmp_path: Path) -> None:
    """A later one replaces the one before, which is written no more; a smaller and a larger one fit."""
    copied = pytorch.StateCopy()
    first = copied.take({"x": torch.zeros(1000)}, "first.pt")
    block = copied._block
    second = copied.take({"x": torch.ones(900)}, "second.pt")
    assert copied._block is block
    with pytest.raises(NotNow, match="another copy was taken"):
        first(tmp_path)
    second(tmp_path)
    copied.take({"x": torch.ones(100_000)}, "third.pt")(tmp_path)
    assert torch.equal(torch.load(tmp_path / "second.pt")["x"], torch.ones(900))
    assert torch.equal(torch.load(tmp_path / "third.pt")["x"], torch.ones(100_000))
    assert not (tmp_path / "first.pt").exists()


def test_what_cannot_be_saved_is_an_error_at_once() -> None:
    """And not in the background, where nobody sees which line it was."""
    with pytest.raises(InvalidInput, match="has what cannot be pickled, as a lambda"):
        pytorch.StateCopy().take({"f": lambda: None})


def test_a_loop_of_ones_own(here: Path) -> None:
    """The same with the calls of tenax.core."""
    model = torch.nn.Linear(3, 3)
    copied = pytorch.StateCopy()
    with core.init() as context:
        before = model.weight.clone()
        pending = context.checkpoint.store_async(
            lambda: copied.take({"model": model.state_dict()}), {"steps_completed": 1}
        )
        with torch.no_grad():
            model.weight.zero_()
        with context.checkpoint.restore_path(pending.storage_id) as path:
            assert torch.equal(torch.load(path / "state.pt")["model"]["weight"], before)
