"""The digits example as a class: models, data and what is done with a batch; the loop is `tenax.pytorch`'s.

It is paused, preempted and resumed with the same samples in the same order. Started by hand (`python trial.py`), it
trains with the values below.
"""

from __future__ import annotations

import torch
from model import build, load
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import tenax
from tenax import pytorch

BY_HAND = {"lr": 0.003, "global_batch_size": 32, "hidden": 64, "dropout": 0.2, "epochs": 16}


class Digits(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        self.training, self.held_out = (TensorDataset(images, labels) for images, labels in load())
        model = build(context.get_hparam("hidden"), context.get_hparam("dropout"))
        self.model = context.wrap_model(model)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(self.training, self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(self.held_out, batch_size=120)

    def train_batch(self, batch: list[Tensor], epoch_idx: int, batch_idx: int) -> dict[str, Tensor]:
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: list[Tensor], batch_idx: int) -> dict[str, Tensor]:
        images, labels = batch
        scores = self.model(images)
        return {
            "accuracy": (scores.argmax(dim=1) == labels).float().mean(),
            "validation_loss": nn.functional.cross_entropy(scores, labels),
        }


if __name__ == "__main__":
    info = tenax.get_cluster_info()
    with pytorch.init(hparams=info.trial.hparams if info else BY_HAND) as context:
        pytorch.Trainer(Digits(context), context).fit(
            max_length=pytorch.Epoch(context.get_hparam("epochs")),
            validation_period=pytorch.Epoch(1),
            latest_checkpoint=context.latest_checkpoint,
        )
