"""Two masters on one database, an agent that knows both, and a search that goes on for a while."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tenax.client.connect import Client
from tenax.client.experiments import Experiment
from tests.e2e import noop
from tests.e2e.trials import config
from tests.kits.machine import ROOT, wait_for
from tests.kits.master.process import MasterProcess
from tests.kits.ports import free_port

NOOP = ROOT / "examples" / "noop"


@dataclass
class Masters:
    """Both, by their ports; each is started again where it was."""

    directory: Path
    database_url: str
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    processes: dict[int, MasterProcess] = field(default_factory=dict)
    agent: subprocess.Popen[bytes] | None = None
    #: A directory with another release, which is started from now on; None: this one.
    release: Path | None = None

    @property
    def agent_log(self) -> Path:
        return self.directory / "agent.log"

    @property
    def urls(self) -> str:
        return ",".join(f"http://127.0.0.1:{port}" for port in self.ports)

    def start(self, port: int) -> None:
        storage = f"{{type: shared_fs, host_path: {self.directory / 'checkpoints'}}}"
        with self._released():
            self.processes[port] = MasterProcess(
                self.directory, self.database_url, "--port", str(port), CHECKPOINT_STORAGE=storage
            )
        self.processes[port].wait_for("serving")

    def start_agent(self) -> None:
        """With two slots."""
        flags = ["--master-url", self.urls, "--agent-id", "box", "--dir", str(self.directory / "agent"), "--slots", "2"]
        flags += ["--slot-type", "cpu", "--runtime", "process"]
        flags += ["--join-token-file", str(self.directory / "master" / "join-token")]
        with self.agent_log.open("ab") as log, self._released():
            environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "tenax.agent", *flags], stdout=log, stderr=log, env=environment
            )

    @contextmanager
    def _released(self) -> Iterator[None]:
        """What is started inside is of the release."""
        before = os.environ.get("PYTHONPATH")
        if self.release is not None:
            os.environ["PYTHONPATH"] = str(self.release)
        try:
            yield
        finally:
            os.environ.pop("PYTHONPATH", None)
            if before is not None:
                os.environ["PYTHONPATH"] = before

    def signal(self, port: int, number: int) -> None:
        self.processes[port].popen.send_signal(number)

    def kill(self, port: int) -> None:
        self.signal(port, signal.SIGKILL)
        self.processes[port].result()
        self.processes[port].close()

    def end(self, port: int) -> None:
        """As a service manager ends it."""
        assert self.processes[port].end() == 0
        self.processes[port].close()

    def end_agent(self) -> None:
        """Tasks run on."""
        if self.agent is not None:
            self.agent.terminate()
            self.agent.wait(120)

    def client(self, urls: str = "") -> Client:
        password = (self.directory / "password").read_text()
        return Client(urls or self.urls, user="admin", password=password)

    def close(self) -> None:
        for process in self.processes.values():
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()
            process.close()


@pytest.fixture
def masters(database_url: str, tmp_path: Path) -> Iterator[Masters]:
    """Both serve, and one agent with two slots is connected to one of them."""
    (tmp_path / "password").write_text("Long-enough-1")
    (tmp_path / "checkpoints").mkdir()
    made = Masters(tmp_path, database_url)
    try:
        os.environ["TENAX_MASTER_SECURITY__INITIAL_PASSWORD_FILE"] = str(tmp_path / "password")
        for port in made.ports:
            made.start(port)
        made.start_agent()
        with made.client() as client:
            wait_for(lambda: [len(each.slots) for each in client.agents()] == [2] or None, "the agent")
        yield made
    finally:
        os.environ.pop("TENAX_MASTER_SECURITY__INITIAL_PASSWORD_FILE", None)
        made.end_agent()
        made.close()


def searched(client: Client, books: Path, *, trials: int, reports: int, code: Path = NOOP) -> Experiment:
    """A search that goes on for a while on two slots."""
    books.mkdir(exist_ok=True)
    document = config(
        name="in turn",
        hyperparameters={
            "reports": reports,
            "seconds": 0.1,
            "checkpoint_every": 10,
            "log_dir": str(books),
            "quality": {"type": "double", "minval": 0.0, "maxval": 1.0},
        },
        searcher={"name": "random", "metric": "loss", "max_trials": trials, "max_concurrent_trials": 2},
        max_restarts=0,
    )
    return client.create_experiment(document, code)


def check(masters: Masters, number: int, books: Path, *, trials: int, reports: int) -> None:
    """All trials ended well in one run each, and each report is there once."""
    with masters.client() as client:
        ended = wait_for(lambda: ((e := client.experiment(number)).has_ended and e) or None, "its end", 300)
        assert ended.state == "COMPLETED", ended.reason
        found = ended.trials()
        assert len(found) == trials
        for trial in found:
            assert trial.restarts == 0
            book = [line["step"] for line in noop.read(books, trial.id) if line.get("group") == "validation"]
            stored = [point.steps for point in trial.metrics("validation")]
            assert stored == book
            assert len(stored) == len(set(stored))
