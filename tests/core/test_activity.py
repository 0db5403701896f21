"""What a process does, as the system says it: for whoever judges whether it hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tenax.core.hangs import processes
from tests.kits.machine import wait_for


def test_who_waits_for_a_core_is_at_work() -> None:
    """On a machine with too much to do a step takes its time: that it wants to compute counts as well."""
    spinning = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(flush=True)\nwhile True: pass"
    crowd = [subprocess.Popen([sys.executable, "-c", spinning], stdout=subprocess.PIPE) for _ in range(10)]
    try:
        for one in crowd:
            assert one.stdout is not None
            one.stdout.readline()
        pid = crowd[0].pid
        began, before, own = time.monotonic(), processes.activity([pid]), own_seconds(pid)
        wait_for(lambda: own_seconds(pid) - own > 0.05 or None, "its part of the core")
        passed, done = time.monotonic() - began, processes.activity([pid]).since(before)
        assert done.cpu_s > max(0.5 * passed, 3 * (own_seconds(pid) - own))
    finally:
        for one in crowd:
            one.kill()
            one.communicate()


def own_seconds(pid: int) -> float:
    """What a process was given of a core."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
