"""A loop of one's own with DeepSpeed: it needs no callback, but the four calls of `tenax.core`.

python3 -m tenax.launch.torch_distributed python3 with_deepspeed.py     # one process, or one a GPU
"""

from __future__ import annotations

import deepspeed
import torch
from digits import load
from torch import nn

from tenax import core

BY_HAND = {
    "hidden": 64,
    "epochs": 8,
    "deepspeed": {
        "train_batch_size": 32,
        "optimizer": {"type": "Adam", "params": {"lr": 0.003, "torch_adam": True}},
        "zero_optimization": {"stage": 1},
        "steps_per_print": 1000000,
    },
}


def main(context: core.Context) -> None:
    hparams, ranks = context.hparams, context.distributed
    seed = context.info.trial.trial_seed if context.info else 0
    torch.manual_seed(seed)
    training, held_out = (tuple(map(torch.tensor, part)) for part in load())
    hidden = hparams["hidden"]
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 10))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=hparams["deepspeed"])
    torch.manual_seed(seed + ranks.rank)  # no two ranks leave out the same
    epoch, batch_size = 0, engine.train_batch_size()
    if context.latest_checkpoint is not None:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            _, state = engine.load_checkpoint(str(path))
            epoch = state["epoch"]
            torch.set_rng_state(torch.load(path / f"random-{ranks.rank}.pt"))

    while epoch < hparams["epochs"]:
        epoch += 1
        engine.train()
        # The same order on all ranks, and after a pause; each takes its part of every batch.
        order = torch.randperm(len(training[1]), generator=torch.Generator().manual_seed(seed + epoch))
        for batch in order.split(batch_size)[: len(order) // batch_size]:
            images, labels = (part[batch[ranks.rank :: ranks.size]].to(engine.device) for part in training)
            loss = nn.functional.cross_entropy(engine(images), labels)
            engine.backward(loss)
            engine.step()
        # All ranks save what is theirs; the chief reports.
        with context.checkpoint.store_path({"steps_completed": engine.global_steps}, shard=True) as (path, _):
            engine.save_checkpoint(str(path), client_state={"epoch": epoch})
            torch.save(torch.get_rng_state(), path / f"random-{ranks.rank}.pt")
        held = evaluate(engine, held_out)
        if ranks.rank == 0:
            context.train.report_training_metrics(engine.global_steps, {"loss": loss.item(), "epochs": epoch})
            context.train.report_validation_metrics(engine.global_steps, {**held, "epochs": epoch})
            context.train.report_progress(epoch / hparams["epochs"])
        if context.preempt.should_preempt():
            return


def evaluate(engine: deepspeed.DeepSpeedEngine, held_out: tuple[torch.Tensor, ...]) -> dict[str, float]:
    """On all ranks: a model that is shared out is whole only together."""
    images, labels = (part.to(engine.device) for part in held_out)
    engine.eval()
    with torch.no_grad():
        scores = engine(images)
    accuracy = (scores.argmax(dim=1) == labels).float().mean()
    return {"val_loss": nn.functional.cross_entropy(scores, labels).item(), "val_accuracy": accuracy.item()}


if __name__ == "__main__":
    torch.set_num_threads(1)  # a trial has one slot, which is one core here
    deepspeed.init_distributed()
    with core.init(distributed=core.DistributedContext.from_deepspeed(), hparams=BY_HAND) as context:
        main(context)
