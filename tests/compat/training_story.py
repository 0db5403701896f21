"""One trial, with everything that a loop does for it, under the name that is given: determined or tenax.

    python training_story.py NAME OUTPUT STEP_MODE AGGREGATION

OUTPUT: what came to pass, in order, as JSON: batches with their losses and rates, callbacks, metrics.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

name, output, step_mode, aggregation = sys.argv[1:]
pytorch = importlib.import_module(f"{name}.pytorch")
torch.set_num_threads(1)


def largest(values: list[float]) -> float:
    return max(values)


class Watch(pytorch.PyTorchCallback):  # type: ignore[misc,name-defined]
    """Writes down each turn."""

    def __init__(self, story: list[Any]) -> None:
        self.story = story

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        self.story.append(["startup", first_batch_idx, checkpoint_uuid])

    def on_trial_shutdown(self) -> None:
        self.story.append(["shutdown"])

    def on_training_start(self) -> None:
        self.story.append(["start"])

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        self.story.append(["epoch begins", epoch_idx])

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.story.append(["epoch ends", epoch_idx])

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[Any]) -> None:
        rounded = {key: round(float(value), 5) for key, value in sorted(avg_metrics.items())}
        self.story.append(["trained", {key: rounded[key] for key in ("largest", "loss")}, len(batch_metrics)])

    def on_validation_start(self) -> None:
        self.story.append(["validation"])

    def on_validation_epoch_start(self) -> None:
        self.story.append(["validation begins"])

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        self.story.append(["validation ends", len(outputs)])

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.story.append(["validated", {key: round(float(value), 4) for key, value in sorted(metrics.items())}])

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        self.story.append(["save", sorted(key for key in checkpoint if key != "tenax")])

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        names = {"state_dict.pth", "trial_state.pkl", "load_data.json"}
        self.story.append(["written", sorted(names & {path.name for path in Path(checkpoint_dir).iterdir()})])

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.story.append(["stored", bool(uuid)])


class Digits(pytorch.PyTorchTrial):  # type: ignore[misc,name-defined]
    """A small classifier."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.story: list[Any] = []
        pixels, labels = load_digits(return_X_y=True)
        inputs, classes = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
        self.training = TensorDataset(inputs[:330], classes[:330])
        self.held_out = TensorDataset(inputs[400:530], classes[400:530])
        torch.manual_seed(1)
        self.model = context.wrap_model(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.9)
        context.wrap_lr_scheduler(schedule, getattr(pytorch.LRScheduler.StepMode, step_mode), frequency=2)
        self.largest = context.wrap_reducer(largest, name="largest")

    def build_training_data_loader(self) -> Any:
        return pytorch.DataLoader(self.training, batch_size=16)

    def build_validation_data_loader(self) -> Any:
        return pytorch.DataLoader(self.held_out, batch_size=32)

    def build_callbacks(self) -> dict[str, Any]:
        return {"watch": Watch(self.story)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        inputs, classes = batch
        loss = nn.functional.cross_entropy(self.model(inputs), classes)
        value = float(loss.detach())
        self.largest.update(value)
        self.context.backward(loss)
        clip = torch.nn.utils.clip_grad_norm_
        self.context.step_optimizer(self.optimizer, clip_grads=lambda parameters: clip(parameters, 1.0))
        turn = self.context.is_epoch_start(), self.context.is_epoch_end(), self.context.current_train_epoch()
        rate = round(self.optimizer.param_groups[0]["lr"], 6)
        self.story.append(["batch", epoch_idx, batch_idx, *turn, round(value, 5), rate])
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        inputs, classes = batch
        scores = self.model(inputs)
        self.largest.update(float(scores.max()))
        right = (scores.argmax(1) == classes).float().sum()
        return {"loss": nn.functional.cross_entropy(scores, classes), "right": right}

    def evaluation_reducer(self) -> dict[str, Any]:
        return {"loss": pytorch.Reducer.AVG, "right": pytorch.Reducer.SUM}


with pytorch.init(hparams={"global_batch_size": 16}, aggregation_frequency=int(aggregation)) as context:
    trial = Digits(context)
    pytorch.Trainer(trial, context).fit(
        max_length=pytorch.Epoch(3),
        validation_period=pytorch.Batch(25),
        checkpoint_period=pytorch.Batch([10, 47]),
        reporting_period=pytorch.Batch(10),
        checkpoint_policy="none",
        step_zero_validation=True,
    )
Path(output).write_text(json.dumps(trial.story))
