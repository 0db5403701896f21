"""What the training loop of `tenax.pytorch` costs a step: the same tiny model in a bare loop of PyTorch, in one with
the calls of `tenax.core`, in a `Trainer`, and in the loops of Accelerate and Lightning.

In turns, one thread, off a cluster, on the GPU where PyTorch has one; peers in a process of their own, with a bare loop
of its own. Of each the best round, in microseconds a step, and what it is over the bare loop of its process. All read
the same batches from `torch.utils.data.DataLoader`, and take the loss 50 times a round.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from typing import Any

from benchmarks._measure import LONG, Line, Peer, PeerMissing

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tenax import core, pytorch

STEPS, ROUNDS = (4000, 7) if LONG else (1000, 5)
BATCH, EVERY = 8, STEPS // 50
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PEERS = ("bare", "accelerate", "lightning")


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


def now() -> float:
    """Once the device has done all that it was given."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def bare() -> float:
    """Seconds of the loop alone."""
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    began = now()
    for step, (inputs, outputs) in enumerate(DataLoader(DATA, batch_size=BATCH, shuffle=True), 1):
        loss = nn.functional.mse_loss(model(inputs.to(DEVICE)), outputs.to(DEVICE))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % EVERY == 0:
            loss.item()
    return now() - began


def core_calls() -> float:
    """With reports and the question whether to stop."""
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with core.init() as context:
        began = now()
        for step, (inputs, outputs) in enumerate(DataLoader(DATA, batch_size=BATCH, shuffle=True), 1):
            loss = nn.functional.mse_loss(model(inputs.to(DEVICE)), outputs.to(DEVICE))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % EVERY == 0:
                context.train.report_training_metrics(step, {"loss": loss.item()})
                context.preempt.should_preempt()
        return now() - began


class Clock(pytorch.PyTorchCallback):
    """From before the first batch to after the last."""

    began = ended = 0.0

    def on_training_start(self) -> None:
        self.began = now()

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.ended = now()


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
    ours = dict.fromkeys(ways, float("inf"))
    theirs = dict.fromkeys(PEERS, float("inf"))
    with contextlib.ExitStack() as stack:
        os.environ["TENAX_DATA_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        peer = None
        try:
            peer = stack.enter_context(Peer("training_loops"))
            line.add(peers=peer.about["versions"])
        except PeerMissing as missing:
            line.add(peers_missing=str(missing))
        for _ in range(ROUNDS):
            for name, train in ways.items():
                ours[name] = min(ours[name], train() / STEPS * 1e6)
            if peer is not None:
                for name in PEERS:
                    answer = peer.ask(way=name, device=DEVICE, steps=STEPS, every=EVERY)
                    theirs[name] = min(theirs[name], float(str(answer["us"])))
        if peer is not None:
            line.add(peers_over_bare_us=over_bare(theirs), peers_us_per_step=rounded(theirs))
    line.add(us_per_step=rounded(ours), over_bare_us=over_bare(ours), device=DEVICE, steps=STEPS, rounds=ROUNDS)
    line.emit()


def rounded(best: dict[str, float]) -> dict[str, float]:
    return {name: round(us, 1) for name, us in best.items()}


def over_bare(best: dict[str, float]) -> dict[str, float]:
    return {name: round(us - best["bare"], 1) for name, us in best.items() if name != "bare"}


if __name__ == "__main__":
    main()
