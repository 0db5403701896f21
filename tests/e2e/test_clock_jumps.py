"""Nothing is lost when a clock jumps by an hour, forward or back, at a seeded random instant of a search.

Durations are counted on monotonic clocks, and decisions are made by the database's: what a process's own says of the
time of day is shown and nothing else.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.e2e.ordeal import ordeal, ordeals
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.inside_faults import ROLES, InsideFaults
from tests.kits.machine import wait_for

HOUR_S = 3600


@dataclass(frozen=True)
class Clocks:
    place: FaultyCluster
    faults: InsideFaults


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocks]:
    """A cluster of whose master, agent and tasks each has a clock of its own."""
    faults = InsideFaults(tmp_path_factory.mktemp("clocks") / "faults", clocks=True)
    with faulty_cluster(environment=faults.environment) as up:
        yield Clocks(up, faults)


def name_of(role: str, hours: int) -> str:
    return f"the clock of the {role} jumps by {hours:+d} h"


def jump(clocks: Clocks, role: str, hours: int, seconds: float) -> None:
    """There, and after a while back again: the second jump is one in the other direction."""
    clocks.faults.jump(role, hours * HOUR_S)
    if role == "master":
        wait_for(lambda: abs(_ahead_s(clocks.place) - hours * HOUR_S) < HOUR_S / 2, "the master's clock to jump")
    time.sleep(0.5 + seconds)
    clocks.faults.jump(role, 0)


def _ahead_s(place: FaultyCluster) -> float:
    """By how much the master's clock is ahead of ours, as its answers say."""
    with urllib.request.urlopen(f"{place.machine.url}/health", timeout=60) as reply:
        return float(parsedate_to_datetime(reply.headers["Date"]).timestamp() - time.time())


@pytest.mark.timeout(240)
def test_clocks_that_jump_lose_nothing(clocks: Clocks, tmp_path: Path, figures: Figures) -> None:
    """Each there and back, one after another, in one search."""
    with ordeals(clocks.place, tmp_path, figures, environment=clocks.faults.environment) as befalls:
        for role in ROLES:
            for hours in (1, -1):
                with befalls(name_of(role, hours), 0) as chance:
                    jump(clocks, role, hours, chance.uniform(0.0, 0.5))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize("role", ROLES)
def test_ten_clocks_that_jump_lose_nothing(
    clocks: Clocks, tmp_path: Path, figures: Figures, role: str, hours: int, seed: int
) -> None:
    """Each ten times, in a search of its own, and for longer."""
    environment = clocks.faults.environment
    with ordeal(clocks.place, tmp_path, figures, name_of(role, hours), seed, environment=environment) as chance:
        jump(clocks, role, hours, chance.uniform(0.0, 5.0))
