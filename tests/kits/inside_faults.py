"""Faults of one process that only it can have itself: its clock jumps, a loop of it hangs.

    faults = InsideFaults(directory)
    with faulty_cluster(environment=faults.environment) as place:
        faults.jump("master", 3600)

Each Python program of the cluster loads ``tests/kits/inside/sitecustomize.py``. Clocks are those of libfaketime, which
has to be there (`tests/setup/system.py` installs it); it leaves the monotonic clock alone, as a real jump does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kits.machine import wait_for

_INSIDE = Path(__file__).parent / "inside"
ROLES = ("master", "agent", "task")
#: For so long a process goes by what it read before of its file.
CACHE_S = 1


def libfaketime() -> Path | None:
    """Where the library is; None where it is not installed."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


class InsideFaults:
    """``directory`` is one that every process of the cluster can read."""

    def __init__(self, directory: Path, *, clocks: bool = False) -> None:
        """``clocks``: they can jump. Skips the test where libfaketime is not there, and fails in CI."""
        self._directory = directory
        directory.mkdir(mode=0o755)
        self.environment = {"TENAX_FAULTS": str(directory), "PYTHONPATH": str(_INSIDE)}
        if clocks:
            library = libfaketime()
            if library is None:
                assert not os.environ.get("CI"), "libfaketime is not installed: run tests/setup/system.py"
                pytest.skip("libfaketime is not installed: run tests/setup/system.py")
            for role in ROLES:
                self.jump(role, 0)
            self.environment |= {
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(directory / "clock-nobody"),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": str(CACHE_S),
                "NO_FAKE_STAT": "1",
            }

    def jump(self, role: str, seconds: int) -> None:
        """From now on the clock of this role's process is off by so much."""
        staged = self._directory / "staged"
        staged.write_text(f"{seconds:+d}")
        staged.rename(self._directory / f"clock-{role}")

    def hang(self, loop: str, how: str) -> None:
        """The next pass of this loop hangs; waits until it does.

        ``how``: "waits" can be cancelled, "stubborn" cannot, "blocks" holds the whole event loop.
        """
        hung = self._directory / f"hung-{loop}"
        hung.unlink(missing_ok=True)
        (self._directory / "staged").write_text(how)
        (self._directory / "staged").rename(self._directory / f"hang-{loop}")
        wait_for(hung.exists, f"a pass of {loop}")
