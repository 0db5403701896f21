"""A whole cluster as its user starts it, and what a test needs to look at it, break it, and count what is left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from tenax.client.connect import Client
from tenax.client.connection.session import Session
from tenax.client.experiments import Experiment
from tenax.errors import TenaxError
from tenax.jsonvalue import Json
from tenax.local.state_dir import StateDir
from tests.kits.cli.command_line import run_here
from tests.kits.ports import free_port
from tests.kits.prepared import put_database

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
TENAX = Path(sys.executable).parent / "tenax"
#: Services of a local cluster, by the names in ``supervisor.json``.
SERVERS = ("postgres", "master", "agent")
#: Between two looks, at first and in the end.
_PAUSES_S = (0.02, 0.2)


class Machine:
    """A cluster in a directory of its own, on a free port."""

    def __init__(
        self,
        directory: Path,
        *,
        slots: int = 2,
        runtime: str = "process",
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.port = free_port()
        #: The command line; with ``environment`` it finds this cluster.
        self.command = [str(TENAX)]
        self._token = ""
        self._options = ("--slots", str(slots), "--runtime", runtime, *options)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))},
            "TENAX_DIR": str(directory),
            "XDG_CONFIG_HOME": str(directory.parent / "config"),
            **(environment or {}),
        }

    def tenax(self, *arguments: str, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run the command line against this cluster."""
        return subprocess.run(
            [*self.command, *arguments],
            env=self.environment,
            cwd=self.directory.parent,
            capture_output=True,
            text=True,
            check=check,
            timeout=timeout,
        )

    def json(self, *arguments: str) -> Json:
        """What a reading command prints with ``--json``; it is asked often, and not in a process of its own."""
        done = run_here(self.environment, *arguments, "--json")
        assert done.code == 0, done.out + done.err
        found: Json = json.loads(done.out)
        return found

    def up(self) -> None:
        """``tenax up``, as often as needed after a fault."""
        command = ("up", "--dir", str(self.directory), "--port", str(self.port), *self._options)
        # A minute of it was seen on two processors with a load of forty.
        done = self.tenax(*command, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()

    def down(self) -> None:
        """``tenax down``, with the tasks; not in a process of its own, since it ends whatever a test has made."""
        run_here(self.environment, "down", "--dir", str(self.directory), "--kill-tasks")

    @property
    def url(self) -> str:
        """Where its master listens."""
        return f"http://127.0.0.1:{self.port}"

    def token(self) -> str:
        """Of the first administrator."""
        if not self._token:
            # Once: a password is slow to check, on purpose.
            told = json.loads((self.directory / "credentials.json").read_text())
            with Session(self.url) as session:
                self._token = session.log_in(told["username"], told["password"], remember=False)
        return self._token

    def client(self) -> Client:
        """Logged in as the first administrator."""
        return Client(self.url, token=self.token())

    def answers(self) -> bool:
        """Whether the master serves."""
        with contextlib.suppress(Exception), self.client() as client:
            client.whoami()
            return True
        return False

    def pid(self, server: str) -> int | None:
        """Process id of ``supervisor``, ``postgres``, ``master`` or ``agent``; None while it is not up."""
        document = json.loads((self.directory / "supervisor.json").read_text())
        if server == "supervisor":
            return int(document["pid"])
        pid = document["services"].get(server, {}).get("pid")
        return int(pid) if pid else None

    def kill(self, server: str) -> None:
        """``kill -9``; waits until there is one to kill."""
        pid = wait_for(lambda: self.pid(server), f"a running {server}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def task_processes(self, experiment_id: int | None = None) -> list[int]:
        """Every process of a task of this cluster, or of the trials of one experiment."""
        own = [(pid, environment) for pid, environment in processes() if str(self.directory).encode() in environment]
        if experiment_id is None:
            return [pid for pid, _ in own]
        return [pid for pid, environment in own if b"DET_EXPERIMENT_ID=%d\0" % experiment_id in environment]

    def containers(self) -> list[str]:
        """Directories of containers that are left."""
        directory = self.directory / "agent" / "containers"
        return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []

    def logs(self) -> str:
        """The end of every server's log, for a failure's message."""
        texts = [f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self.directory.glob("*.log")]
        return "\n".join(texts)


@contextlib.contextmanager
def machine(
    *,
    slots: int = 2,
    runtime: str = "process",
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    own_database: bool = True,
) -> Iterator[Machine]:
    """A cluster that is up, and is taken down in the end, whatever happened to it. Its database is a copy of a prepared
    one, or is elsewhere, as ``options`` say: then it has none of its own."""
    with home() as directory:
        place = Machine(directory / "cluster", slots=slots, runtime=runtime, options=options, environment=environment)
        try:
            if own_database:
                state = StateDir(place.directory)
                state.prepare()
                put_database(state.postgres)
            place.up()
            yield place
        finally:
            place.down()
            for pid in place.task_processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """A directory that is removed in the end. As root the database runs as an account that pytest's own refuse."""
    directory = Path(tempfile.mkdtemp(prefix="tenax-e2e-"))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def processes() -> Iterator[tuple[int, bytes]]:
    """Every process of this machine that carries a container's identity, with its environment."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes()
                if b"DET_CONTAINER_ID=" in environment:
                    yield int(entry.name), environment


def container_of(pid: int) -> str:
    """The name of the container that a process belongs to; empty for none, or one that has ended."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(b"DET_CONTAINER_ID="):
                return entry.partition(b"=")[2].decode()
    return ""


def wait_for(look: Callable[[], T | None], what: str, seconds: float = 120.0) -> T:
    """The first thing that ``look`` finds. Raises AssertionError when there is none after ``seconds``.

    The longer it waits, the less often it looks: most looks are work for a master and its database.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds:
        found = look()
        if found:
            return found
        time.sleep(min(max(waited / 20, _PAUSES_S[0]), _PAUSES_S[1]))
    raise AssertionError(f"waited {seconds:g} s in vain for {what}")


def outlast(place: Machine, number: int, seconds: float = 240.0) -> Experiment:
    """The experiment once it has ended, however often the master was away meanwhile."""
    with place.client() as client:

        def look() -> Experiment | None:
            with contextlib.suppress(TenaxError):
                experiment = client.experiment(number)
                return experiment if experiment.has_ended else None
            return None

        try:
            return wait_for(look, f"the end of experiment {number}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{_last_lines(client, number)}\n{place.logs()}") from None


def _last_lines(client: Client, number: int) -> str:
    """Of each trial, for a failure's message: its state, and the end of its output."""
    texts = []
    with contextlib.suppress(TenaxError):
        for trial in client.experiment(number).trials():
            lines = [line.log for line in trial.logs()][-15:]
            texts.append("\n".join([f"--- trial {trial.id}: {trial.state}", *lines]))
    return "\n".join(texts)


def pick(seed: int, low: float, high: float) -> float:
    """A seeded instant."""
    return random.Random(seed).uniform(low, high)
