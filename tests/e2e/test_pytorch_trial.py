"""A trial class as Determined's users wrote them, without that package, on a real cluster: paused, it is one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, outlast, wait_for

MODEL = """
import time

import torch
from sklearn.datasets import load_digits
from torch import nn

import determined as det
from determined import pytorch


class Digits(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        pixels, labels = load_digits(return_X_y=True)
        pixels, labels = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
        self.training = torch.utils.data.TensorDataset(pixels[:400], labels[:400])
        self.held_out = torch.utils.data.TensorDataset(pixels[400:600], labels[400:600])
        layers = nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10)
        self.model = context.wrap_model(nn.Sequential(*layers))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr"), momentum=0.9)
        self.optimizer = context.wrap_optimizer(optimizer)

    def build_training_data_loader(self):
        return pytorch.DataLoader(self.training, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.held_out, batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        pixels, labels = batch
        loss = nn.functional.cross_entropy(self.model(pixels), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        time.sleep(self.context.get_hparam("seconds"))
        return {"loss": loss}

    def evaluate_batch(self, batch):
        pixels, labels = batch
        scores = self.model(pixels)
        accuracy = (scores.argmax(1) == labels).float().mean()
        return {"validation_loss": nn.functional.cross_entropy(scores, labels), "accuracy": accuracy}


if __name__ == "__main__":
    info = det.get_cluster_info()
    with det.pytorch.init(hparams=info.trial.hparams) as context:
        det.pytorch.Trainer(Digits(context), context).fit(
            max_length=pytorch.Batch(60),
            validation_period=pytorch.Batch(20),
            reporting_period=pytorch.Batch(4),
            latest_checkpoint=info.latest_checkpoint,
        )
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "model_def.py").write_text(MODEL)
    return tmp_path


def config(entrypoint: str, seconds: float = 0.0, slots: int = 1, **also: object) -> JsonObject:
    return {
        "name": "digits",
        "entrypoint": entrypoint,
        "hyperparameters": {"lr": 0.05, "global_batch_size": 40, "seconds": seconds},
        "searcher": {"name": "single", "metric": "validation_loss", **also},  # type: ignore[dict-item]
        "resources": {"slots_per_trial": slots},
        "reproducibility": {"experiment_seed": 7},
        "max_restarts": 0,
    }


def validations(place: Machine, experiment: int) -> list[tuple[int, float, float]]:
    """(batches, loss, accuracy) of its trial."""
    with place.client() as client:
        (trial,) = client.experiment(experiment).trials()
        rows = list(client.trial(trial.id).metrics("validation"))
    return [(row.steps, row.metrics["validation_loss"], row.metrics["accuracy"]) for row in rows]


@pytest.mark.long
def test_a_paused_trial_is_the_one_that_was_not(place: Machine, code: Path) -> None:
    """Every validation of it is the same number; checkpoints follow those that were the best."""
    with place.client() as client:
        whole = client.create_experiment(config("python3 model_def.py"), code)
        completed(place, whole.id)
        paused = client.create_experiment(config("python3 model_def.py", seconds=0.1), code)
        wait_for(lambda: _batches(place, paused.id) >= 8, "reports")
        paused.pause()
        wait_for(lambda: client.experiment(paused.id).state == "PAUSED" and not place.task_processes(), "a pause")
        at = _batches(place, paused.id)
        assert 8 <= at < 60
        paused.activate()
    completed(place, paused.id)
    assert [step for step, _, _ in validations(place, whole.id)] == [20, 40, 60]
    assert validations(place, paused.id) == validations(place, whole.id)


def test_an_entrypoint_that_names_a_class_trains_on_all_slots(place: Machine, code: Path) -> None:
    """As before there was a Trainer: how long stands in the configuration; two ranks are one trial."""
    with place.client() as client:
        made = client.create_experiment(
            config("model_def:Digits", slots=2, max_length={"epochs": 4}) | {"min_validation_period": {"epochs": 2}},
            code,
        )
    completed(place, made.id)
    assert [step for step, _, _ in validations(place, made.id)] == [20, 40]
    assert validations(place, made.id)[-1][2] > 0.5


def completed(place: Machine, experiment: int) -> None:
    """It ends, and well; else with what it said."""
    ended = outlast(place, experiment)
    said = place.tenax("trial", "logs", str(ended.trials()[0].id)).stdout if ended.state != "COMPLETED" else ""
    assert ended.state == "COMPLETED", said


def _batches(place: Machine, experiment: int) -> int:
    with place.client() as client:
        trials = client.experiment(experiment).trials()
        rows = client.trial(trials[0].id).metrics("training") if trials else []
        return max((row.steps for row in rows), default=0)
