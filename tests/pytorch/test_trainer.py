"""The loop: what is called in which order, when it validates and stores, and what it says to mistakes."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import data

from tenax import pytorch
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.load import CheckpointLoadContext
from tests.kits.ranks import on_ranks

#: y = x, twelve samples.
NUMBERS = torch.arange(12.0).reshape(12, 1)


class Line(pytorch.PyTorchTrial):
    """Four batches an epoch; what it does is written down, and what it gives can be set."""

    batch_size: int = 3
    #: Instead of its own, where not None.
    training_data: Any = None
    validation_data: Any = None
    metrics: Any = None
    options: Any = None

    def __init__(self, context: Any, *others: pytorch.PyTorchCallback) -> None:
        self.context = context
        self.events: list[str] = []
        self.model = context.wrap_model(nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 1e-3))
        self.callbacks: Any = {"told": Told(self.events), **{f"{number}": each for number, each in enumerate(others)}}

    def build_training_data_loader(self) -> Any:
        self.events.append("data")
        if self.training_data is not None:
            return type(self).training_data()
        return pytorch.DataLoader(NUMBERS, batch_size=self.batch_size, **(self.options or {}))  # type: ignore[arg-type]

    def build_validation_data_loader(self) -> Any:
        if self.validation_data is not None:
            return type(self).validation_data()
        return pytorch.DataLoader(NUMBERS, batch_size=6)  # type: ignore[arg-type]

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        self.events.append(f"train {epoch_idx} {batch_idx}")
        loss = ((self.model(batch) - batch) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss} if self.metrics is None else self.metrics(batch_idx)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]
        assert not self.model.training
        assert not torch.is_grad_enabled()
        self.events.append("evaluate")
        return {"error": (self.model(batch) - batch).abs().mean()}

    def build_callbacks(self) -> Any:
        return self.callbacks


class Told(pytorch.PyTorchCallback):
    """Writes down each call, and keeps how many there were."""

    def __init__(self, events: list[str]) -> None:
        self.events, self.stored, self.validations = events, list[str](), list[dict[str, Any]]()
        self.averages: list[dict[str, Any]] = []
        self.kept = 0

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        self.events.append(f"startup {first_batch_idx} {checkpoint_uuid is not None}")

    def on_trial_shutdown(self) -> None:
        self.events.append("shutdown")

    def on_training_start(self) -> None:
        self.events.append("start")

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        self.events.append(f"epoch start {epoch_idx}")

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.events.append(f"epoch end {epoch_idx}")

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]) -> None:
        self.events.append(f"report {len(batch_metrics)}")
        self.averages.append(avg_metrics)

    def on_validation_start(self) -> None:
        self.events.append("validation")

    def on_validation_epoch_start(self) -> None:
        self.events.append("validation epoch")

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        self.events.append(f"validation epoch end {len(outputs)}")

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.events.append("validation end")
        self.validations.append(metrics)

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        self.events.append("load")

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        self.events.append("save")

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        self.events.append("checkpoint end")

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        self.events.append("written")
        (Path(checkpoint_dir) / "mine.txt").write_text("kept")

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.events.append("stored")
        self.stored.append(uuid)

    def state_dict(self) -> dict[str, Any]:
        return {"kept": self.kept + 1}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.events.append("state")
        self.kept = state_dict["kept"]


def train(kind: type[Line] = Line, *others: pytorch.PyTorchCallback, batches: int = 4, **fit: Any) -> Any:
    """A trial that was trained so many batches."""
    torch.manual_seed(3)
    with pytorch.init() as context:
        trial = kind(context, *others)
        pytorch.Trainer(trial, context).fit(**{"max_length": pytorch.Batch(batches), **fit})
        return trial


def kind_with(**attributes: Any) -> type[Line]:
    return type("Line", (Line,), attributes)


def when(trial: Any, what: str) -> list[int]:
    """After how many batches."""
    counts, batches = [], 0
    for event in trial.events:
        batches += event.startswith("train ")
        if event == what:
            counts.append(batches)
    return counts


def test_callbacks_are_called_in_order() -> None:
    """From start to end; a run that goes on reads its state first."""
    trial = train(batches=5, reporting_period=pytorch.Epoch(1))
    validation = ["validation", "validation epoch", "evaluate", "evaluate", "validation epoch end 2", "validation end"]
    store = ["save", "checkpoint end", "written", "stored"]
    assert trial.events == [
        *["startup 0 False", "data", "start"],
        *["epoch start 0", "train 0 0", "train 0 1", "train 0 2", "train 0 3", "epoch end 0", "report 4"],
        *["epoch start 1", "train 1 4", "report 1", *validation, *store, "shutdown"],
    ]
    rest = train(batches=6, latest_checkpoint=trial.callbacks["told"].stored[0])
    assert rest.events[:6] == ["startup 5 True", "data", "load", "state", "start", "train 1 5"]
    assert rest.callbacks["told"].kept == 1
    assert rest.model.training is False


@pytest.mark.parametrize(
    ("fit", "validated", "stored"),
    [
        ({}, [8], [8]),
        ({"validation_period": pytorch.Batch(3)}, [3, 6, 8], [3, 6, 8]),
        ({"validation_period": pytorch.Batch(3), "checkpoint_policy": "none"}, [3, 6, 8], [8]),
        ({"validation_period": pytorch.Batch(4), "checkpoint_period": pytorch.Batch(4)}, [4, 8], [4, 8]),
        ({"validation_period": pytorch.Epoch([1]), "checkpoint_period": pytorch.Batch([2, 7])}, [4, 8], [2, 4, 7, 8]),
        ({"max_length": pytorch.Epoch(2), "validation_period": pytorch.Epoch(1)}, [4, 8], [4, 8]),
        ({"step_zero_validation": True}, [0, 8], [8]),
        ({"test_mode": True}, [1], [1]),
        ({"checkpoint_period": pytorch.Epoch(1), "checkpoint_policy": "none"}, [8], [4, 8]),
    ],
)
def test_it_validates_and_stores_where_periods_end(fit: Any, validated: list[int], stored: list[int]) -> None:
    """And at the end, once."""
    trial = train(**{"batches": 8, **fit})
    assert when(trial, "validation") == validated
    assert when(trial, "stored") == stored


def test_test_mode_is_one_batch_of_each() -> None:
    """Quick, and all of it."""
    trial = train(test_mode=True, batches=500)
    assert [event for event in trial.events if event.startswith(("train", "evaluate"))] == ["train 0 0", "evaluate"]


def test_metrics_may_differ_from_batch_to_batch_and_hold_anything(here: Path) -> None:
    """The average is of the batches that have one, and of numbers."""

    def metrics(index: int) -> dict[str, Any]:
        odd = {"odd": torch.tensor(float(index))} if index % 2 else {"even": index}
        return {"nothing": None, "text": "x", "nan": float("nan"), "vector": torch.ones(2), **odd}

    trial = train(kind_with(metrics=staticmethod(metrics)))
    average = trial.callbacks["told"].averages[0]
    assert {name: average[name] for name in ("odd", "even", "vector")} == {"odd": 2.0, "even": 1.0, "vector": [1, 1]}
    assert "nothing" not in average
    assert "text" not in average
    (reports,) = here.rglob("reports.jsonl")
    said = [json.loads(line) for line in reports.read_text().splitlines()]
    assert any("odd" in json.dumps(each) for each in said)


def test_metrics_of_shapes_that_differ_are_named() -> None:
    """Of each sample a loss, and the last batch is smaller."""
    kind = kind_with(metrics=staticmethod(lambda index: {"losses": torch.zeros(index + 1)}))
    with pytest.raises(InvalidInput, match="the metric 'losses' must be a number, or an array of one shape"):
        train(kind)


def test_all_of_the_data_may_be_evaluated_at_once() -> None:
    """By one method, and neither both nor none."""

    def evaluate_full_dataset(self: Any, data_loader: Any) -> dict[str, Any]:
        return {"sum": sum(batch.sum() for batch in data_loader)}

    full = {"evaluate_full_dataset": evaluate_full_dataset}
    trial = train(kind_with(evaluate_batch=pytorch.PyTorchTrial.evaluate_batch, **full))
    assert trial.callbacks["told"].validations == [{"sum": 66.0}]
    for wrong in (full, {"evaluate_batch": pytorch.PyTorchTrial.evaluate_batch}):
        with pytest.raises(InvalidInput, match=r"evaluate_batch\(\) or evaluate_full_dataset\(\), and not both"):
            train(kind_with(**wrong))


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"training_data": lambda: pytorch.DataLoader([])}, "the training data is empty"),  # type: ignore[arg-type]
        ({"batch_size": 50, "options": {"drop_last": True}}, r"fewer than a batch where it drops the last one"),
        ({"validation_data": lambda: pytorch.DataLoader([])}, "the validation data is empty"),  # type: ignore[arg-type]
        ({"training_data": lambda: data.DataLoader(NUMBERS)}, "gave a DataLoader: give a pytorch.DataLoader"),  # type: ignore[arg-type]
        ({"training_data": lambda: [NUMBERS]}, "gave a list: give a pytorch.DataLoader"),
        ({"build_callbacks": lambda self: None}, r"must return a dict of instances .* not None"),
        ({"build_callbacks": lambda self: [Told([])]}, r"must return a dict of instances"),
        ({"build_callbacks": lambda self: {"told": Told}}, r'{"mine": MyCallback\(\)}'),
        ({"metrics": staticmethod(lambda index: 5)}, r"train_batch\(\) must return a dict of metrics"),
        ({"evaluate_batch": lambda self, batch: None}, r"evaluate_batch\(\) must return a dict of metrics, such as"),
        ({"evaluate_batch": lambda self, batch: {"f1": "high"}}, "the metric 'f1' must be a number"),
    ],
)
def test_a_trial_that_cannot_be_trained_is_told_why(attributes: dict[str, Any], said: str) -> None:
    """In words that say what to do."""
    with pytest.raises(InvalidInput, match=said):
        train(kind_with(**attributes))


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        ({"max_length": None}, r"max_length=pytorch\.Epoch\(10\) or pytorch\.Batch\(1000\), not None"),
        ({"max_length": 10}, "not 10"),
        ({"max_length": pytorch.Batch([5])}, r"not Batch\(\[5\]\)"),
        ({"max_length": pytorch.Epoch(0)}, r"not Epoch\(0\)"),
        ({"validation_period": 5}, r"validation_period must be pytorch\.Batch\(\.\.\.\) or pytorch\.Epoch"),
        ({"checkpoint_policy": "last"}, "must be one of best, all, none, not 'last'"),
        ({"latest_checkpoint": 7}, "must be the id of a checkpoint, or None, not 7"),
    ],
)
def test_what_fit_is_asked_for_is_checked_first(fit: Any, said: str) -> None:
    """Before data is loaded."""
    with pytest.raises(InvalidInput, match=said):
        train(**fit)


def test_a_checkpoint_that_is_not_there_is_looked_for_by_name() -> None:
    """With where it was looked for."""
    with pytest.raises(Exception, match="there is no checkpoint 8f04b2c3-6a55-4d33-9d5e-9f3b0f3b7a10 in"):
        train(latest_checkpoint="8f04b2c3-6a55-4d33-9d5e-9f3b0f3b7a10")


def test_a_trainer_takes_a_trial_and_its_context() -> None:
    """Neither the class nor what ``init`` gave without ``with``; and it trains inside of it alone."""
    with pytorch.init() as context:
        trial = Line(context)
        with pytest.raises(InvalidInput, match="takes an instance of your PyTorchTrial"):
            pytorch.Trainer(Line, context)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"takes what `with pytorch\.init\(\) as context` gave, not"):
            pytorch.Trainer(trial, pytorch.init())  # type: ignore[arg-type]
        bare = type("Bare", (Line,), {"__init__": lambda self, context: setattr(self, "callbacks", {})})
        context.models.clear()
        with pytest.raises(InvalidInput, match=r"no model: give each to context\.wrap_model\(\) in its __init__"):
            pytorch.Trainer(bare(context), context).fit(max_length=pytorch.Batch(1))
    with pytest.raises(NotNow, match="report inside its with-block"):
        train_outside(trial, context)


def train_outside(trial: Any, context: Any) -> None:
    context.models.append(trial.model)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1))


class Stream(data.IterableDataset[Any]):
    """Five samples, and then none; of no length."""

    def __iter__(self) -> Iterator[Any]:
        return iter(NUMBERS[:5])


class Streamed(Line):
    """With a loader of its own."""

    def __init__(self, context: Any, *others: pytorch.PyTorchCallback) -> None:
        super().__init__(context, *others)
        context.experimental.disable_dataset_reproducibility_checks()

    def build_training_data_loader(self) -> Any:
        return data.DataLoader(Stream(), batch_size=2)


def test_a_loader_of_ones_own_is_begun_again_where_it_ends() -> None:
    """Counted in batches; its epochs have no end, and a length in them would never be reached."""
    assert when(train(Streamed, batches=8, validation_period=pytorch.Batch(4)), "validation") == [4, 8]
    with pytest.raises(InvalidInput, match=r"has no length: give all lengths and periods in batches, pytorch\.Batch"):
        train(Streamed, max_length=pytorch.Epoch(1))
    for period in ("validation_period", "checkpoint_period", "reporting_period"):
        with pytest.raises(InvalidInput, match=r"fit\(\) is given Epoch\(2\)"):
            train(Streamed, batches=8, **{period: pytorch.Epoch(2)})
    for name in ("training", "validation"):
        none = type("None", (Streamed,), {f"build_{name}_data_loader": lambda self: None})
        with pytest.raises(InvalidInput, match=rf"build_{name}_data_loader\(\) must return a data loader, not None"):
            train(none)


class Broken(data.Dataset[Any]):
    """One sample cannot be read."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise OSError(f"no sample {index}")
        return NUMBERS[index]


class Raises(pytorch.PyTorchCallback):
    """At the second report."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        raise self.error


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_an_error_of_the_trials_own_comes_out_as_it_is(error: BaseException) -> None:
    """Ctrl-C too; each callback hears that it ends."""
    events: list[str] = []
    with pytest.raises(type(error)) as raised:
        train(Line, Raises(error), Told(events))
    assert raised.value is error
    assert events[-1] == "shutdown"


def test_workers_load_batches_and_say_what_they_could_not() -> None:
    """Kept over epochs, in the same order as without them; the error of one is that of the run."""
    workers = {"num_workers": 2, "persistent_workers": True, "shuffle": True}
    weights = [
        train(kind_with(options=options), batches=10).model.weight.item() for options in ({"shuffle": True}, workers)
    ]
    assert weights[0] == weights[1]
    broken = staticmethod(lambda: pytorch.DataLoader(Broken(), batch_size=3, num_workers=2))
    before = set(multiprocessing.active_children())
    with pytest.raises(OSError, match="no sample 7") as raised:
        train(kind_with(training_data=broken))
    # Though the error still holds what they worked for.
    assert raised.tb is not None
    assert set(multiprocessing.active_children()) <= before


def test_what_is_asked_of_the_context_stops_it() -> None:
    """With a checkpoint and no validation, at the end of the batch that was reported."""

    class Stops(pytorch.PyTorchCallback):
        def on_training_workload_end(self, avg_metrics: Any, batch_metrics: Any) -> None:
            contexts[0].set_stop_requested(True)

    contexts: list[Any] = []
    kind = kind_with(build_callbacks=lambda self: contexts.append(self.context) or self.callbacks)  # type: ignore[func-returns-value]
    trial = train(kind, Stops(), batches=50, reporting_period=pytorch.Batch(3))
    assert (when(trial, "stored"), when(trial, "validation")) == ([3], [])


def test_a_second_fit_trains_on_from_the_first() -> None:
    """Weights go on; batches are counted anew."""
    with pytorch.init() as context:
        trial = Line(context)
        for _ in range(2):
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(2))
    assert [event for event in trial.events if event.startswith("train ")] == ["train 0 0", "train 0 1"] * 2


class Two(Line):
    """A generator and a discriminator: two models and two optimizers."""

    def __init__(self, context: Any, *others: pytorch.PyTorchCallback) -> None:
        super().__init__(context, *others)
        self.other = context.wrap_model(nn.Linear(1, 1))
        self.others = context.wrap_optimizer(torch.optim.Adam(self.other.parameters(), 1e-2))
        schedule = torch.optim.lr_scheduler.StepLR(self.others, 1, 0.5)
        context.wrap_lr_scheduler(schedule, pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        for optimizer in (self.others, self.optimizer):
            optimizer.zero_grad()
            loss = ((self.other(self.model(batch)) - batch) ** 2).mean()
            self.context.backward(loss)
            self.context.step_optimizer(
                optimizer, clip_grads=lambda parameters: nn.utils.clip_grad_norm_(parameters, 1.0)
            )
        return {"loss": loss}


def test_two_models_and_two_optimizers_go_on_as_they_were() -> None:
    """Each with its own state, and its rate."""
    whole = train(Two, batches=6, checkpoint_period=pytorch.Batch([3]))
    rest = train(Two, batches=6, latest_checkpoint=whole.callbacks["told"].stored[0])
    for model in ("model", "other"):
        its = zip(getattr(whole, model).parameters(), getattr(rest, model).parameters())
        assert all(torch.equal(before, after) for before, after in its)
    assert rest.others.param_groups[0]["lr"] == 1e-2 * 0.5**6


def test_ranks_may_have_less_than_a_batch_each() -> None:
    """One batch for two: it is repeated, and the second rank was told that its data is empty."""

    class Loaded(pytorch.PyTorchCallback):
        def on_training_start(self) -> None:
            raise InterruptedError("the data is loaded")

    def work(distributed: Any) -> Any:
        context: Any = CheckpointLoadContext()
        trial = kind_with(batch_size=12)(context, Loaded())
        # Models of several ranks need a process group, which nothing up to here does.
        context.distributed = distributed
        with pytest.raises(InterruptedError, match="the data is loaded"):
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1))
        return context.epoch_length

    assert on_ranks(work, 2) == [1, 1]
