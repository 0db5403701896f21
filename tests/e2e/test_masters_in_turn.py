"""Two masters of one cluster, whose agent, tasks and client know both: killed in turn, nothing is lost and nobody waits
for the one that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
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

pytestmark = pytest.mark.timeout(900)


@dataclass
class Masters:
    """Both, by their ports; each is started again where it was."""

    directory: Path
    database_url: str
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    processes: dict[int, MasterProcess] = field(default_factory=dict)

    @property
    def urls(self) -> str:
        return ",".join(f"http://127.0.0.1:{port}" for port in self.ports)

    def start(self, port: int) -> None:
        storage = f"{{type: shared_fs, host_path: {self.directory / 'checkpoints'}}}"
        self.processes[port] = MasterProcess(
            self.directory, self.database_url, "--port", str(port), CHECKPOINT_STORAGE=storage
        )
        self.processes[port].wait_for("serving")

    def signal(self, port: int, number: int) -> None:
        self.processes[port].popen.send_signal(number)

    def kill(self, port: int) -> None:
        self.signal(port, signal.SIGKILL)
        self.processes[port].result()
        self.processes[port].close()

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
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    agent: subprocess.Popen[bytes] | None = None
    try:
        os.environ["TENAX_MASTER_SECURITY__INITIAL_PASSWORD_FILE"] = str(tmp_path / "password")
        for port in made.ports:
            made.start(port)
        flags = ["--master-url", made.urls, "--agent-id", "box", "--dir", str(tmp_path / "agent"), "--slots", "2"]
        flags += ["--slot-type", "cpu", "--runtime", "process"]
        flags += ["--join-token-file", str(tmp_path / "master" / "join-token")]
        with (tmp_path / "agent.log").open("wb") as log:
            agent = subprocess.Popen(
                [sys.executable, "-m", "tenax.agent", *flags], stdout=log, stderr=log, env=environment
            )
        with made.client() as client:
            wait_for(lambda: [len(each.slots) for each in client.agents()] == [2] or None, "the agent")
        yield made
    finally:
        os.environ.pop("TENAX_MASTER_SECURITY__INITIAL_PASSWORD_FILE", None)
        if agent is not None:
            agent.terminate()
            agent.wait(30)
        made.close()


def searched(client: Client, books: Path, *, trials: int, reports: int) -> Experiment:
    """A search that goes on for a while on two slots."""
    books.mkdir()
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
    return client.create_experiment(document, ROOT / "examples" / "noop")


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


@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.long)])
def test_masters_are_killed_in_turn(masters: Masters, tmp_path: Path, kills: int) -> None:
    """Each is killed while the other is up, and started again; the search ends as if nothing had been."""
    trials, reports = 3 * kills, 20
    with masters.client() as client:
        number = searched(client, tmp_path / "books", trials=trials, reports=reports).id
        for turn in range(kills):
            # On a busy machine a master takes as long to start as the search to its end: then all of it is there.
            goal = min(noop.reports(tmp_path / "books") + 8, trials * reports)
            wait_for(lambda goal=goal: noop.reports(tmp_path / "books") >= goal or None, "some reports")
            port = masters.ports[turn % 2]
            masters.kill(port)
            # The other one answers at once, whoever is asked first.
            assert client.experiment(number).id == number
            masters.start(port)
    check(masters, number, tmp_path / "books", trials=trials, reports=reports)
    told = (tmp_path / "agent.log").read_text()
    assert "asking another master" in told


def test_a_master_that_stays_away_is_not_waited_for(masters: Masters, tmp_path: Path) -> None:
    """The one that the agent asked is killed for good: trials end, new ones start, and report to the other."""
    with masters.client() as client:
        number = searched(client, tmp_path / "books", trials=6, reports=10).id
        wait_for(lambda: noop.reports(tmp_path / "books") >= 4 or None, "some reports")
        masters.kill(masters.ports[0])
        check(masters, number, tmp_path / "books", trials=6, reports=10)
        masters.start(masters.ports[0])
        second = searched(client, tmp_path / "more", trials=2, reports=10).id
        wait_for(lambda: noop.reports(tmp_path / "more") >= 4 or None, "some reports")
        masters.kill(masters.ports[1])
        check(masters, second, tmp_path / "more", trials=2, reports=10)


def test_a_master_that_hangs_is_left(masters: Masters, tmp_path: Path) -> None:
    """It takes connections and answers none: agent and tasks go to the other, within the time that agents are given."""
    with masters.client() as client:
        number = searched(client, tmp_path / "books", trials=6, reports=40).id
        wait_for(lambda: noop.reports(tmp_path / "books") >= 4 or None, "some reports")
    stopped, other = masters.ports
    masters.signal(stopped, signal.SIGSTOP)
    try:
        with masters.client(f"http://127.0.0.1:{other}") as client:
            ended = wait_for(lambda: ((e := client.experiment(number)).has_ended and e) or None, "its end", 300)
            assert ended.state == "COMPLETED", ended.reason
            assert [trial.restarts for trial in ended.trials()] == [0] * 6
    finally:
        masters.signal(stopped, signal.SIGCONT)
    check(masters, number, tmp_path / "books", trials=6, reports=40)
