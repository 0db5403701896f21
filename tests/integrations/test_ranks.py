"""Trials of several ranks over gloo: all stop after the same step, and go on as the job that was not paused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.place import Part, Trial
from tests.integrations.same import same
from tests.kits import task_master

ROOT = Path(__file__).parents[2]
RANKS = 2
#: 45 steps to an epoch, of 16 samples for each rank.
ARGUMENTS = {
    "learning_rate": 0.003,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 16,
    "use_cpu": True,
}
DEEPSPEED = {
    "train_batch_size": 32,
    "optimizer": {"type": "Adam", "params": {"lr": 0.003, "torch_adam": True}},
    "zero_optimization": {"stage": 2},
    "steps_per_print": 1000000,
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "with_transformers": {"hidden": 16, "training_arguments": ARGUMENTS},
    "with_lightning": {"lr": 0.003, "hidden": 16, "dropout": 0.2, "epochs": 3},
    "with_accelerate": {"lr": 0.003, "hidden": 16, "epochs": 3},
    "with_deepspeed": {"hidden": 16, "epochs": 3, "deepspeed": DEEPSPEED},
}


@contextlib.contextmanager
def job(example: str) -> Iterator[subprocess.Popen[str]]:
    """The process whose forks are the ranks."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integrations.job", example],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def train(process: subprocess.Popen[str], trial: Trial, *, stops: bool = False) -> Part:
    """One run of the job; ``stops``: it is asked to from the beginning."""
    assert process.stdin is not None
    assert process.stdout is not None
    with task_master.running() as master:
        if stops:
            master.preempt.set()
        environment, directory = trial.set_up(master, DET_SLOT_IDS=json.dumps(list(range(RANKS))))
        run = {"environment": environment, "directory": str(directory), "ranks": RANKS}
        process.stdin.write(json.dumps(run) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "0\n"
        return trial.add(master)


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_paused_job_is_the_one_that_was_not(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number is the same, and the last state of each rank."""
    hparams = EXAMPLES[example]
    whole, broken = Trial(tmp_path / "whole", monkeypatch, hparams), Trial(tmp_path / "broken", monkeypatch, hparams)
    with job(example) as process:
        full = train(process, whole)
        paused = train(process, broken, stops=True)
        rest = train(process, broken)
    assert paused.acknowledged
    assert len(paused.checkpoints) == 1
    assert full.checkpoints[-1]["stepsCompleted"] > paused.checkpoints[0]["stepsCompleted"]
    validations = {key: value for key, value in full.metrics.items() if key[0] == "validation"}
    both = {**paused.metrics, **rest.metrics}
    assert validations == {key: value for key, value in both.items() if key[0] == "validation"}
    directories = [each.directory() for each in (whole, broken)]
    if example == "with_transformers":
        directories = [directory / f"checkpoint-{full.checkpoints[-1]['stepsCompleted']}" for directory in directories]
        assert {f"rng_state_{rank}.pth" for rank in range(RANKS)} <= {path.name for path in directories[1].iterdir()}
    same(*directories)
