"""A machine is lost under a gang: all that it runs is gone at once, and the survivor fails before anybody can know why.

The machine is an agent of its own with all processes of its tasks, killed together: stopped first, so that none of them
sees another one go.
"""

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
import pytest
import yaml

from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, machine, outlast, wait_for
from tests.kits.ports import free_port

#: Both wait on a connection, as ranks do in a collective operation.
RANKS = """
    import pathlib
    import socket
    import sys
    import time

    import tenax

    info = tenax.get_cluster_info()
    hparams = info.trial.hparams
    place = pathlib.Path(hparams["place"])
    if (place / "again").exists():
        sys.exit(0)
    address = ("127.0.0.1", hparams["port"])
    if info.container_rank == 1:
        with socket.create_server(address) as server:
            connection, _ = server.accept()
    while info.container_rank == 0:
        try:
            connection = socket.create_connection(address)
            (place / "connected").touch()
            break
        except OSError:
            time.sleep(0.01)
    assert connection.recv(1) == b"go on", "NCCL error: remote process exited or there was a network error"
"""


@dataclass
class SecondMachine:
    """An agent of the same cluster in a directory of its own, with one slot."""

    place: Machine
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        flags = ["--master-url", self.place.url, "--agent-id", "second", "--dir", str(self.directory), "--slots", "1"]
        flags += ["--slot-type", "cpu", "--runtime", "process"]
        flags += ["--join-token-file", str(self.place.directory / "join-token")]
        with (self.directory.parent / "second.log").open("ab") as log:
            command = [sys.executable, "-m", "tenax.agent", *flags]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.place.environment)

    def lose(self) -> None:
        """Everything of it at once, without a word."""
        assert self.process is not None
        found = self._processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait()

    def _processes(self) -> list[int]:
        """The agent, its children, and whatever names its directory: the tasks' have sessions of their own."""
        assert self.process is not None
        family = psutil.Process(self.process.pid)
        pids = {family.pid, *(child.pid for child in family.children(recursive=True))}
        for process in psutil.process_iter(["environ", "cwd"]):
            named = [*(process.info["environ"] or {}).values(), process.info["cwd"] or ""]
            if any(text.startswith(str(self.directory)) for text in named):
                pids.add(process.pid)
        return sorted(pids)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Machine]:
    """One slot on its own machine; agents are given up soon."""
    settings = tmp_path / "master.yaml"
    settings.write_text(yaml.safe_dump({"pools": [{"name": "default", "agent_reconnect_wait": 5}]}))
    with machine(slots=1, options=("--config", str(settings))) as up:
        yield up


@pytest.fixture
def second(place: Machine) -> Iterator[SecondMachine]:
    made = SecondMachine(place, place.directory.parent / "second")
    made.start()
    yield made
    made.lose()


@pytest.mark.timeout(240)
def test_the_survivors_error_is_not_charged_to_the_user(place: Machine, second: SecondMachine, tmp_path: Path) -> None:
    """No restart is allowed, and the trial is tried again all the same: a machine was lost, and its log says so."""
    document = config(
        hyperparameters={"place": str(tmp_path), "port": free_port()},
        resources={"slots_per_trial": 2},
        max_restarts=0,
    )
    with place.client() as client:
        wait_for(lambda: len(client.agents()) == 2 or None, "both machines")
        number = client.create_experiment(document, script(tmp_path / "code", RANKS)).id
    wait_for((tmp_path / "connected").exists, "the gang")
    # Whichever rank is there: it is the other one that goes on, and fails.
    second.lose()
    with place.client() as client:
        [trial] = client.experiment(number).trials()
        wait_for(lambda: "no sign of life from agent second" in output(place, trial), "the verdict")
    (tmp_path / "again").touch()
    second.start()
    ended = outlast(place, number)
    with place.client() as client:
        [trial] = client.experiment(number).trials()
        told = output(place, trial)
    assert (ended.state, trial.state, trial.restarts) == ("COMPLETED", "COMPLETED", 0), (
        f"{trial}\n{told}\n{place.logs()}"
    )
    assert "NCCL error" in told, "it was no survivor that failed"
