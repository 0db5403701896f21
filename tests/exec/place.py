"""Where the first program of a trial runs, as an agent prepares it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import tenax
from tests.kits.task_master import TaskMaster, environment

BEGINNING = "INFO: New trial runner in (container "
SOURCE = str(Path(tenax.__file__).parents[1])


class Place:
    """A container of the process runtime: run directory, work directory, environment."""

    def __init__(self, root: Path, master: TaskMaster) -> None:
        self.run_dir = root / "run"
        self.work = root / "work"
        self.run_dir.mkdir()
        self.work.mkdir()
        self.env = environment(master, str(self.run_dir))

    def configure(self, **keys: object) -> None:
        config = json.loads(self.env["DET_EXPERIMENT_CONFIG"])
        self.env["DET_EXPERIMENT_CONFIG"] = json.dumps({**config, **keys})

    def start(self, python: str = sys.executable, *, before: Sequence[str] = (), **env: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
        return subprocess.Popen(
            [*before, python, "-m", "tenax.exec.trial"],
            cwd=self.work,
            env={**kept, "PYTHONPATH": SOURCE, **self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, python: str = sys.executable, *, before: Sequence[str] = (), **env: str) -> tuple[int, str, str]:
        """Exit code, output, errors; ``before``: what starts it."""
        process = self.start(python, before=before, **env)
        out, err = process.communicate(timeout=240)
        return process.returncode, without_beginning(out), err


def without_beginning(out: str) -> str:
    """Output of a trial without the line that the first program begins it with."""
    first, _, rest = out.partition("\n")
    return rest if first.startswith(BEGINNING) else out
