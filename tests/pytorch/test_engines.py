"""A `DeepSpeedTrial` in one process, off the cluster and in parts of a trial."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as group
from torch import nn
from torch.utils.data import IterableDataset

from tenax import pytorch
from tenax.core.info import get_cluster_info
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.deepspeed import (
    DeepSpeedTrial,
    ModelParallelUnit,
    Trainer,
    init,
    make_data_parallel_mpu,
    overwrite_deepspeed_config,
)
from tests.integrations.place import Trial
from tests.pytorch.trials import NumberedDigits, directory_of

Batch = pytorch.Batch


@pytest.fixture(scope="module")
def engines() -> Iterator[Any]:
    """The module of the trial, which imports DeepSpeed."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    yield importlib.import_module("tests.pytorch.engines")
    if group.is_initialized():
        group.destroy_process_group()
    os.environ.pop("LOCAL_RANK", None)


def fitted(kind: Any, trained: int, **how: Any) -> Any:
    """The trial, once it has trained so many batches."""
    torch.manual_seed(5)
    with init(hparams={}) as context:
        torch.manual_seed(5)
        trial = kind(context)
        Trainer(trial, context).fit(max_length=Batch(trained), **how)
        return trial


def test_a_batch_is_a_step_of_the_optimizer(engines: Any) -> None:
    """`train_batch` is called for each micro-batch, with one index; epochs, lengths and metrics count batches."""
    rows: list[Any] = []

    class Watched(engines.EngineDigits):  # type: ignore[misc]
        def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
            rows.append((epoch_idx, batch_idx, self.context.is_epoch_start(), self.context.is_epoch_end()))
            return super().train_batch(dataloader_iter, epoch_idx, batch_idx)

    with init(hparams={"global_batch_size": 16}) as context:
        trial = Watched(context, samples=48)
        assert (context.num_micro_batches_per_slot, context.get_train_micro_batch_size_per_gpu()) == (2, 8)
        assert context.get_per_slot_batch_size() == context.get_global_batch_size() == 16
        assert context.models == [trial.engine]
        assert not context.use_pipeline_parallel
        Trainer(trial, context).fit(max_length=pytorch.Epoch(2))
    first, second, third = (0, 0, True, False), (0, 1, False, False), (0, 2, False, True)
    assert rows[:6] == [first, first, second, second, third, third]
    assert rows[6:] == [(1, index + 3, *flags) for _, index, *flags in rows[:6]]
    assert trial.engine.global_steps == 6
    assert sorted(number for _, numbers, _ in trial.seen[:6] for number in numbers) == list(range(48))
    assert trial.watch.validated[-1].keys() == {"accuracy", "validation_loss", "largest"}
    assert trial.watch.validated[-1]["largest"] == 1099


def test_a_trial_that_accumulates_by_itself_is_called_once_a_batch(engines: Any) -> None:
    """It takes the micro-batches of a step from the iterator, and what it goes on with are those that follow."""

    class ByItself(engines.EngineDigits):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.disable_auto_grad_accumulation()

        def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
            take = super().train_batch
            return [take(dataloader_iter, epoch_idx, batch_idx) for _ in range(2)][-1]

    whole = fitted(ByItself, 4)
    part = fitted(ByItself, 2)
    rest = fitted(ByItself, 4, latest_checkpoint=part.watch.stored[-1])
    assert [index for index, _, _ in whole.seen] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert part.seen + rest.seen == whole.seen
    assert fitted(engines.EngineDigits, 4).seen == whole.seen


@pytest.mark.parametrize("stage", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_trial_that_was_stopped_goes_on_bit_for_bit(engines: Any, stage: int) -> None:
    """Samples, losses, parameters and validations; by its own wish, as by that of a cluster."""

    def kind(context: Any) -> Any:
        return engines.EngineDigits(context, stage=stage)

    def stopping(context: Any) -> Any:
        trial = kind(context)
        trial.watch.left = 2
        return trial

    whole = fitted(kind, 9, reporting_period=Batch(2))
    part = fitted(stopping, 9, reporting_period=Batch(2))
    assert part.seen == whole.seen[:8]
    rest = fitted(kind, 9, latest_checkpoint=part.watch.stored[-1])
    assert part.seen + rest.seen == whole.seen
    assert rest.parameters() == whole.parameters()
    assert rest.watch.validated == whole.watch.validated


def test_a_cluster_stops_it_and_sees_its_progress(
    engines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preempted, it saves and leaves; killed, it goes on after its last checkpoint; reports are those of one run."""

    def script() -> None:
        info = get_cluster_info()
        with init() as context:
            trial = engines.EngineDigits(context)
            Trainer(trial, context).fit(
                max_length=Batch(8),
                reporting_period=Batch(2),
                checkpoint_period=Batch(2),
                validation_period=Batch(4),
                latest_checkpoint=info.latest_checkpoint if info else None,
            )

    config = {"searcher": {"name": "single", "metric": "validation_loss"}}
    whole, broken = (Trial(tmp_path / name, monkeypatch, {"lr": 1}, **config) for name in ("whole", "broken"))
    full = whole.run(script)
    stopped = broken.run(script, stop_after=1)
    killed = broken.run(script, kill_after=2)
    rest = broken.run(script)
    assert stopped.acknowledged
    assert stopped.checkpoints[-1]["stepsCompleted"] == 2
    assert 0 < stopped.progress < killed.progress < rest.progress == 1.0
    assert {**stopped.metrics, **killed.metrics, **rest.metrics} == full.metrics
    assert full.steps("validation") == [4, 8]


def test_metrics_are_those_of_ranks_that_report(engines: Any) -> None:
    """A rank that loads no data has None for an iterator; what it gives need not be metrics."""
    given: list[Any] = []

    class Silent(engines.EngineDigits):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.wrap_mpu(ModelParallelUnit(0, 1, should_report_metrics=False, should_build_data_loader=True))

        def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
            given.append(super().train_batch(dataloader_iter, epoch_idx, batch_idx)["loss"])

    with pytest.raises(InvalidInput, match="the validation data is empty"):
        fitted(Silent, 2)
    assert len(given) == 4


def test_all_of_the_validation_at_once(engines: Any) -> None:
    """`evaluate_full_dataset` has the loader, on the chief."""

    class AtOnce(DeepSpeedTrial):
        __init__ = engines.EngineDigits.__init__
        build_callbacks = engines.EngineDigits.build_callbacks
        build_training_data_loader = engines.EngineDigits.build_training_data_loader
        build_validation_data_loader = engines.EngineDigits.build_validation_data_loader
        train_batch = engines.EngineDigits.train_batch

        def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
            return {"samples": sum(len(labels) for _, _, labels in data_loader)}

    with init(hparams={}) as context:
        trial: Any = AtOnce(context)
        trial.largest.update(1)
        with pytest.raises(InvalidInput, match=r"fails without values"):
            Trainer(trial, context).fit(max_length=Batch(1))
        context._wrapped.clear()
        Trainer(trial, context).fit(max_length=Batch(1))
    assert trial.watch.validated[-1] == {"samples": 100}


def test_a_checkpoint_of_determined_is_gone_on_from(engines: Any, here: Path) -> None:
    """Its engines are where ours are; beside them stands less."""
    part = fitted(engines.EngineDigits, 3)
    directory = directory_of(part.watch.stored[-1], here)
    known = torch.load(directory / "state_dict.pth", weights_only=False)
    torch.save({"callbacks": {}, "rng_state": known["rng_state"]}, directory / "det_state_dict_rank0.pth")
    (directory / "state_dict.pth").unlink()
    (directory / ".tenax-manifest.json").unlink()
    rest = fitted(engines.EngineDigits, 4, latest_checkpoint=part.watch.stored[-1])
    assert part.seen + rest.seen == fitted(engines.EngineDigits, 4).seen


def test_a_checkpoint_is_no_trial_to_load_alone(engines: Any, here: Path) -> None:
    """It is said what to do with one; and where its engines are missing, nothing begins anew in silence."""
    part = fitted(engines.EngineDigits, 1)
    directory = directory_of(part.watch.stored[-1], here)
    with pytest.raises(InvalidInput, match="is of a DeepSpeedTrial"):
        pytorch.load_trial_from_checkpoint_path(str(directory))
    (directory / "model0").rename(directory / "other")
    (directory / ".tenax-manifest.json").unlink()
    with pytest.raises(InvalidInput, match="holds no state of engine 0"):
        fitted(engines.EngineDigits, 2, latest_checkpoint=part.watch.stored[-1])


def test_what_cannot_be_trained_is_said(engines: Any) -> None:
    """Before the first batch, with what to do instead."""

    class Greedy(engines.EngineDigits):  # type: ignore[misc]
        def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
            next(dataloader_iter)
            return super().evaluate_batch(dataloader_iter, batch_idx)  # type: ignore[no-any-return]

    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(NumberedDigits(0, 64))

    class Streamed(engines.EngineDigits):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.disable_dataset_reproducibility_checks()

        def build_validation_data_loader(self) -> Any:
            return torch.utils.data.DataLoader(Endless(), batch_size=8)

    with init(hparams={}) as context:
        with pytest.raises(NotNow, match="wrap_model_engine"):
            context.get_num_micro_batches_per_slot()
        for call, words in (
            (lambda: context.wrap_model(nn.Linear(1, 1)), "deepspeed.initialize"),
            (lambda: context.wrap_optimizer(None), "deepspeed.initialize"),
            (lambda: context.backward(torch.ones(1)), "engine.backward"),
            (lambda: context.wrap_model_engine(nn.Linear(1, 1)), "takes the engine"),
            (lambda: context.set_mpu(3), "takes a ModelParallelUnit"),  # type: ignore[arg-type]
        ):
            with pytest.raises(InvalidInput, match=words):
                call()
        trial = engines.EngineDigits(context, samples=8)
        with pytest.raises(InvalidInput, match="your PyTorchTrial, not"):
            pytorch.Trainer(trial, context)
        with pytest.raises(InvalidInput, match=r"1 micro-batches for each rank, and a step of the optimizer takes 2"):
            Trainer(trial, context).fit(max_length=Batch(1))
        context.models.clear()
        with pytest.raises(InvalidInput, match="the trial has no engine"):
            Trainer(trial, context).fit(max_length=Batch(1))
    with pytest.raises(InvalidInput, match=r"take one from the iterator each time"):
        fitted(Greedy, 1)
    with pytest.raises(InvalidInput, match="validation data loader has no length"):
        fitted(Streamed, 1)
    with pytorch.init(hparams={}) as plain, pytest.raises(InvalidInput, match=r"pytorch.deepspeed.init\(\) as context"):
        Trainer(trial, plain)  # type: ignore[arg-type]


def test_a_configuration_has_values_of_another_in_it(tmp_path: Path) -> None:
    """At any depth; from a file, too; what was given is not changed."""
    base: dict[str, Any] = {"a": 1, "b": {"c": 2, "d": [1]}}
    over = {"b": {"c": 9, "new": {"x": 1}}, "e": 3}
    merged = {"a": 1, "b": {"c": 9, "d": [1], "new": {"x": 1}}, "e": 3}
    assert overwrite_deepspeed_config(base, over) == merged
    assert base == {"a": 1, "b": {"c": 2, "d": [1]}}
    assert overwrite_deepspeed_config(base, {"b": 3}) == {"a": 1, "b": 3}
    (tmp_path / "ds.json").write_text('{"a": {"b": 1}}')
    assert overwrite_deepspeed_config(str(tmp_path / "ds.json"), {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    with pytest.raises(InvalidInput, match="cannot be read"):
        overwrite_deepspeed_config(str(tmp_path / "none.json"), {})
    with pytest.raises(InvalidInput, match="takes a dict as source_ds_dict"):
        overwrite_deepspeed_config(base, 3)  # type: ignore[arg-type]


def test_a_whole_model_on_each_rank() -> None:
    """Each loads its share, and reports."""

    class Ranks:
        rank, size = 2, 4

    assert make_data_parallel_mpu(Ranks()) == ModelParallelUnit(2, 4, True, True)  # type: ignore[arg-type]
