"""A rank of a job that processes batches: ``python -m tests.pytorch.batch_job OUTPUT [CHECKPOINT] [STOPS_AT]``.

OUTPUT/<rank>.json: what it was given, as [number, [samples]]; OUTPUT/<rank>.finished where it came to the end.
STOPS_AT: it is killed in the round of that number.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.data import TensorDataset

from tenax import core, pytorch

SAMPLES = 50


class Note(pytorch.TorchBatchProcessor):
    """Writes down its samples, and sums them up."""

    def __init__(self, context: pytorch.TorchBatchProcessorContext) -> None:
        self.context = context
        self.output = Path(sys.argv[1])
        self.seen: list[Any] = []
        self.total = context.wrap_reducer(sum, name="total")
        self.model = context.prepare_model_for_inference(torch.nn.Linear(1, 1))

    def process_batch(self, batch: Any, batch_idx: int) -> None:
        if str(batch_idx) == os.environ.get("STOPS_AT"):
            os._exit(9)
        assert not self.model.training
        samples = [int(sample) for sample in batch[0]]
        self.total.update(sum(samples))
        self.seen.append([batch_idx, samples])
        with self.context.upload_path() as path:
            (path / "deep").mkdir()
            (path / "deep" / f"{batch_idx}.json").write_text(json.dumps(samples))

    def on_checkpoint_start(self) -> None:
        """What counts as done is written down."""
        (self.output / f"{self.context.get_distributed_rank()}.json").write_text(json.dumps(self.seen))

    def on_finish(self) -> None:
        rank = self.context.get_distributed_rank()
        (self.output / f"{rank}.finished").write_text(self.context.outputs)


def main() -> None:
    latest = os.environ.get("CHECKPOINT")
    with patch.object(core.Context, "latest_checkpoint", latest or None):
        pytorch.torch_batch_process(Note, TensorDataset(torch.arange(SAMPLES)), batch_size=4, checkpoint_interval=2)


if __name__ == "__main__":
    main()
