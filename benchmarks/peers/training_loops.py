"""Loops of peers over the tiny model of ``benchmarks/training_loop.py``: bare PyTorch, Accelerate, Lightning's Trainer.

Reads ``{"way": "bare" | "accelerate" | "lightning", "device": "cpu" | "cuda", "steps": n, "every": m}`` per line,
answers ``{"us": microseconds a step}``: from before the first batch to after the last, the loss taken every m steps.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
import warnings
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import accelerate
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 8


class Noise(Dataset[Any]):
    """As many samples as a round takes."""

    def __init__(self, steps: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(steps * BATCH, 32, generator=generator)
        self.outputs = torch.randn(steps * BATCH, 1, generator=generator)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.outputs[index]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))


def now(device: str) -> float:
    """Once the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def bare(data: Noise, device: str, every: int) -> float:
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    began = now(device)
    for step, (inputs, outputs) in enumerate(DataLoader(data, batch_size=BATCH, shuffle=True), 1):
        loss = nn.functional.mse_loss(model(inputs.to(device)), outputs.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % every == 0:
            loss.item()
    return now(device) - began


def with_accelerate(data: Noise, device: str, every: int) -> float:
    accelerator = accelerate.Accelerator(cpu=device == "cpu")
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    began = now(device)
    for step, (inputs, outputs) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(inputs), outputs)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % every == 0:
            loss.item()
    return now(device) - began


class Lit(lightning.LightningModule):
    """The same, as a module."""

    def __init__(self, device_name: str) -> None:
        super().__init__()
        self.model, self.device_name = network(), device_name
        self.began = self.ended = 0.0

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        inputs, outputs = batch
        loss = nn.functional.mse_loss(self.model(inputs), outputs)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)

    def on_train_epoch_start(self) -> None:
        self.began = now(self.device_name)

    def on_train_epoch_end(self) -> None:
        self.ended = now(self.device_name)


def with_lightning(data: Noise, device: str, every: int) -> float:
    module = Lit(device)
    lightning.Trainer(
        max_epochs=1,
        accelerator="gpu" if device == "cuda" else "cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=every,
    ).fit(module, DataLoader(data, batch_size=BATCH, shuffle=True))
    return module.ended - module.began


WAYS = {"bare": bare, "accelerate": with_accelerate, "lightning": with_lightning}


def main() -> None:
    """Answer questions until there are no more."""
    warnings.filterwarnings("ignore")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.set_num_threads(1)
    versions = {"torch": torch.__version__, "accelerate": accelerate.__version__, "lightning": lightning.__version__}
    print(json.dumps({"peer": "training loops", "versions": versions}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        data = Noise(question["steps"])
        with contextlib.redirect_stdout(sys.stderr):
            seconds = WAYS[question["way"]](data, question["device"], question["every"])
        print(json.dumps({"us": seconds / question["steps"] * 1e6}), flush=True)


if __name__ == "__main__":
    main()
