"""Trials of Lightning's Trainer: reports, checkpoints, pauses; a paused or killed one is the one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping

from tenax import core
from tenax.errors import InvalidInput
from tenax.integrations.lightning import LightningCallback
from tests.integrations.place import Trial, example
from tests.integrations.same import same

#: To an epoch of the example.
STEPS = 45
HPARAMS = {"lr": 0.003, "hidden": 64, "dropout": 0.2, "epochs": 4}


def test_a_trial_that_was_paused_and_killed_is_the_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number is the same, and so is the last state."""
    main = example("with_lightning", monkeypatch).main
    whole, broken = Trial(tmp_path / "whole", monkeypatch, HPARAMS), Trial(tmp_path / "broken", monkeypatch, HPARAMS)
    full = whole.train(main)
    assert full.steps("validation") == [STEPS * epoch for epoch in (1, 2, 3, 4)]
    assert full.metrics["validation", 4 * STEPS]["val_accuracy"] > 0.8
    assert set(full.metrics["validation", STEPS]) == {"val_accuracy", "val_loss", "batches", "epochs"}
    assert set(full.metrics["training", 10]) == {"loss", "batches", "epochs"}
    assert full.progress == 1.0
    paused = broken.train(main, stop_after=7)
    assert paused.acknowledged
    killed = broken.train(main, kill_after=8)
    rest = broken.train(main)
    assert {**paused.metrics, **killed.metrics, **rest.metrics} == full.metrics
    same(whole.directory(), broken.directory())


# A few steps of a smaller model.


class Small(lightning.LightningModule):
    """Nine steps to an epoch, everything that a module may have: what it logs, and a schedule that follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
        self.rates: list[float] = []

    def _loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.layers(batch[0])[:, 0], batch[0].sum(dim=1))

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        self.rates.append(self.optimizers().param_groups[0]["lr"])
        loss = self._loss(batch)
        self.log("train", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        self.log("val", self._loss(batch))

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.999999)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "val"}}


def small(
    modules: list[Small],
    resumes: bool = True,
    callbacks: Callable[[], list[lightning.Callback]] = list,
    within: bool = False,
    **options: Any,
) -> Callable[[core.Context], None]:
    """Four epochs of it, if nothing else is said."""

    def main(context: core.Context) -> None:
        lightning.seed_everything(3)
        callback = LightningCallback(context, stops_within_epochs=within)
        trainer = lightning.Trainer(
            callbacks=[callback, *callbacks()],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **{"max_epochs": 4, "log_every_n_steps": 1, **options},
        )
        data = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 8 * 36).reshape(36, 8))
        loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        held_out = torch.utils.data.DataLoader(data, batch_size=18)
        modules.append(Small())
        trainer.fit(modules[-1], loader, held_out, ckpt_path=callback.ckpt_path if resumes else None)

    return main


def test_schedules_and_early_stopping_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided at the end of an epoch, in whatever order, is in its checkpoint."""

    def callbacks() -> list[lightning.Callback]:
        return [EarlyStopping("val", min_delta=1e9, patience=3)]

    whole, first, second = [], [], []
    full = Trial(tmp_path / "whole", monkeypatch, {}).train(small(whole, callbacks=callbacks, max_epochs=9))
    broken = Trial(tmp_path / "broken", monkeypatch, {})
    broken.train(small(first, callbacks=callbacks, max_epochs=9), stop_after=18)
    rest = broken.train(small(second, callbacks=callbacks, max_epochs=9))
    assert full.steps("validation") == [9, 18, 27, 36]
    assert rest.steps("validation") == [27, 36]
    assert first[0].rates + second[0].rates == whole[0].rates


def test_within_an_epoch_it_goes_on_with_the_next_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many steps in all, and each validation where it was."""
    trial = Trial(tmp_path, monkeypatch, {})
    part = trial.train(small([], within=True), stop_after=13)
    assert part.acknowledged
    assert [each["stepsCompleted"] for each in part.checkpoints] == [9, 13]
    assert part.steps("validation") == [9]
    rest = trial.train(small([], within=True))
    assert rest.steps("validation") == [18, 27, 36]
    assert rest.steps("training") == list(range(14, 37))


def test_it_leaves_before_its_shortest_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``min_epochs`` is for early stopping: a trial that is asked to stop stops."""
    trial = Trial(tmp_path, monkeypatch, {})
    part = trial.train(small([], min_epochs=3), stop_after=2)
    assert part.steps("validation") == [9]
    assert trial.train(small([], min_epochs=3)).steps("validation") == [18, 27, 36]


def test_who_forgets_to_go_on_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that begins anew says so, and what to write."""
    trial = Trial(tmp_path, monkeypatch, {})
    trial.train(small([]), stop_after=3)
    assert "begins anew" not in capsys.readouterr().err
    trial.train(small([], resumes=False), stop_after=1)
    assert "trainer.fit(..., ckpt_path=callback.ckpt_path)" in capsys.readouterr().err


def test_what_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of something else, and periods that are none."""

    def other(context: core.Context) -> None:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state.json").write_text("{}")
        with pytest.raises(InvalidInput, match="must be a number of epochs"):
            LightningCallback(context, checkpoint_epochs=-1)

    foreign = Trial(tmp_path, monkeypatch, {})
    foreign.train(other)
    with pytest.raises(InvalidInput, match=r"there is no trainer\.ckpt in it, but metadata\.json, state\.json"):
        foreign.train(small([]))
