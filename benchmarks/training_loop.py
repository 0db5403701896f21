"""What the training loop of `tenax.pytorch` costs a step: the same tiny model in a bare loop of PyTorch, in one with
the calls of `tenax.core`, and in a `Trainer`.

In turns in one process, one thread, off a cluster; of each the best round, in microseconds a step, and what it is over
the bare loop. All read the same batches from `torch.utils.data.DataLoader`, and report 50 times a round. Run as
``python -m benchmarks.training_loop``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from typing import Any

from benchmarks._measure import LONG, Line

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tenax import core, pytorch

STEPS, ROUNDS = (4000, 7) if LONG else (1000, 5)
BATCH, EVERY = 8, STEPS // 50


class Noise(Dataset[Any]):
    """As many samples as a round takes."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(STEPS * BATCH, 32, generator=generator)
        self.outputs = torch.randn(STEPS * BATCH, 1, generator=generator)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.outputs[index]


DATA = Noise()


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))


def bare() -> float:
    """Seconds of the loop alone."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    began = time.perf_counter()
    for inputs, outputs in DataLoader(DATA, batch_size=BATCH, shuffle=True):
        loss = nn.functional.mse_loss(model(inputs), outputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return time.perf_counter() - began


def core_calls() -> float:
    """With reports and the question whether to stop."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with core.init() as context:
        began = time.perf_counter()
        for step, (inputs, outputs) in enumerate(DataLoader(DATA, batch_size=BATCH, shuffle=True), 1):
            loss = nn.functional.mse_loss(model(inputs), outputs)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % EVERY == 0:
                context.train.report_training_metrics(step, {"loss": loss.item()})
                context.preempt.should_preempt()
        return time.perf_counter() - began


class Clock(pytorch.PyTorchCallback):
    """From before the first batch to after the last."""

    began = ended = 0.0

    def on_training_start(self) -> None:
        self.began = time.perf_counter()

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.ended = time.perf_counter()


class Trial(pytorch.PyTorchTrial):
    """The same, as a class."""

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        self.clock = Clock()
        self.model = context.wrap_model(network())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=1e-3))

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"clock": self.clock}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(DATA, batch_size=BATCH, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(torch.utils.data.Subset(DATA, range(BATCH)), batch_size=BATCH)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, torch.Tensor]:
        inputs, outputs = batch
        loss = nn.functional.mse_loss(self.model(inputs), outputs)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]
        inputs, outputs = batch
        return {"loss": nn.functional.mse_loss(self.model(inputs), outputs)}


def trainer() -> float:
    """In a `Trainer`."""
    with pytorch.init() as context:
        trial = Trial(context)
        pytorch.Trainer(trial, context).fit(
            max_length=pytorch.Epoch(1), reporting_period=pytorch.Batch(EVERY), checkpoint_policy="none"
        )
        return trial.clock.ended - trial.clock.began


def main() -> None:
    torch.set_num_threads(1)
    line = Line("training_loop")
    ways = {"bare": bare, "core": core_calls, "trainer": trainer}
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(sys.stderr):
        os.environ["TENAX_DATA_DIR"] = directory
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, train in ways.items():
                best[name] = min(best[name], train() / STEPS * 1e6)
    line.add(
        us_per_step={name: round(us, 1) for name, us in best.items()},
        over_bare_us={name: round(us - best["bare"], 1) for name, us in best.items() if name != "bare"},
        ratio={name: round(us / best["bare"], 3) for name, us in best.items()},
        steps=STEPS,
        rounds=ROUNDS,
    )
    line.emit()


if __name__ == "__main__":
    main()
