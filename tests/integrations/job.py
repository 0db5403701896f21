"""Ranks of trials, forked: frameworks take seconds to import, and are imported once.

    python -m tests.integrations.job EXAMPLE

Standard input: a line of JSON for each run, {"environment": {...}, "directory": ..., "ranks": 2}; standard output: for
each a line when all of its ranks have ended: how many of them failed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

import torch

from tenax import core
from tests.integrations.place import EXAMPLES
from tests.kits.ports import free_port


def train(name: str) -> None:
    """What one rank does."""
    torch.set_num_threads(1)
    if name == "with_deepspeed":
        init_deepspeed()
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        sys.modules[name].main(context)


def init_deepspeed() -> None:
    import deepspeed

    # On a CPU it would compile its own way of talking on one machine: a minute, and a compiler.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="gloo")


def forked(name: str, rank: int, ranks: int, port: int, environment: dict[str, str], directory: str) -> int:
    child = os.fork()
    if child:
        return child
    os.environ.update(environment, MASTER_ADDR="127.0.0.1", MASTER_PORT=f"{port}", RANK=f"{rank}")
    os.environ.update(WORLD_SIZE=f"{ranks}", LOCAL_RANK=f"{rank}", LOCAL_WORLD_SIZE=f"{ranks}", GROUP_RANK="0")
    # As torchrun says it: Lightning looks for that.
    os.environ.update(TORCHELASTIC_RUN_ID=f"{port}")
    try:
        os.chdir(directory)
        os.dup2(2, 1)
        train(name)
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main(name: str) -> None:
    sys.path.insert(0, str(EXAMPLES))
    importlib.import_module(name)
    # What each rank would load by itself otherwise: an optimizer does.
    importlib.import_module("torch._dynamo")
    for line in sys.stdin:
        run = json.loads(line)
        port = free_port()
        ranks = range(run["ranks"])
        children = [forked(name, rank, len(ranks), port, run["environment"], run["directory"]) for rank in ranks]
        failed = [child for child in children if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
        sys.stdout.write(f"{len(failed)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
