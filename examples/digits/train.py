"""Train a small classifier on the handwritten digits that come with scikit-learn.

The loop is an ordinary PyTorch loop. What makes it a trial: it takes its hyperparameters from the cluster, reports
metrics, saves a checkpoint after each epoch, goes on from the latest one, and leaves when it is asked to. Started by
hand (`python train.py`), the same script trains with the values below and keeps its files under your home directory.
"""

from __future__ import annotations

import pathlib

import torch
from model import build, evaluate, load
from torch import nn

import tenax
from tenax import core

BY_HAND = {"lr": 0.003, "batch_size": 32, "hidden": 64, "dropout": 0.2, "weight_decay": 1e-5, "epochs": 16}


def main(context: core.Context) -> None:
    info = tenax.get_cluster_info()
    hparams = info.trial.hparams if info else BY_HAND
    torch.manual_seed(info.trial.trial_seed if info else 0)
    (images, labels), held_out = load()
    model = build(hparams["hidden"], hparams["dropout"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=hparams["lr"], weight_decay=hparams["weight_decay"])
    first = 0
    if context.latest_checkpoint:
        first = restore(context, context.latest_checkpoint, model, optimizer)

    steps_per_epoch = -(-len(labels) // hparams["batch_size"])
    for epoch in range(first + 1, hparams["epochs"] + 1):
        loss = train_epoch(model, optimizer, images, labels, hparams["batch_size"])
        steps = epoch * steps_per_epoch
        accuracy, held_out_loss = evaluate(model, *held_out)
        context.train.report_training_metrics(steps, {"loss": loss, "epochs": epoch})
        save(context, model, optimizer, hparams, epoch, steps, accuracy)
        context.train.report_validation_metrics(steps, {"accuracy": accuracy, "loss": held_out_loss, "epochs": epoch})
        context.train.report_progress(epoch / hparams["epochs"])
        print(f"epoch {epoch}: loss {loss:.4f}, held-out accuracy {accuracy:.4f}")
        if context.preempt.should_preempt():
            print(f"asked to stop: epoch {epoch} is saved")
            return


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor, batch_size: int
) -> float:
    """One pass over the data in random order; the mean loss."""
    model.train()
    total = 0.0
    for batch in torch.randperm(len(labels)).split(batch_size):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(labels)


def save(
    context: core.Context,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    hparams: dict,
    epoch: int,
    steps: int,
    accuracy: float,
) -> None:
    """A checkpoint: all that the loop needs to go on, and what evaluate.py needs to build the model again."""
    metadata = {"steps_completed": steps, "epochs": epoch, "accuracy": accuracy, "hparams": hparams}
    with context.checkpoint.store_path(metadata) as (path, _):
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
            "random": torch.get_rng_state(),
        }
        torch.save(state, path / "state.pt")


def restore(context: core.Context, checkpoint: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Load a checkpoint into model and optimizer; the number of epochs done."""
    with context.checkpoint.restore_path(checkpoint) as path:
        state = torch.load(pathlib.Path(path) / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    print(f"going on after epoch {state['epoch']}")
    return state["epoch"]


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    with core.init() as context:
        main(context)
