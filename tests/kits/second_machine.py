"""A second machine of a cluster: an agent of its own with all processes of its tasks, started and lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.kits.cable import Cable
from tests.kits.machine import Machine, processes, wait_for


@dataclass
class SecondMachine:
    """An agent of the same cluster in a directory of its own."""

    place: Machine
    directory: Path
    slots: int = 1
    #: How it reaches the other machine; None: it is the same.
    line: Cable | None = None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        url = self.place.url if self.line is None else f"http://{self.line.here}:{self.place.port}"
        flags = ["--master-url", url, "--agent-id", "second", "--dir", str(self.directory)]
        flags += ["--slots", str(self.slots), "--slot-type", "cpu", "--runtime", "process"]
        flags += ["--labels", "side=second,nvme"]
        flags += ["--join-token-file", str(self.place.directory / "join-token")]
        with (self.directory.parent / "second.log").open("ab") as log:
            begin = [] if self.line is None else self.line.inside
            command = [*begin, sys.executable, "-m", "tenax.agent", *flags]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.place.environment)

    def joined(self) -> None:
        """Wait until the master has the slots of both: an agent is listed before it has said what it offers."""
        with self.place.client() as client:
            wait_for(lambda: [bool(agent.slots) for agent in client.agents()] == [True, True] or None, "both machines")

    def task_processes(self) -> list[int]:
        """Every process of a task of this machine; the agent's own forks are among its children."""
        own = str(self.directory).encode()
        return [pid for pid, environment in processes() if own in environment]

    def containers(self) -> list[str]:
        """Directories of containers that are left."""
        directory = self.directory / "containers"
        return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []

    def lose(self) -> None:
        """Everything of it at once, without a word: stopped first, so that none of them sees another one go."""
        assert self.process is not None
        found = self._processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait()

    def _family(self) -> set[int]:
        assert self.process is not None
        family = psutil.Process(self.process.pid)
        return {family.pid, *(child.pid for child in family.children(recursive=True))}

    def _processes(self) -> list[int]:
        """The agent, its children, and whatever names its directory: the tasks' have sessions of their own."""
        pids = self._family()
        for process in psutil.process_iter(["environ", "cwd"]):
            named = [*(process.info["environ"] or {}).values(), process.info["cwd"] or ""]
            if any(text.startswith(str(self.directory)) for text in named):
                pids.add(process.pid)
        return sorted(pids)


@contextlib.contextmanager
def second_machine(place: Machine, slots: int, line: Cable | None = None) -> Iterator[SecondMachine]:
    """Beside ``place``, lost in the end; behind ``line``, where there is one: then ``place`` has to listen there."""
    made = SecondMachine(place, place.directory.parent / "second", slots, line)
    made.start()
    try:
        made.joined()
        yield made
    finally:
        made.lose()
