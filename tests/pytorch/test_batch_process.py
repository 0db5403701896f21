"""Batches through a processor: each once, whatever the number of ranks, and however often the job goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from tenax import pytorch
from tenax.errors import InvalidInput
from tests.pytorch.batch_job import SAMPLES

ROOT = Path(__file__).parents[2]
WHOLE = sum(range(SAMPLES))


def job(output: Path, ranks: int, **variables: str) -> subprocess.CompletedProcess[str]:
    """Its ranks, to their end."""
    output.mkdir(exist_ok=True)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [*launcher, "-m", "tests.pytorch.batch_job", str(output)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=280, check=False)


def newest(data: Path) -> Path:
    """The checkpoint that was stored last."""
    return max(data.glob("checkpoints/*/batches.json"), key=lambda path: path.stat().st_mtime_ns).parent


def outputs(data: Path) -> dict[str, list[int]]:
    """What was uploaded, by rank and number."""
    files = data.glob("checkpoints/outputs/*/rank_*/deep/*.json")
    return {f"{path.parts[-3]}/{path.stem}": json.loads(path.read_text()) for path in files}


def reports(data: Path) -> list[str]:
    """Lines of files of runs by hand."""
    return [line for path in data.glob("runs/*/*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "ranks", [(3, 2), *(pytest.param(ranks, marks=pytest.mark.long) for ranks in ((2, 2), (1, 3)))]
)
def test_a_job_that_was_killed_goes_on_with_other_ranks(here: Path, tmp_path: Path, ranks: tuple[int, int]) -> None:
    """No sample is left out or counted twice, in outputs and in the reducer; no output of a finished round is lost."""
    first = job(tmp_path / "first", ranks[0], STOPS_AT="3")
    assert first.returncode != 0
    assert "was killed" not in first.stdout
    stored = newest(here)
    done = json.loads((stored / "batches.json").read_text())
    assert done == {"batches": 2 * ranks[0], "of": 13}
    before = {name: samples for name, samples in outputs(here).items() if int(name.split("/")[1]) < 2}
    second = job(tmp_path / "second", ranks[1], CHECKPOINT=stored.name)
    assert second.returncode == 0, second.stdout + second.stderr
    now = outputs(here)
    assert before.items() <= now.items()
    of_second = [json.loads((tmp_path / "second" / f"{rank}.json").read_text()) for rank in range(ranks[1])]
    numbers = [number for seen in of_second for number, _ in seen]
    assert min(numbers) == 2
    samples = [sample for seen in of_second for _, given in seen for sample in given]
    samples += [sample for given in before.values() for sample in given]
    assert sorted(samples) == list(range(SAMPLES))
    assert all((tmp_path / "second" / f"{rank}.finished").exists() for rank in range(ranks[1]))
    assert "what was uploaded is in " in second.stderr
    assert [line for line in reports(here) if "total" in line and str(WHOLE) in line]


class Few(pytorch.TorchBatchProcessor):
    """Takes what comes."""

    seen: list[list[int]] = []  # noqa: RUF012 - of one test

    def __init__(self, context: pytorch.TorchBatchProcessorContext) -> None:
        self.context = context

    def process_batch(self, batch: Any, batch_idx: int) -> None:
        assert self.context.to_device(batch)[0].device == self.context.device
        self.seen.append([int(sample) for sample in batch[0]])


def test_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the data set; ``max_batches`` ends it before; a last batch that is short can be left out."""
    monkeypatch.setattr(Few, "seen", [])
    pytorch.torch_batch_process(Few, TensorDataset(torch.arange(10)), batch_size=4, max_batches=2)
    assert Few.seen == [[0, 1, 2, 3], [4, 5, 6, 7]]
    monkeypatch.setattr(Few, "seen", [])
    pytorch.torch_batch_process(
        Few, TensorDataset(torch.arange(10)), dataloader_kwargs={"batch_size": 4, "drop_last": True}
    )
    assert Few.seen == [[0, 1, 2, 3], [4, 5, 6, 7]]
    monkeypatch.setattr(Few, "seen", [])
    pytorch.torch_batch_process(Few, TensorDataset(torch.arange(0)), batch_size=4)
    assert Few.seen == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"batch_size": 0}, "batch_size must be"),
        ({"max_batches": 0}, "max_batches must be"),
        ({"checkpoint_interval": 0}, "checkpoint_interval must be"),
        ({"dataloader_kwargs": {"shuffle": True}}, "may not have shuffle"),
        ({"batch_size": 2, "dataloader_kwargs": {"batch_size": 2}}, "give batch_size once"),
        ({"dataset": iter(range(3))}, "give one with __len__ and __getitem__"),
    ],
)
def test_bad_input(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        pytorch.torch_batch_process(Few, **{"dataset": TensorDataset(torch.arange(3)), **wrong})


def test_a_checkpoint_of_something_else(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenax import core

    with core.init() as context, context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
        (path / "model").write_text("x")
    monkeypatch.setattr(core.Context, "latest_checkpoint", uuid)
    with pytest.raises(InvalidInput, match="is none of torch_batch_process"):
        pytorch.torch_batch_process(Few, TensorDataset(torch.arange(3)))


def test_the_other_name() -> None:
    """Where Determined has it."""
    from tenax.pytorch import experimental

    assert experimental.torch_batch_process is pytorch.torch_batch_process  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        experimental.nothing  # type: ignore[attr-defined] # noqa: B018
