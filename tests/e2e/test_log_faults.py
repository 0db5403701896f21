"""Nothing is lost without a word when there is no room for output, or output is dropped, at a seeded random
instant of a search.

`make test` lets each fault happen once, to a small search; `make test-long` ten times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tests.e2e.ordeal import SMALL, Work, ordeal
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.machine import outlast, wait_for

MIB = 2**20
#: Little room for output, and old months are looked for all the time.
SETTINGS = {"budgets": {"log_bytes": 6 * MIB}, "log_retention_schedule": "1s"}
#: So chatty that some segments are full before long.
CHATTY = Work(lines=400)
_PARENTS = ("log_chunks", "metric_tail", "metric_blocks", "metric_chunks")

#: Gets a seeded generator, and the seconds that the fault is to last.
Fault = Callable[[FaultyCluster, random.Random, float], None]


@pytest.fixture(scope="module")
def place() -> Iterator[FaultyCluster]:
    """One for all faults: each has to leave it as it was."""
    with faulty_cluster(slots=4, settings=SETTINGS) as up:
        yield up


@pytest.fixture(scope="module")
def roomy() -> Iterator[FaultyCluster]:
    """One without limits, for tasks that print more than they leave room for."""
    with faulty_cluster() as up:
        yield up


def fill_up(place: FaultyCluster, chance: random.Random, seconds: float) -> None:
    """Another experiment prints as much as there is room for; it is deleted after a while."""
    document: JsonObject = {
        "name": "a flood",
        "entrypoint": "head -c 9000000 /dev/urandom | base64",
        "searcher": {"name": "single", "metric": "loss"},
        "max_restarts": 0,
    }
    with place.machine.client() as client:
        flood = client.create_experiment(document).id
    outlast(place.machine, flood)
    wait_for(lambda: _waits(place), "output that waits")
    time.sleep(seconds)
    with place.machine.client() as client:
        client.experiment(flood).delete()
    gone = "select not exists (select 1 from experiments where id = $1)"
    wait_for(lambda: place.value(gone, flood), "the deletion of the flood")


def _waits(place: FaultyCluster) -> bool:
    return "output waits: there is no room for it" in (place.machine.directory / "agent.log").read_text()


def drop_segments(place: FaultyCluster, chance: random.Random, seconds: float) -> None:
    """The master is away, and segments of output that it does not have are lost; now and then even the newest one."""
    pid = wait_for(lambda: place.machine.pid("master"), "the master")
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
        for folder in sorted(place.machine.directory.glob("agent/containers/*/out")):
            with contextlib.suppress(FileNotFoundError):
                names = sorted(folder.glob("stdout-*"))
                keep = chance.choice([0, 1])
                for path in names[: len(names) - keep]:
                    path.unlink()
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: place.machine.pid("master") not in (None, pid) or None, "the master's return")
    place.wait_until_well()


def drop_months(place: FaultyCluster, chance: random.Random, seconds: float) -> None:
    """Old months come and go beside the one that tasks write to."""
    made = "select count(*) from (select tenax_add_month(parent, $1) from unnest($2::text[]) parent) made"
    # As the master makes them: they belong to its role.
    masters = replace(place, url=place.proxy.url)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        masters.value(made, 200001 + chance.randrange(12), _PARENTS)
        time.sleep(chance.uniform(0.0, 0.5))
    left = "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid where c.relname like '%\\_2000__'"
    wait_for(lambda: place.value(left) == 0, "the months to be dropped")


@pytest.mark.timeout(180)
def test_a_full_budget_loses_nothing(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """Output waits where it was made, until somebody deletes what took the room."""
    with ordeal(place, tmp_path, figures, "log budget full", 0, work=SMALL) as chance:
        fill_up(place, chance, 0.5)


@pytest.mark.timeout(180)
def test_dropped_segments_are_counted(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """What is lost with them is said in the log of its trial."""
    with ordeal(place, tmp_path, figures, "segments dropped", 0, work=SMALL) as chance:
        drop_segments(place, chance, 0.5)


@pytest.mark.timeout(180)
def test_dropped_months_lose_nothing(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """Who writes meanwhile waits at most."""
    with ordeal(place, tmp_path, figures, "months dropped", 0, work=SMALL) as chance:
        drop_months(place, chance, 1.0)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_full_budgets_lose_nothing(place: FaultyCluster, tmp_path: Path, figures: Figures, seed: int) -> None:
    """At other instants and for longer."""
    with ordeal(place, tmp_path, figures, "log budget full", seed) as chance:
        fill_up(place, chance, chance.uniform(1.0, 20.0))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_times_dropped_segments_are_counted(
    roomy: FaultyCluster, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """At other instants, of tasks that print much."""
    with ordeal(roomy, tmp_path, figures, "segments dropped", seed, work=CHATTY) as chance:
        drop_segments(roomy, chance, chance.uniform(2.0, 15.0))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_times_dropped_months_lose_nothing(
    place: FaultyCluster, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """At other instants and for longer."""
    with ordeal(place, tmp_path, figures, "months dropped", seed) as chance:
        drop_months(place, chance, chance.uniform(2.0, 10.0))
