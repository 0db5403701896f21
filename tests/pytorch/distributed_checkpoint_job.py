"""Ranks of jobs whose model is sharded (FSDP2 over gloo), one job after another, each going on from the one before.

    python -m tests.pytorch.distributed_checkpoint_job DIRECTORY RANKS [RANKS ...]

DIRECTORY/<job>-<rank>.json: what the rank began and ended with, as a whole, and the id of what was stored.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as group
from torch import nn
from torch.distributed.fsdp import fully_shard

from tenax import core, pytorch
from tests.kits.ports import free_port

STEPS = 3


def network() -> nn.Module:
    """Seven rows are shared out unevenly among two and four."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3, bias=False))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, first: int) -> None:
    """The same batch on all ranks: what comes out does not depend on how many there are."""
    for step in range(first, first + STEPS):
        inputs = torch.randn(8, 5, generator=torch.Generator().manual_seed(step))
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def whole(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """All numbers of the state, gathered."""
    values = [*model.parameters()]
    values += [value for state in optimizer.state.values() for value in state.values()]
    return {f"{n}": getattr(each, "full_tensor", lambda each=each: each)().tolist() for n, each in enumerate(values)}


def job(directory: Path, number: int, checkpoint: str | None) -> None:
    group.init_process_group("gloo")
    ranks = core.DistributedContext.from_torch_distributed()
    with core.init(distributed=ranks, checkpoint_storage=str(directory / "storage")) as context:
        model = network()
        for layer in (model[0], model[2], model):  # type: ignore[index]
            fully_shard(layer)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        steps = 0
        if checkpoint is not None:
            with context.checkpoint.restore_path(checkpoint) as path:
                steps = pytorch.load_sharded(path, model, optimizer)["steps"]
        began = whole(model, optimizer)
        train(model, optimizer, steps)
        about = {"steps_completed": steps + STEPS}
        with context.checkpoint.store_path(about, shard=True) as (path, storage_id):
            pytorch.save_sharded(path, model, optimizer, {"steps": steps + STEPS, "rank": ranks.rank})
        noted = {"began": began, "ended": whole(model, optimizer), "stored": storage_id}
        (directory / f"{number}-{ranks.rank}.json").write_text(json.dumps(noted))
    group.destroy_process_group()


def main(directory: Path, jobs: list[int]) -> None:
    torch.set_num_threads(1)
    importlib.import_module("torch._dynamo")
    checkpoint = None
    for number, ranks in enumerate(jobs):
        port = free_port()
        children = [_forked(rank, ranks, port, directory, number, checkpoint) for rank in range(ranks)]
        if any(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children):
            sys.exit(f"a rank of job {number} failed")
        checkpoint = json.loads((directory / f"{number}-0.json").read_text())["stored"]


def _forked(rank: int, ranks: int, port: int, directory: Path, number: int, checkpoint: str | None) -> int:
    child = os.fork()
    if child:
        return child
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=f"{port}", RANK=f"{rank}", WORLD_SIZE=f"{ranks}")
    os.environ.update(LOCAL_RANK=f"{rank}", LOCAL_WORLD_SIZE=f"{ranks}")
    try:
        job(directory, number, checkpoint)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(each) for each in sys.argv[2:]])
