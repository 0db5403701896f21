"""A loop of one's own with Hugging Face's Accelerate: it needs no callback, but the four calls of `tenax.core`."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from digits import load
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tenax import core

BY_HAND = {"lr": 0.003, "hidden": 64, "epochs": 8}


class Progress:
    """Where the loop stands, for Accelerate to save with the rest."""

    def __init__(self) -> None:
        self.epoch = 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch = state["epoch"]


def main(context: core.Context) -> None:
    hparams, progress = context.hparams, Progress()
    # The order of an epoch is that of its number: of several ranks the usual sampler has another one after a pause.
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    set_seed(context.info.trial.trial_seed if context.info else 0)
    training, held_out = (TensorDataset(*map(torch.tensor, part)) for part in load())
    hidden = hparams["hidden"]
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=hparams["lr"])
    loader = DataLoader(training, batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    accelerator.register_for_checkpointing(progress)
    if context.latest_checkpoint is not None:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            accelerator.load_state(str(path))

    for epoch in range(progress.epoch + 1, hparams["epochs"] + 1):
        loader.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
        progress.epoch, steps = epoch, epoch * len(loader)
        # All ranks save what is theirs; the chief reports.
        with context.checkpoint.store_path({"steps_completed": steps}, shard=True) as (path, _):
            accelerator.save_state(str(path))
        if accelerator.is_main_process:
            held = evaluate(accelerator.unwrap_model(model), held_out)
            context.train.report_training_metrics(steps, {"loss": loss.item(), "epochs": epoch})
            context.train.report_validation_metrics(steps, {**held, "epochs": epoch})
            context.train.report_progress(epoch / hparams["epochs"])
        if context.preempt.should_preempt():
            return


def evaluate(model: nn.Module, held_out: TensorDataset) -> dict[str, float]:
    images, labels = held_out.tensors
    model.eval()
    with torch.no_grad():
        scores = model(images)
    accuracy = (scores.argmax(dim=1) == labels).float().mean()
    return {"val_loss": nn.functional.cross_entropy(scores, labels).item(), "val_accuracy": accuracy.item()}


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    with core.init(hparams=BY_HAND) as context:
        main(context)
