"""Jobs one after another, each of ranks that were forked with what torchrun sets: what they load is loaded once."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kits.ports import free_port
from tests.pytorch.trials import digits

#: Where a rank writes down what it saw, for how many batches it trains, and from which checkpoint; the part itself.
Train = Callable[[Path, int, "str | None", dict[str, Any]], None]


def train_parts(parts: list[dict[str, Any]], train: Train) -> None:
    """A part: {output, ranks, length, after: the output of the job that it goes on from, or None, ...}."""
    # What each rank would load by itself otherwise: an optimizer does.
    importlib.import_module("torch._dynamo")
    digits()
    for part in parts:
        checkpoint = None
        if part["after"] is not None:
            checkpoint = json.loads((Path(part["after"]) / "0.json").read_text())["stored"][-1]
        port = free_port()
        output = Path(part["output"])
        output.mkdir()
        children = [_forked(rank, port, part, train, checkpoint) for rank in range(part["ranks"])]
        if any(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children):
            sys.exit(f"a rank of {output} failed")


def _forked(rank: int, port: int, part: dict[str, Any], train: Train, checkpoint: str | None) -> int:
    child = os.fork()
    if child:
        return child
    ranks = part["ranks"]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=f"{port}", RANK=f"{rank}", WORLD_SIZE=f"{ranks}")
    os.environ.update(LOCAL_RANK=f"{rank}", LOCAL_WORLD_SIZE=f"{ranks}")
    try:
        train(Path(part["output"]), part["length"], checkpoint, part)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)
