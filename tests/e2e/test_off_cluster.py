"""The same scripts without a cluster: `python train.py` trains, with local files, and changes nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kits.machine import ROOT

# A busy machine takes minutes for what is done in seconds.
pytestmark = pytest.mark.timeout(900)


def run_by_hand(directory: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As a person would, in a shell that knows of no cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={
            **environment,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "PYTHONDONTWRITEBYTECODE": "1",
            # On a busy machine torch's threads wait for one another most of the time.
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=580,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def test_noop_runs_by_hand(home: Path) -> None:
    """Ten reports in a local file, and a checkpoint that holds the last step."""
    run_by_hand(ROOT / "examples" / "noop", home, "train.py")
    (reports,) = (home / "data").glob("tenax/runs/*/reports*")
    assert reports.read_text().count("validation") == 10
    states = [json.loads(path.read_text()) for path in (home / "data").glob("tenax/checkpoints/*/state.json")]
    assert {"step": 10} in states


def test_digits_trains_by_hand(home: Path) -> None:
    """It learns, tells of each epoch, and the last checkpoint that it leaves gives the accuracy that it told of."""
    digits = ROOT / "examples" / "digits"
    last = run_by_hand(digits, home, "train.py").stdout.strip().splitlines()[-1]
    assert last.startswith("epoch 16: ")
    told = float(last.split("accuracy ")[1])
    assert told > 0.95
    (newest,) = (
        path
        for path in (home / "data" / "tenax" / "checkpoints").iterdir()
        if json.loads((path / "metadata.json").read_text())["epochs"] == 16
    )
    again = run_by_hand(digits, home, "evaluate.py", str(newest)).stdout
    assert f"{told:.4f}" in again
