"""Ranks of a job: each trains, and writes down what it saw.

    torchrun ... -m tests.pytorch.job rank OUTPUT LENGTH [CHECKPOINT]
    python -m tests.pytorch.job parts PARTS

OUTPUT/<rank>.json: the samples of each batch, the parameters, the validation, and the checkpoints that were stored.
``parts``: jobs one after another, each of processes that were forked with what torchrun sets: PyTorch is loaded once.
PARTS: a file with a list of {output, ranks, length, after: the output of the job that it goes on from, or null,
kind: a name of `KINDS`}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from tenax import pytorch
from tests.pytorch.forked_ranks import train_parts
from tests.pytorch.trials import Digits, StopAfter

#: Of all ranks.
GLOBAL_BATCH_SIZE = 32


class Shared(Digits):
    """Batches of the job are of one size, however many ranks share them."""

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        super().__init__(context, samples=192, batch_size=context.get_per_slot_batch_size())
        self.watch = StopAfter(context)
        self.largest = context.wrap_reducer(max, name="largest", for_training=False)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}

    def evaluate_batch(self, batch: object) -> dict[str, object]:  # type: ignore[override]
        self.largest.update(int(batch[0].max()))  # type: ignore[index]
        return super().evaluate_batch(batch)


class Sharded(Shared):
    """Its parameters are shared out among the ranks, the first layer's apart from the rest."""

    def network(self) -> nn.Module:
        model = super().network()
        fully_shard(model[0])
        fully_shard(model)
        assert not any(parameter.to_local().numel() == parameter.numel() > 10 for parameter in model.parameters())
        return model


KINDS = {"shared": Shared, "sharded": Sharded}


def train(output: Path, length: int, checkpoint: str | None, kind: str = "shared", every: int = 1) -> None:
    """``every``: batches to a step."""
    torch.set_num_threads(1)
    torch.manual_seed(5)
    with pytorch.init(hparams={"global_batch_size": GLOBAL_BATCH_SIZE}, aggregation_frequency=every) as context:
        trial = KINDS[kind](context)
        pytorch.Trainer(trial, context).fit(
            max_length=pytorch.Batch(length),
            reporting_period=pytorch.Batch(2),
            checkpoint_period=pytorch.Batch(3),
            latest_checkpoint=checkpoint,
            async_checkpoints=True,
        )
        said = {
            "seen": trial.seen,
            "parameters": trial.parameters(),
            "stored": trial.watch.stored,
            "validated": trial.watch.validated,
        }
        (output / f"{context.distributed.rank}.json").write_text(json.dumps(said))


def train_part(output: Path, length: int, checkpoint: str | None, part: dict[str, Any]) -> None:
    train(output, length, checkpoint, part.get("kind", "shared"), part.get("every", 1))


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        train(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
    else:
        train_parts(json.loads(Path(sys.argv[2]).read_text()), train_part)
