"""Trials of Keras: reports, checkpoints, pauses; a paused or killed one is the one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tenax import core
from tenax.errors import InvalidInput
from tenax.integrations.keras import DeterminedCallback, TensorBoard
from tests.integrations.place import Trial, example
from tests.integrations.same import same

#: To an epoch of the example.
STEPS = 45
HPARAMS = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "epochs": 4}


def test_a_trial_that_was_paused_and_killed_is_the_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number is the same, and so is the last state."""
    main = example("with_keras", monkeypatch).main
    whole, broken = Trial(tmp_path / "whole", monkeypatch, HPARAMS), Trial(tmp_path / "broken", monkeypatch, HPARAMS)
    full = whole.train(main)
    assert full.steps("validation") == [STEPS * epoch for epoch in (1, 2, 3, 4)]
    assert full.metrics["validation", 4 * STEPS]["accuracy"] > 0.8
    assert set(full.metrics["training", STEPS]) == {"loss", "accuracy", "batches", "epochs"}
    assert full.progress == 1.0
    paused = broken.train(main, stop_after=1)
    assert paused.acknowledged
    killed = broken.train(main, kill_after=2)
    rest = broken.train(main)
    assert {**paused.metrics, **killed.metrics, **rest.metrics} == full.metrics
    same(whole.directory(), broken.directory())


# A few steps of a smaller model.


class Named(DeterminedCallback):
    """Saves as it likes."""

    def save_model(self, model: keras.Model, path: str, distributed: core.DistributedContext) -> None:
        model.save(f"{path}.keras")

    def load_model(self, model: keras.Model, path: str, distributed: core.DistributedContext) -> None:
        model.set_weights(keras.models.load_model(f"{path}.keras").get_weights())


def small(
    continue_id: str = "mine",
    kind: type[DeterminedCallback] = DeterminedCallback,
    epochs: int = 3,
    then: Callable[[keras.Model, DeterminedCallback], object] = lambda model, callback: None,
    **options: Any,
) -> Callable[[core.Context], None]:
    """Five steps to an epoch."""

    def main(context: core.Context) -> None:
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.01), "mse")
        x = np.linspace(-1, 1, 160, dtype="float32").reshape(20, 8)
        data = x, x.sum(axis=1)
        callback = kind(context, context.latest_checkpoint, continue_id, **options)
        model.fit(*data, batch_size=4, epochs=epochs, validation_data=data, callbacks=[callback], verbose=0)
        then(model, callback)

    return main


def test_another_training_takes_the_weights_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another ``continue_id`` it begins with the first epoch, and with an optimizer of its own."""
    seen: dict[str, Any] = {}

    class Watch(DeterminedCallback):
        def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
            super().on_train_begin(logs)
            seen["weights"] = [each.copy() for each in self.model.get_weights()]
            seen["steps"] = int(self.model.optimizer.iterations)
            moments = [each for each in self.model.optimizer.variables if "momentum" in each.path]
            seen["moments"] = max(float(keras.ops.max(keras.ops.abs(each))) for each in moments)

    def keep(model: keras.Model, callback: DeterminedCallback) -> None:
        seen["trained"] = model.get_weights()

    trial = Trial(tmp_path, monkeypatch, {})
    trial.train(small(then=keep))
    same = trial.train(small(kind=Watch, epochs=4))
    assert same.steps("validation") == [20]
    assert seen["steps"] == 15
    assert seen["moments"] > 0
    assert _equal(seen["trained"], seen["weights"])
    trial.train(small(then=keep))
    other = trial.train(small("another", kind=Watch))
    assert other.steps("validation") == [5, 10, 15]
    assert _equal(seen["trained"], seen["weights"])
    assert seen["steps"] == 0
    assert seen["moments"] == 0


def _equal(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def test_periods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training metrics each so many batches; checkpoints at a pause and at the end only."""
    trial = Trial(tmp_path, monkeypatch, {})
    options: dict[str, Any] = {"train_metrics_report_period": 2, "checkpoint_epochs": 0}
    paused = trial.train(small(**options), stop_after=2)
    assert paused.steps("training") == [2, 4, 6, 8, 10]
    assert [each["stepsCompleted"] for each in paused.checkpoints] == [10]
    rest = trial.train(small(**options))
    assert rest.steps("training") == [12, 14]
    assert rest.steps("validation") == [15]
    assert [each["metadata"]["epochs"] for each in rest.checkpoints] == [3]
    # What has ended trains nothing when it is started again.
    assert not trial.train(small(**options)).metrics


def test_an_evaluation_after_the_training_says_nothing_else_of_its_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras gives it to the same callback."""

    def then(model: keras.Model, callback: DeterminedCallback) -> None:
        model.evaluate(np.ones((4, 8)), np.zeros(4), callbacks=[callback], verbose=0)
        model.predict(np.ones((4, 8)), callbacks=[callback], verbose=0)

    plain = Trial(tmp_path / "plain", monkeypatch, {}).train(small())
    part = Trial(tmp_path / "more", monkeypatch, {}).train(small(then=then))
    assert part.metrics == plain.metrics


def test_a_subclass_saves_as_it_likes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And loads what it saved."""
    trial = Trial(tmp_path, monkeypatch, {})
    trial.train(small(kind=Named), stop_after=1)
    names = {path.name for path in trial.directory().iterdir()}
    assert names == {"model_checkpoint.keras", "training_state.json", "metadata.json", ".tenax-manifest.json"}
    assert trial.train(small(kind=Named)).steps("validation") == [10, 15]


def test_files_for_tensorboard_lie_with_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever directory is named."""
    seen = []

    def main(context: core.Context) -> None:
        seen.append((TensorBoard(context, log_dir="elsewhere").log_dir, str(context.train.get_tensorboard_path())))

    Trial(tmp_path, monkeypatch, {}).train(main)
    assert seen[0][0] == seen[0][1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"checkpoint": 3}, "the id of one"),
        ({"continue_id": None}, "continue_id"),
        ({"train_metrics_report_period": 0}, "number of batches"),
        ({"checkpoint_epochs": -1}, "checkpoint_epochs"),
    ],
)
def test_what_cannot_be_is_refused(
    wrong: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is trained."""

    def main(context: core.Context) -> None:
        with pytest.raises(InvalidInput, match=words):
            DeterminedCallback(context, **{"checkpoint": None, "continue_id": 1, **wrong})

    Trial(tmp_path, monkeypatch, {}).train(main)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is in it."""

    def other(context: core.Context) -> None:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state.json").write_text("{}")

    foreign = Trial(tmp_path, monkeypatch, {})
    foreign.train(other)
    with pytest.raises(InvalidInput, match=r"no training_state\.json in it, but metadata\.json, state\.json"):
        foreign.train(small())
