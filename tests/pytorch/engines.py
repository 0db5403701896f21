"""A `DeepSpeedTrial` for tests, which writes down which samples it saw, and ranks of it, forked.

    python -m tests.pytorch.engines PARTS

PARTS: a file with a list of {output, ranks, length, after, stage, kind}, as `tests.pytorch.forked_ranks` has them.
``stage``: of ZeRO. ``kind``: engine, or pipeline, which is one model over all ranks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from torch import nn

from tenax import pytorch
from tenax.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, Trainer, init
from tests.pytorch.forked_ranks import train_parts
from tests.pytorch.trials import NumberedDigits, StopAfter

# On a CPU it would compile its own way of talking on one machine: a minute, and a compiler.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "steps_per_print": 1000000,
}


class EngineDigits(DeepSpeedTrial):
    """Everything random that a trial has: order, weights, dropout, noise on the data."""

    def __init__(self, context: DeepSpeedTrialContext, samples: int = 96, stage: int = 1) -> None:
        self.context, self.samples = context, samples
        #: Of each call: the index of the batch, the numbers of its samples, the loss.
        self.seen: list[tuple[int, list[int], float]] = []
        self.watch = StopAfter(context)
        self.largest = context.wrap_reducer(max, name="largest", for_training=False)
        model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10))
        config = {**CONFIG, "zero_optimization": {"stage": stage}}
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self.engine = context.wrap_model_engine(engine)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(0, self.samples), batch_size=8, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(1000, 1100), batch_size=40)

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        numbers, pixels, labels = self.context.to_device(next(dataloader_iter))
        loss = nn.functional.cross_entropy(self.engine(pixels + 0.1 * torch.randn_like(pixels)), labels)
        self.engine.backward(loss)
        self.engine.step()
        self.seen.append((batch_idx, numbers.tolist(), float(loss.detach())))
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        numbers, pixels, labels = next(dataloader_iter)
        scores = self.engine(pixels)
        self.largest.update(int(numbers.max()))
        right = (scores.argmax(1) == labels).float().mean()
        return {"accuracy": right, "validation_loss": nn.functional.cross_entropy(scores, labels)}

    def parameters(self) -> list[float]:
        return [float(number) for each in self.engine.module.parameters() for number in each.detach().reshape(-1)]


class PipelineDigits(EngineDigits):
    """One model over all ranks: the first loads what goes in, the last the labels."""

    def __init__(self, context: DeepSpeedTrialContext, stage: int = 0) -> None:
        self.context, self.samples, self.seen = context, 96, []
        self.watch = StopAfter(context)
        layers = [nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10)]
        net = PipelineModule(layers, num_stages=context.distributed.size, loss_fn=nn.functional.cross_entropy)
        config = {**CONFIG, "zero_optimization": {"stage": stage}}
        engine, *_ = deepspeed.initialize(model=net, model_parameters=list(net.parameters()), config=config)
        self.engine = context.wrap_model_engine(engine)

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(0, 96), batch_size=8, shuffle=True, collate_fn=self._collated)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(NumberedDigits(1000, 1096), batch_size=8, collate_fn=_in_and_out)

    def _collated(self, samples: list[Any]) -> Any:
        self.seen.append((self.context.batch_idx or 0, [int(number) for number, _, _ in samples], 0.0))
        return _in_and_out(samples)

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
        return self.engine.train_batch(dataloader_iter)

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        return {"validation_loss": self.engine.eval_batch(dataloader_iter)}


def _in_and_out(samples: list[Any]) -> Any:
    return torch.stack([pixels for _, pixels, _ in samples]), torch.stack([label for _, _, label in samples])


def train(output: Path, length: int, checkpoint: str | None, stage: int, kind: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(5)
    with init(hparams={}) as context:
        torch.manual_seed(5)
        trial = (PipelineDigits if kind == "pipeline" else EngineDigits)(context, stage=stage)
        Trainer(trial, context).fit(
            max_length=pytorch.Batch(length),
            reporting_period=pytorch.Batch(2),
            checkpoint_period=pytorch.Batch(3),
            latest_checkpoint=checkpoint,
        )
        seen = {
            "seen": trial.seen,
            "parameters": trial.parameters(),
            "stored": trial.watch.stored,
            "validated": trial.watch.validated,
        }
        (output / f"{context.distributed.rank}.json").write_text(json.dumps(seen))


def train_part(output: Path, length: int, checkpoint: str | None, part: dict[str, Any]) -> None:
    train(output, length, checkpoint, part["stage"], part.get("kind", "engine"))


if __name__ == "__main__":
    train_parts(json.loads(Path(sys.argv[1]).read_text()), train_part)
