"""Where the tests keep what they make: in memory where there is room, else where the system keeps temporary files.

Most of what a test of a cluster waits for on a disk is the making of hundreds of small files (a database, a container's
directory) that it then removes. ``TMPDIR`` set by whoever runs the tests wins. A run that was killed leaves its
databases behind; the next one removes them.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: Of the file system, and of the machine's memory: a run of everything takes a fraction of it.
_ROOM = 4 * 1024**3
#: Names begin with it; a directory whose ``lock`` nobody holds for so long is nobody's.
PREFIX = "tenax-tests-"
_ABANDONED_S = 3600.0


def keep_in_memory() -> None:
    """From now on temporary files of this process and of all that it starts are there."""
    if "TMPDIR" not in os.environ and has_room(_MEMORY):
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None


def has_room(directory: Path) -> bool:
    """Whether programs can be kept and started there, and neither it nor the memory behind it is scarce."""
    try:
        found = os.statvfs(directory)
        memory = re.search(r"^MemAvailable:\s*(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return False
    usable = os.access(directory, os.W_OK | os.X_OK) and not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
    return usable and found.f_bavail * found.f_frsize >= _ROOM and memory is not None and int(memory[1]) * 1024 >= _ROOM


def remove_abandoned() -> None:
    """Remove databases of runs that were killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if time.time() - directory.stat().st_mtime < _ABANDONED_S:
                continue
            with (directory / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue
