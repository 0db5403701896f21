"""The digits again, on several processes and machines: PyTorch's DistributedDataParallel.

Every rank trains on its part of each batch; gradients are averaged, so that all have the same weights at any time, and
the curve is that of one process with the whole batch. The chief (rank 0) reports and saves; all of them ask together
whether to stop.

    python3 -m tenax.launch.torch_distributed train_distributed.py                              # one process
    python3 -m tenax.launch.torch_distributed --nproc_per_node 2 -- train_distributed.py        # two
    tenax experiment create distributed.yaml . -f                                               # all machines it needs
"""

from __future__ import annotations

import os
import pathlib

import torch
import torch.distributed as dist
from model import build, evaluate, load
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tenax import core

BY_HAND = {"lr": 0.003, "batch_size": 64, "hidden": 64, "epochs": 4}


def main(context: core.Context, device: torch.device) -> nn.Module:
    info, rank, size = context.info, context.distributed.rank, context.distributed.size
    hparams = info.trial.hparams if info else BY_HAND
    seed = info.trial.trial_seed if info else 0
    torch.manual_seed(seed)
    (images, labels), held_out = [[part.to(device) for part in data] for data in load()]
    model = build(hparams["hidden"], dropout=0.0).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=hparams["lr"])
    first = 0
    if context.latest_checkpoint:
        first = restore(context, context.latest_checkpoint, model, optimizer, device)
    shared = DistributedDataParallel(model)

    batch_size = hparams["batch_size"]
    steps_per_epoch = len(labels) // batch_size
    for epoch in range(first + 1, hparams["epochs"] + 1):
        model.train()
        # The same order on all ranks, and after a restart; each takes its part of every batch.
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed + epoch))
        total = torch.zeros(1, device=device)
        for batch in order[: steps_per_epoch * batch_size].split(batch_size):
            part = batch[rank::size]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(shared(images[part]), labels[part])
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)  # every rank takes part, the chief reports
        if rank == 0:
            steps = epoch * steps_per_epoch
            accuracy, held_out_loss = evaluate(model, *held_out)
            loss = total.item() / size / steps_per_epoch
            context.train.report_training_metrics(steps, {"loss": loss, "epochs": epoch})
            save(context, model, optimizer, hparams, epoch, steps, accuracy)
            validation = {"accuracy": accuracy, "loss": held_out_loss, "epochs": epoch}
            context.train.report_validation_metrics(steps, validation)
            print(f"epoch {epoch}: loss {loss:.4f}, held-out accuracy {accuracy:.4f}")
        if context.preempt.should_preempt():
            break
    return model


def save(
    context: core.Context,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    hparams: dict,
    epoch: int,
    steps: int,
    accuracy: float,
) -> None:
    """What the loop needs to go on; the chief's is everyone's."""
    hparams = {**hparams, "dropout": 0.0}
    metadata = {"steps_completed": steps, "epochs": epoch, "accuracy": accuracy, "hparams": hparams}
    with context.checkpoint.store_path(metadata) as (path, _):
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, path / "state.pt")


def restore(
    context: core.Context, checkpoint: str, model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device
) -> int:
    """On all ranks; the number of epochs done."""
    with context.checkpoint.restore_path(checkpoint) as path:
        state: dict[str, Tensor] = torch.load(pathlib.Path(path) / "state.pt", map_location=device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    print(f"going on after epoch {state['epoch']}")
    return state["epoch"]


if __name__ == "__main__":
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        dist.init_process_group("nccl" if gpu else "gloo")
        main(context, device)
        dist.destroy_process_group()
