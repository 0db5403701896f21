"""A class to fill in around an engine of DeepSpeed, trained by the loop of `tenax.pytorch`.

entrypoint: python3 -m tenax.launch.deepspeed --trial with_deepspeed_trial:DigitsTrial
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import deepspeed
import torch
from digits import load
from torch import nn

from tenax.pytorch import DataLoader
from tenax.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, overwrite_deepspeed_config

CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "steps_per_print": 1000000,
}


class DigitsTrial(DeepSpeedTrial):
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        hidden = context.get_hparam("hidden")
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 10))
        config = overwrite_deepspeed_config(CONFIG, context.get_hparam("deepspeed"))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)
        self.training, self.held_out = (torch.utils.data.TensorDataset(*map(torch.tensor, part)) for part in load())

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(self.training, batch_size=self.context.get_train_micro_batch_size_per_gpu(), shuffle=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(self.held_out, batch_size=self.context.get_train_micro_batch_size_per_gpu())

    def train_batch(self, dataloader_iter: Iterator[Any], epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = self.context.to_device(next(dataloader_iter))
        loss = nn.functional.cross_entropy(self.engine(images), labels)
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter: Iterator[Any], batch_idx: int) -> dict[str, Any]:
        images, labels = self.context.to_device(next(dataloader_iter))
        scores = self.engine(images)
        accuracy = (scores.argmax(dim=1) == labels).float().mean()
        return {"val_loss": nn.functional.cross_entropy(scores, labels), "val_accuracy": accuracy}
