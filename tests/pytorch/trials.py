"""Trials to train in tests: a small classifier of scikit-learn's digits that writes down which samples it saw."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset

from tenax import pytorch


@functools.cache
def digits() -> tuple[Any, Any]:
    """Pixels and labels; reading them takes a third of a second."""
    pixels, labels = load_digits(return_X_y=True)
    return torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)


class NumberedDigits(Dataset[Any]):
    """(number, pixels, label)."""

    def __init__(self, first: int, last: int) -> None:
        pixels, labels = digits()
        self.numbers = torch.arange(first, last)
        self.pixels, self.labels = pixels[first:last], labels[first:last]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Any:
        return self.numbers[index], self.pixels[index], self.labels[index]


class Digits(pytorch.PyTorchTrial):
    """Everything random that a trial has: order, weights, dropout, noise on the data."""

    def __init__(self, context: pytorch.PyTorchTrialContext, samples: int = 200, batch_size: int = 32) -> None:
        self.context = context
        self.samples, self.batch_size = samples, batch_size
        #: Of each batch that this process trained: its index, the numbers of its samples, the loss.
        self.seen: list[tuple[int, list[int], float]] = []
        self.model = context.wrap_model(self.network())
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.01))
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)
        context.wrap_lr_scheduler(self.schedule, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(16), nn.Linear(16, 10))

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(0, self.samples), batch_size=self.batch_size, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(1000, 1100), batch_size=40)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        numbers, pixels, labels = batch
        loss = nn.functional.cross_entropy(self.model(pixels + 0.1 * torch.randn_like(pixels)), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.seen.append((batch_idx, numbers.tolist(), float(loss.detach())))
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]
        _, pixels, labels = batch
        scores = self.model(pixels)
        right = (scores.argmax(1) == labels).float().mean()
        return {"accuracy": right, "validation_loss": nn.functional.cross_entropy(scores, labels)}

    def parameters(self) -> list[float]:
        """All numbers of the model, buffers too."""
        bare = getattr(self.model, "module", self.model)
        values = [getattr(value, "full_tensor", lambda value=value: value)() for value in bare.state_dict().values()]
        return [float(number) for value in values for number in value.reshape(-1)]


class StopAfter(pytorch.PyTorchCallback):
    """Asks to stop once so many batches of this call were reported, and writes down what is stored."""

    def __init__(self, context: pytorch.PyTorchTrialContext, reports: int | None = None) -> None:
        self.context, self.left = context, reports
        self.stored: list[str] = []
        #: What each validation came to.
        self.validated: list[dict[str, Any]] = []

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.validated.append(metrics)

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]) -> None:
        if self.left is not None:
            self.left -= 1
            self.context.set_stop_requested(self.left <= 0)

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.stored.append(uuid)


def directory_of(uuid: str, data: Path) -> Path:
    """Of a checkpoint of a run off the cluster."""
    return data / "checkpoints" / uuid
