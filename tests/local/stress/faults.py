"""What happens to a cluster, at an instant, by kind: each is done to a `Place` and then taken back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import psutil

from tests.local.stress.place import Place

Fault = Callable[[Place, Random, "subprocess.Popen[str]"], AbstractContextManager[None]]


@contextlib.contextmanager
def kill_all(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """Each process of ours with probability one half, the one that runs ``tenax up`` among them."""
    for process in place.ours():
        if process.pid != up.pid and rng.random() < 0.5:
            with contextlib.suppress(psutil.Error):
                process.kill()
    yield


@contextlib.contextmanager
def interrupt(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """Ctrl-C in ``tenax up``, or SIGTERM."""
    number = rng.choice([signal.SIGINT, signal.SIGTERM])
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(up.pid).children():
            process.send_signal(number)
    yield


@contextlib.contextmanager
def suspend(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """The supervising process, or a server, does not go on."""
    candidates = [process for process in place.ours() if process.pid != up.pid and "up" not in process.cmdline()]
    if candidates:
        with contextlib.suppress(psutil.Error):
            rng.choice(candidates).suspend()
    yield


@contextlib.contextmanager
def race(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """Two ``tenax down`` and another ``tenax up`` at once."""
    commands = [("down",), ("down",), ("up", "--no-agent")]
    rng.shuffle(commands)
    processes = [(place.start(*arguments), arguments) for arguments in commands]
    for process, arguments in processes:
        place.finish(process, *arguments)
    yield


@contextlib.contextmanager
def remove(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """The whole directory, or its lock, or its database."""
    what = rng.choice([place.directory, place.directory, place.directory / "lock", place.directory / "postgres"])
    with contextlib.suppress(OSError):
        what.unlink() if what.is_file() else shutil.rmtree(what)
    yield


@contextlib.contextmanager
def move(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """Away, and back again before the end, or something else in its place."""
    away = place.directory.with_name("elsewhere")
    with contextlib.suppress(FileNotFoundError):
        place.directory.rename(away)
    yield
    if away.exists():
        place.run("down", "--dir", str(away))
    if away.exists() and not place.directory.exists():
        away.rename(place.directory)


@contextlib.contextmanager
def read_only(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """The directory, and what is in it but the database's own."""
    directories = [place.directory] if place.directory.exists() else []
    for directory in directories:
        directory.chmod(0o555)
    yield
    for directory in directories:
        if directory.exists():
            directory.chmod(0o700)


@contextlib.contextmanager
def fill(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """The disk, to the last byte; only where it is the test's own."""
    ballast = place.root / "disk" / "ballast"
    if os.geteuid() == 0:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(64 * 1024))
    yield
    ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def take_port(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """While the cluster is down, or at once when its master dies."""
    for process in place.ours():
        with contextlib.suppress(psutil.Error):
            if "tenax.master" in process.cmdline():
                process.kill()
    if rng.random() < 0.5:
        place.run("down")
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", place.port))
            taken.listen()
        yield


@contextlib.contextmanager
def lie(place: Place, rng: Random, up: subprocess.Popen[str]) -> Iterator[None]:
    """The record names processes that are not ours: a stranger with a name like ours, 0, -1, 1, this test."""
    stranger = place.stand_by(place.root, "-m", rng.choice(["tenax.master", "tenax.agent", "tenax.local"]))
    start = int(Path(f"/proc/{stranger}/stat").read_text().rpartition(")")[2].split()[19])
    pid = rng.choice([stranger, 0, -1, 1, os.getpid()])
    wrong = {"pid": pid, "start": rng.choice([0, start - 1, start + 1]), "state": "up", "restarts": 0}
    services = {"master": wrong, "agent": {**wrong, "pid": stranger}, "postgres": wrong}
    record = {**place.record(), **wrong, "state": rng.choice(["up", "starting", "stopping"]), "services": services}
    if place.directory.exists():
        with contextlib.suppress(OSError):
            (place.directory / "supervisor.json").write_text(json.dumps(record))
    if rng.random() < 0.5:
        with kill_all(place, rng, up):
            pass
    yield


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (kill_all, interrupt, suspend, race, remove, move, read_only, fill, take_port, lie)
}
