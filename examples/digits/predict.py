"""Puts the held-out pictures through a trained model: `python predict.py UUID`, of a checkpoint of `train.py`.

UUID is a whole one, as `tenax checkpoint describe` says it. What it answers is stored beside the checkpoints, a file a
batch; `accuracy` is reported as a validation. On a cluster it is paused and gone on with, on one slot or several.
"""

from __future__ import annotations

import json
import sys

import torch
from model import build, load
from torch import Tensor
from torch.utils.data import TensorDataset

from tenax import pytorch


class Predict(pytorch.TorchBatchProcessor):
    def __init__(self, context: pytorch.TorchBatchProcessorContext) -> None:
        self.context = context
        with context.core.checkpoint.restore_path(sys.argv[1]) as path:
            hparams = json.loads((path / "metadata.json").read_text())["hparams"]
            model = build(hparams["hidden"], hparams["dropout"])
            model.load_state_dict(torch.load(path / "state.pt")["model"])
        self.model = context.prepare_model_for_inference(model)
        self.right = context.wrap_reducer(share, name="accuracy")
        context.report_task_using_checkpoint(sys.argv[1])

    @torch.no_grad()
    def process_batch(self, batch: list[Tensor], batch_idx: int) -> None:
        images, labels = self.context.to_device(batch)
        answers = self.model(images).argmax(dim=1)
        self.right.update((answers == labels).tolist())
        with self.context.upload_path() as path:
            torch.save(answers.cpu(), path / f"{batch_idx}.pt")


def share(batches: list[list[bool]]) -> float:
    right = [each for batch in batches for each in batch]
    return sum(right) / len(right)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("usage: python predict.py UUID (on a cluster: --config hyperparameters.checkpoint=UUID)")
    pytorch.torch_batch_process(Predict, TensorDataset(*load()[1]), batch_size=40)
