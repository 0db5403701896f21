"""The same in a loop of one's own, with Lightning Fabric: it needs no callback, but the four calls of `tenax.core`."""

from __future__ import annotations

import lightning
import torch
from digits import load
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tenax import core

BY_HAND = {"lr": 0.003, "hidden": 64, "epochs": 8}


def main(context: core.Context) -> None:
    hparams = context.hparams
    fabric = lightning.Fabric(devices=1)
    fabric.seed_everything(context.info.trial.trial_seed if context.info else 0)
    training, held_out = (TensorDataset(*map(torch.tensor, part)) for part in load())
    hidden = hparams["hidden"]
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 10))
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=hparams["lr"]))
    loader = fabric.setup_dataloaders(DataLoader(training, batch_size=32, shuffle=True))
    state = {"model": model, "optimizer": optimizer, "epoch": 0, "random": torch.get_rng_state()}
    if context.latest_checkpoint is not None:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            fabric.load(path / "state.ckpt", state)
        torch.set_rng_state(state["random"])

    for epoch in range(state["epoch"] + 1, hparams["epochs"] + 1):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            fabric.backward(loss)
            optimizer.step()
        steps = epoch * len(loader)
        context.train.report_training_metrics(steps, {"loss": loss.item(), "epochs": epoch})
        state.update(epoch=epoch, random=torch.get_rng_state())
        with context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
            fabric.save(path / "state.ckpt", state)
        context.train.report_validation_metrics(steps, {**evaluate(model, held_out), "epochs": epoch})
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
