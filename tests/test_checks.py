"""What ``make check`` checks, as tests: the tools run on the tree as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
FOLDERS = [folder for folder in ("src", "tests", "benchmarks", "examples") if (ROOT / folder).is_dir()]


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "format", "--check", *FOLDERS],
        ["ruff", "check", *FOLDERS],
        ["mypy"],
        ["lint-imports", "--no-cache"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_tools_have_nothing_to_say(command: list[str]) -> None:
    """Format, lint, types and import contracts hold."""
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
