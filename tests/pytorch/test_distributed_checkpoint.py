"""States that no rank has as a whole: saved by some ranks, gone on with by others."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tenax import core, pytorch
from tenax.errors import InvalidInput
from tests.pytorch import distributed_checkpoint_job

ROOT = Path(__file__).parents[2]


def test_a_sharded_state_goes_on_with_other_ranks(tmp_path: Path) -> None:
    """Four save, two go on, four again: each begins with what the ones before ended with, bit for bit."""
    command = [sys.executable, "-m", "tests.pytorch.distributed_checkpoint_job", str(tmp_path), "4", "2", "4"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    noted = [json.loads((tmp_path / f"{number}-0.json").read_text()) for number in range(3)]
    for before, after in itertools.pairwise(noted):
        assert after["began"] == before["ended"]
    model = distributed_checkpoint_job.network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for first in (0, 3, 6):
        distributed_checkpoint_job.train(model, optimizer, first)
    alone = distributed_checkpoint_job.whole(model, optimizer)
    for name, value in noted[-1]["ended"].items():
        torch.testing.assert_close(torch.tensor(value), torch.tensor(alone[name]))
    files = sorted(os.listdir(tmp_path / "storage" / noted[0]["stored"] / "sharded"))
    assert files == [".metadata", *(f"__{rank}_0.distcp" for rank in range(4))]


def store(model: nn.Module, optimizer: torch.optim.Optimizer, **options: bool) -> str:
    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}, shard=True) as (path, storage_id):
            pytorch.save_sharded(path, model, optimizer, {"note": "x"}, **options)
    return storage_id


def trained(width: int = 4, layers: int = 2) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
    model(torch.ones(2, width)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_what_does_not_fit_is_named(here: Path) -> None:
    """Another shape, another number of layers, and what is no such checkpoint; what to do is said."""
    storage_id = store(*trained())
    path = here / "checkpoints" / storage_id
    for other, says in (
        (trained(width=5), r"model\.0\.weight is 4x4 in it and 5x5 here.*Build the model"),
        (trained(layers=3), r"it has no model\.2\.weight"),
        (trained(layers=1), r"model\.1\.weight is in it alone"),
    ):
        with pytest.raises(InvalidInput, match=says):
            pytorch.load_sharded(path, *other)
    with pytest.raises(InvalidInput, match="holds no sharded state that can be read"):
        pytorch.load_sharded(here, *trained())
    with pytest.raises(InvalidInput, match="`extra` cannot be saved"):
        pytorch.save_sharded(here, *trained(), {"f": lambda: None})
    model, optimizer = trained()
    with torch.no_grad():
        model[0].weight.zero_()  # type: ignore[index, operator]
    assert pytorch.load_sharded(path, model, optimizer) == {"note": "x"}
    assert torch.equal(model[0].weight, trained()[0][0].weight)  # type: ignore[index, arg-type]


def test_layers_that_are_not_trained_are_stored_once(here: Path) -> None:
    """With a file for each tensor: the second checkpoint takes room for what has changed."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    ids = []
    with core.init() as context:
        for _ in range(2):
            with context.checkpoint.store_path({"steps_completed": 1}, shard=True) as (path, storage_id):
                pytorch.save_sharded(path, model, optimizer, file_per_tensor=True)
            ids.append(storage_id)
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    files = [sorted((here / "checkpoints" / each / "sharded").glob("*.distcp")) for each in ids]
    shared = [one.samefile(other) for one, other in zip(*files, strict=True)]
    assert shared.count(False) == 2
    assert shared.count(True) >= 2
