"""Nothing is lost when a process of the cluster stands still for half a minute, at a seeded random instant of a search.

A stopped process holds what it has: connections, locks, leases. The others cannot tell it from one that is slow.
`make test` stops each for a moment, in one search; `make test-long` ten times, in searches of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.ordeal import ordeal, ordeals
from tests.kits.faulty_cluster import ROLE, FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.machine import wait_for

#: An agent is given up while it stands still, though its tasks are heard: four times that.
HASTY = {"pools": [{"name": "default", "agent_reconnect_wait": 5}]}
STOPPED_S = 30.0


@pytest.fixture(scope="module")
def place() -> Iterator[FaultyCluster]:
    """One for all: each fault has to leave it as it was. An agent is waited for 25 s, longer where its tasks live."""
    with faulty_cluster() as up:
        yield up


@pytest.fixture(scope="module")
def hasty() -> Iterator[FaultyCluster]:
    """Whose agents are not waited for as long as they stand still."""
    with faulty_cluster(settings=HASTY) as up:
        yield up


Find = Callable[[FaultyCluster, random.Random], int | None]


def server(name: str) -> Find:
    return lambda place, chance: place.machine.pid(name)


def postmaster(place: FaultyCluster, chance: random.Random) -> int | None:
    return place.postgres.pid


def backend(place: FaultyCluster, chance: random.Random) -> int | None:
    """Of one of the master's connections; it may be in the middle of a transaction."""
    found = place.rows("select pid from pg_stat_activity where usename = $1 order by pid", ROLE)
    return int(chance.choice(found)["pid"]) if found else None


def wrapper(place: FaultyCluster, chance: random.Random) -> int | None:
    """The program that watches over a task and keeps its output."""
    return _of_a_container(place, chance, "pid")


def task(place: FaultyCluster, chance: random.Random) -> int | None:
    return _of_a_container(place, chance, "main_pid")


def _of_a_container(place: FaultyCluster, chance: random.Random, field: str) -> int | None:
    pids = []
    for path in sorted(place.machine.directory.glob("agent/containers/*/state.json")):
        with contextlib.suppress(OSError, ValueError):
            pids.append(int(json.loads(path.read_text())[field]))
    return chance.choice(pids) if pids else None


PROCESSES: dict[str, Find] = {
    "master": server("master"),
    "agent": server("agent"),
    "supervisor": server("supervisor"),
    "a task's supervisor": wrapper,
    "task": task,
    "backend": backend,
    "postmaster": postmaster,
}


def stand_still(place: FaultyCluster, chance: random.Random, find: Find, seconds: float) -> None:
    pid = wait_for(lambda: find(place, chance), "a process to stop")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(240)
def test_processes_that_stand_still_lose_nothing(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """Each for a moment, one after another, in one search."""
    with ordeals(place, tmp_path, figures) as befalls:
        for process, find in PROCESSES.items():
            with befalls(f"{process} stopped", 0) as chance:
                stand_still(place, chance, find, 1.0)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("process", PROCESSES)
def test_ten_processes_that_stand_still_lose_nothing(
    place: FaultyCluster, tmp_path: Path, figures: Figures, process: str, seed: int
) -> None:
    """Each ten times, at other instants and for half a minute."""
    with ordeal(place, tmp_path, figures, f"{process} stopped", seed) as chance:
        stand_still(place, chance, PROCESSES[process], STOPPED_S)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_an_agent_that_was_given_up_loses_nothing(
    hasty: FaultyCluster, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """It stands still for longer than it is waited for: its tasks are tried again, which nobody is charged with."""
    name = "agent stopped, and given up"
    with ordeal(hasty, tmp_path, figures, name, seed, tried_again=True) as chance:
        stand_still(hasty, chance, PROCESSES["agent"], STOPPED_S)
