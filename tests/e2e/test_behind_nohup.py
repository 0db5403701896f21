"""A cluster that is started behind ``nohup``, or in the background of a script, where signals are ignored."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.kits.machine import Machine, home


def ignored(pid: int) -> int:
    """The signals that a process ignores, a bit each."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("SigIgn")), 16)


def test_its_agent_goes_on_and_hands_nothing_of_it_on() -> None:
    """Else no trial starts where its imports are loaded already."""
    with home() as directory:
        one = Machine(directory / "cluster")
        one.command = ["sh", "-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh", *one.command]
        try:
            one.up()
            agent = one.pid("agent")
            assert ignored(agent) & sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGQUIT)) == 0
            os.kill(agent, signal.SIGHUP)
            one.tenax("command", "run", "--config", "resources.slots=0", "--", "true")
            assert one.pid("agent") == agent
        finally:
            one.down()
