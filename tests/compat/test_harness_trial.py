"""A PyTorchTrial of Determined's own library on real data, unchanged, on two slots."""

from __future__ import annotations

from pathlib import Path

from tenax.jsonvalue import Json
from tests.compat.harness import finished, submit
from tests.e2e.machine import Machine, outlast, wait_for

MODEL = '''
import torch
from sklearn.datasets import load_digits
from torch import nn
from determined import pytorch


class Digits(torch.utils.data.Dataset):
    """Handwritten digits, 8 by 8; every fifth is for validation."""

    def __init__(self, train):
        data = load_digits()
        keep = (torch.arange(len(data.target)) % 5 != 0) == train
        self.images = torch.tensor(data.images, dtype=torch.float32).flatten(1)[keep] / 16
        self.labels = torch.tensor(data.target)[keep]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return self.images[place], self.labels[place]


class DigitsTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.model = context.wrap_model(net)
        adam = torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(adam)

    def build_training_data_loader(self):
        return pytorch.DataLoader(Digits(True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Digits(False), batch_size=64)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        images, labels = batch
        return {"accuracy": (self.model(images).argmax(1) == labels).float().mean()}
'''


BATCHES = 80
#: What its configuration says beside the files.
TRAINING: dict[str, Json] = {
    "entrypoint": "model_def:DigitsTrial",
    "searcher": {
        "name": "single",
        "metric": "accuracy",
        "smaller_is_better": False,
        "max_length": {"batches": BATCHES},
    },
    "hyperparameters": {"lr": 0.01, "global_batch_size": 64},
    "resources": {"slots_per_trial": 2},
    "min_validation_period": {"batches": BATCHES},
}


#: A script of a user's own around that library's Trainer, which ends when it is told to.
TRAINER = """
import determined as det
from determined import pytorch
from model_def import DigitsTrial

info = det.get_cluster_info()
with pytorch.init(hparams=info.trial.hparams) as context:
    trainer = pytorch.Trainer(DigitsTrial(context), context)
    period = pytorch.Batch(50)
    trainer.fit(max_length=pytorch.Batch(10**6), validation_period=period, latest_checkpoint=info.latest_checkpoint)
"""


def test_its_trainer_is_paused_and_goes_on(cluster: Machine, tmp_path: Path) -> None:
    """Asked to leave it saves and leaves; activated, it reads its own checkpoint, also with a PyTorch that is newer
    than it, and trains on from there."""
    code = {"model_def.py": MODEL, "train.py": TRAINER}
    changes: dict[str, Json] = {**TRAINING, "entrypoint": "python3 train.py", "resources": {"slots_per_trial": 1}}
    experiment = submit(cluster, tmp_path / "code", code, **changes)
    with cluster.client() as client:
        trial = wait_for(lambda: next(iter(client.experiment(experiment.id).trials()), None), "its trial")

        def validated() -> int:
            return max((one.steps for one in client.trial(trial.id).metrics("validation")), default=0)

        wait_for(validated, "its first validation")
        client.experiment(experiment.id).pause()
        wait_for(lambda: client.trial(trial.id).state == "PAUSED", "its pause")
        saved = max(one.steps for one in client.trial(trial.id).checkpoints() if one.state == "COMPLETED")
        client.experiment(experiment.id).activate()
        wait_for(lambda: validated() > saved, "a validation beyond its checkpoint")
        steps = [one.steps for one in client.trial(trial.id).metrics("validation")]
        client.experiment(experiment.id).kill()
    assert outlast(cluster, experiment.id).state == "CANCELED"
    assert steps == sorted(set(steps))


def test_it_learns_on_two_slots(cluster: Machine, tmp_path: Path) -> None:
    """The name of the class is entrypoint enough: two ranks train together by that library's own launcher, and what it
    reports and keeps is the master's and the storage's, its code beside the weights."""
    experiment = submit(cluster, tmp_path / "code", {"model_def.py": MODEL}, **TRAINING)
    trial, _ = finished(cluster, experiment)
    assert trial.best_validation is not None
    assert trial.best_validation.steps == BATCHES
    accuracy = trial.searcher_metric
    assert accuracy is not None
    assert accuracy > 0.7
    assert {line.rank for line in trial.logs()} >= {0, 1}
    (checkpoint,) = trial.checkpoints()
    kept = cluster.directory / "checkpoints" / checkpoint.uuid
    assert {"state_dict.pth", "load_data.json", "metadata.json"} <= {path.name for path in kept.iterdir()}
    assert (kept / "code" / "model_def.py").read_text() == MODEL
