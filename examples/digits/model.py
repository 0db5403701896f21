"""Data and model of the digits example, shared by train.py and evaluate.py."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn


def load() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """(images, labels) to train on, and (images, labels) held out: 1437 and 360 pictures of 8 x 8, always the same."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held_out, rest = order[:360], order[360:]
    return (images[rest], labels[rest]), (images[held_out], labels[held_out])


def build(hidden: int, dropout: float) -> nn.Module:
    """Two convolutions and two dense layers; ``hidden`` units in between."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(32 * 4 * 4, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Accuracy and mean loss."""
    model.eval()
    with torch.no_grad():
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels).item()
        accuracy = (scores.argmax(dim=1) == labels).float().mean().item()
    return accuracy, loss
