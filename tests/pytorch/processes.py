"""Jobs of `tests.pytorch.job` in processes of their own, and what their ranks wrote down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as started:
        try:
            printed, _ = started.communicate(timeout=280)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, printed


def said_in(output: Path, ranks: int) -> list[Any]:
    """What each rank wrote down."""
    return [json.loads((output / f"{rank}.json").read_text()) for rank in range(ranks)]


def batches_of(said: list[Any]) -> dict[int, list[int]]:
    """The samples of each batch of the job."""
    batches: dict[int, list[int]] = {}
    for of_rank in said:
        for index, numbers, _ in of_rank["seen"]:
            batches.setdefault(index, []).extend(numbers)
    return {index: sorted(numbers) for index, numbers in batches.items()}
