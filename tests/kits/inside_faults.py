"""Faults of one process that only it can have itself: its clock jumps, a loop of it hangs.

    faults = InsideFaults(directory)
    with faulty_cluster(environment=faults.environment) as place:
        faults.jump("master", 3600)

Each Python program of the cluster loads ``tests/kits/inside/sitecustomize.py``. Clocks are those of
``tests/kits/inside/clock.c``, for which a C compiler has to be there (`tests/setup/system.py` installs it).
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.kits.machine import wait_for

_INSIDE = Path(__file__).parent / "inside"
ROLES = ("master", "agent", "task")


class InsideFaults:
    """``directory`` is one that every process of the cluster can read."""

    def __init__(self, directory: Path, *, clocks: bool = False) -> None:
        """``clocks``: they can jump. Skips the test where there is no C compiler, and fails in CI."""
        self._directory = directory
        directory.mkdir(mode=0o755)
        self.environment = {"TENAX_FAULTS": str(directory), "PYTHONPATH": str(_INSIDE)}
        if clocks:
            for role in ROLES:
                self.jump(role, 0)
            self.environment["LD_PRELOAD"] = str(_compiled(_INSIDE / "clock.c", directory))

    def jump(self, role: str, seconds: int) -> None:
        """From now on the clock of this role's process is off by so much."""
        # It is mapped by processes: the same file, written at once.
        clock = os.open(self._directory / f"clock-{role}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(clock, struct.pack("=q", seconds), 0)
        os.close(clock)

    def hang(self, loop: str, how: str) -> None:
        """The next pass of this loop hangs; waits until it does.

        ``how``: "waits" can be cancelled, "stubborn" cannot, "blocks" holds the whole event loop.
        """
        hung = self._directory / f"hung-{loop}"
        hung.unlink(missing_ok=True)
        (self._directory / "staged").write_text(how)
        (self._directory / "staged").rename(self._directory / f"hang-{loop}")
        wait_for(hung.exists, f"a pass of {loop}")


def _compiled(source: Path, directory: Path) -> Path:
    """A library of it in ``directory``."""
    compiler = shutil.which("cc")
    if compiler is None:
        assert not os.environ.get("CI"), "there is no C compiler: run tests/setup/system.py"
        pytest.skip("there is no C compiler: run tests/setup/system.py")
    library = directory / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return library
