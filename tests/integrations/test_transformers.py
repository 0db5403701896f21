"""Trials of Transformers' Trainer: reports, checkpoints, pauses; a paused or killed one is the one that was not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tenax import core
from tenax.errors import InvalidInput
from tenax.integrations.transformers import DetCallback
from tests.integrations.place import Part, Trial, example
from tests.integrations.same import same

#: To an epoch of the example.
STEPS = 45
ARGUMENTS: dict[str, Any] = {"learning_rate": 0.003, "num_train_epochs": 2, "per_device_train_batch_size": 32}


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        yield example("with_transformers", patch)


def trial(root: Path, patch: pytest.MonkeyPatch, arguments: dict[str, Any] = ARGUMENTS, **config: Any) -> Trial:
    return Trial(root, patch, {"hidden": 32, "training_arguments": arguments}, **config)


def losses(part: Part, first: int) -> dict[int, Any]:
    """By step, from one on."""
    return {step: part.metrics["training", step]["loss"] for step in part.steps("training") if step >= first}


def test_a_trial_that_was_paused_and_killed_is_the_one_that_was_not(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused within an epoch, killed in the next one, and ended: each number is the same, and so is the last state."""
    whole, broken = trial(tmp_path / "whole", monkeypatch), trial(tmp_path / "broken", monkeypatch)
    full = whole.train(module.main)
    assert full.steps("validation") == [STEPS, 2 * STEPS]
    assert full.metrics["validation", 2 * STEPS]["eval_accuracy"] > 0.5
    assert full.metrics["validation", STEPS]["epochs"] == 1
    assert [each["stepsCompleted"] for each in full.checkpoints] == [STEPS, 2 * STEPS]
    assert full.progress == 1.0

    paused = broken.train(module.main, stop_after=18)
    assert paused.acknowledged
    # No evaluation is made up: that of this epoch comes when it ends.
    assert not paused.steps("validation")
    assert [each["stepsCompleted"] for each in paused.checkpoints] == [17]
    killed = broken.train(module.main, kill_after=STEPS + 6 - 17)
    rest = broken.train(module.main)
    assert killed.metrics["validation", STEPS] == full.metrics["validation", STEPS]
    assert rest.metrics["validation", 2 * STEPS] == full.metrics["validation", 2 * STEPS]
    # Means of ten steps: the first of a run are of those that it trained.
    assert losses(killed, 21) == {step: loss for step, loss in losses(full, 21).items() if step < STEPS + 5}
    assert losses(rest, 51) == losses(full, 51)
    assert losses(paused, 0).keys() == {10, 17}
    same(whole.directory() / f"checkpoint-{2 * STEPS}", broken.directory() / f"checkpoint-{2 * STEPS}")


# A few steps of a smaller model.


class Pairs(torch.utils.data.Dataset[Any]):
    """So many samples, four to a batch."""

    def __init__(self, count: int) -> None:
        self.x = torch.linspace(-1, 1, 8 * count, dtype=torch.float32).reshape(count, 8)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[index], "labels": self.x[index].sum()}


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.layers(x)[:, 0]
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


def small(
    resumes: bool = True,
    callback: Callable[..., DetCallback] = DetCallback,
    then: Callable[[transformers.Trainer], object] = lambda _: None,
    **arguments: Any,
) -> Callable[[core.Context], None]:
    """A training of eight steps to an epoch."""

    def main(context: core.Context) -> None:
        options = {"num_train_epochs": 2, "eval_strategy": "epoch", "save_strategy": "epoch", **arguments}
        args = transformers.TrainingArguments(
            "out", per_device_train_batch_size=4, logging_steps=1, report_to="none", disable_tqdm=True, **options
        )
        transformers.set_seed(3)
        trainer = transformers.Trainer(
            Small(), args, train_dataset=Pairs(32), eval_dataset=Pairs(12), callbacks=[callback(context, args)]
        )
        trainer.train(resume_from_checkpoint=args.resume_from_checkpoint if resumes else None)
        then(trainer)

    return main


def test_asked_at_the_end_of_an_epoch_it_evaluates_and_saves_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What belongs to the end of the epoch is done by the run that trained it."""
    paused = trial(tmp_path, monkeypatch)
    part = paused.train(small(), stop_after=9)
    assert part.steps("validation") == [8]
    assert [each["stepsCompleted"] for each in part.checkpoints] == [8]
    assert part.acknowledged
    rest = paused.train(small())
    assert rest.steps("training") == list(range(9, 17))
    assert rest.steps("validation") == [16]
    # What has ended asks nobody, and trains nothing when it is started again.
    again = paused.train(small())
    assert not again.metrics
    assert again.progress == 1.0


def test_it_saves_at_a_pause_and_at_the_end_whatever_its_arguments_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial whose Trainer saves never can be paused, and leaves its model."""
    never = trial(tmp_path, monkeypatch)
    options: dict[str, Any] = {"save_strategy": "no", "max_steps": 11}
    assert [each["stepsCompleted"] for each in never.train(small(**options), stop_after=4).checkpoints] == [3]
    part = never.train(small(**options))
    assert [each["stepsCompleted"] for each in part.checkpoints] == [11]
    assert part.steps("validation") == [8, 11]
    assert part.progress == 1.0


def test_a_checkpoint_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its metadata, with the user's own data, which lie in its folder, too."""
    told = trial(tmp_path, monkeypatch)
    part = told.train(small(callback=lambda *args: DetCallback(*args, user_data={"from": "nothing"})))
    assert part.checkpoints[-1]["metadata"] == {
        "steps_completed": 16,
        "epochs": 2.0,
        "framework": f"transformers-{transformers.__version__}",
        "trial_id": 7,
        "user_data": {"from": "nothing"},
    }
    folder = told.directory() / "checkpoint-16"
    assert json.loads((folder / "my_data.json").read_text()) == {"from": "nothing"}
    assert {path.name for path in told.directory().iterdir()} == {
        "checkpoint-16",
        "metadata.json",
        ".tenax-manifest.json",
    }


def test_metrics_are_chosen_by_parts_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what the search needs, and what counts its time; speeds are not reported, the epoch is not rounded."""
    every = trial(tmp_path / "every", monkeypatch).train(small())
    assert set(every.metrics["validation", 8]) == {"eval_loss", "epochs", "batches"}
    assert set(every.metrics["training", 3]) == {"loss", "grad_norm", "learning_rate", "epochs", "batches"}
    assert every.metrics["training", 3]["epochs"] == 0.375
    searcher = {"name": "single", "metric": "eval_loss"}
    some = trial(tmp_path / "some", monkeypatch, searcher=searcher)
    part = some.train(small(callback=lambda *args: DetCallback(*args, filter_metrics=["rate"])))
    assert set(part.metrics["validation", 8]) == {"eval_loss", "epochs", "batches"}
    assert set(part.metrics["training", 3]) == {"learning_rate", "epochs", "batches"}


def test_an_evaluation_after_the_training_says_nothing_else_of_its_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best model's has another value; one with a prefix of its own is a group of its own."""

    def then(trainer: transformers.Trainer) -> None:
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                parameter.add_(1.0)
        trainer.evaluate()
        trainer.evaluate(metric_key_prefix="test")

    plain = trial(tmp_path / "plain", monkeypatch).train(small())
    part = trial(tmp_path / "more", monkeypatch).train(small(then=then))
    assert part.metrics["validation", 16] == plain.metrics["validation", 16]
    assert part.metrics["test", 16]["test_loss"] != part.metrics["validation", 16]["eval_loss"]


def test_the_best_model_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Trainer is to load it in the end, a run that goes on elsewhere has it."""
    options: dict[str, Any] = {
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss",
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "eval_steps": 2,
        "save_steps": 2,
        "max_steps": 8,
        "learning_rate": 1.0,
        "save_total_limit": 1,
    }
    ends: list[dict[str, torch.Tensor]] = []

    def then(trainer: transformers.Trainer) -> None:
        ends.append({name: value.clone() for name, value in trainer.model.state_dict().items()})
        assert trainer.state.best_global_step < 6

    trial(tmp_path / "whole", monkeypatch).train(small(then=then, **options))
    broken = trial(tmp_path / "broken", monkeypatch)
    broken.train(small(**options), stop_after=8)
    assert len([path for path in broken.directory().iterdir() if path.is_dir()]) == 2
    broken.train(small(then=then, **options))
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())


def test_who_forgets_to_go_on_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that begins anew says so, and what to write."""
    forgetful = trial(tmp_path, monkeypatch)
    forgetful.train(small(), stop_after=4)
    assert "begins anew" not in capsys.readouterr().err
    forgetful.train(small(resumes=False), stop_after=2)
    assert "trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)" in capsys.readouterr().err


def test_what_a_search_counts_on_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trial that trains another time than its search was told warns of it."""
    searcher = {"name": "async_halving", "metric": "eval_loss", "time_metric": "epochs", "max_time": 3}
    trial(tmp_path / "other", monkeypatch, searcher=searcher).train(small(), stop_after=2)
    assert "trains 2 epochs, and the search expects 3 epochs" in capsys.readouterr().err
    trial(tmp_path / "same", monkeypatch, searcher={**searcher, "max_time": 2}).train(small(), stop_after=2)
    assert "expects" not in capsys.readouterr().err


def test_a_checkpoint_that_is_none_of_a_trainer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is in it."""

    def other(context: core.Context) -> None:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state.json").write_text("{}")

    foreign = trial(tmp_path, monkeypatch)
    foreign.train(other)
    with pytest.raises(InvalidInput, match=r"no folder checkpoint-<step>, but metadata\.json, state\.json"):
        foreign.train(small())


def test_ranks_that_tenax_does_not_know_of_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would report."""

    def main(context: core.Context) -> None:
        args = transformers.TrainingArguments("out", report_to="none")
        monkeypatch.setattr(type(args), "world_size", 2)
        DetCallback(context, args)

    with pytest.raises(InvalidInput, match=r"runs in 2 processes, and core\.init\(\) was told of 1"):
        trial(tmp_path, monkeypatch).train(main)
