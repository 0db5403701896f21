"""A PyTorchTrial of Determined's own library on handwritten digits, and its configuration."""

from __future__ import annotations

from tenax.jsonvalue import Json

MODEL = '''
import torch
from sklearn.datasets import load_digits
from torch import nn
from determined import pytorch

# A slot is a core here, and threads that wait for a core that others have take ten times as long.
torch.set_num_threads(1)


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
