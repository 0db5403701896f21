"""Nothing is lost when the database is away in whatever way, at a seeded random instant of a search.

`make test` lets them happen to one search; `make test-long` each ten times to searches of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.ordeal import SMALL, ordeal, ordeals
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures

#: Gets the seconds that it is to last.
Fault = Callable[[FaultyCluster, float], None]


@pytest.fixture(scope="module")
def place() -> Iterator[FaultyCluster]:
    """One for all faults: each has to leave it as it was."""
    with faulty_cluster() as up:
        yield up


def without_login(place: FaultyCluster, seconds: float) -> None:
    """Its role may not log in, and whoever was in is sent away."""
    place.lock_out()
    time.sleep(seconds)
    place.let_in()


def stalls(place: FaultyCluster, seconds: float) -> None:
    """What is sent is acknowledged, and goes nowhere; connections of then never come back."""
    place.proxy.stall()
    time.sleep(seconds)
    place.proxy.restore()


def goes_dark(place: FaultyCluster, seconds: float) -> None:
    """What is sent is not even acknowledged."""
    place.proxy.go_dark()
    time.sleep(seconds)
    place.proxy.restore()


def is_reset(place: FaultyCluster, seconds: float) -> None:
    """All connections are reset, and new ones as well."""
    place.proxy.reset()
    time.sleep(seconds)
    place.proxy.restore()


#: name: (what is done, the least and the most seconds that it lasts)
FAULTS: dict[str, tuple[Fault, float, float]] = {
    "a role without login": (without_login, 2.0, 2.0),
    "a black hole": (goes_dark, 2.0, 40.0),
    "connections that are reset": (is_reset, 0.5, 20.0),
    # Last: what it leaves behind is not mended by another fault that ends connections.
    "connections that stall": (stalls, 2.0, 40.0),
}


@pytest.mark.timeout(240)
def test_faults_of_the_database_lose_nothing(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """Each for as short as it may be, one after another, in one search."""
    with ordeals(place, tmp_path, figures) as befalls:
        for fault, (strike, least, _) in FAULTS.items():
            with befalls(fault, 0):
                strike(place, least)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("fault", FAULTS)
def test_ten_faults_of_the_database_lose_nothing(
    place: FaultyCluster, tmp_path: Path, figures: Figures, fault: str, seed: int
) -> None:
    """Each ten times, at other instants and for longer."""
    strike, least, most = FAULTS[fault]
    with ordeal(place, tmp_path, figures, fault, seed) as chance:
        strike(place, chance.uniform(least, most))


@pytest.mark.long
@pytest.mark.timeout(240)
def test_an_older_copy_loses_nothing_without_a_word(place: FaultyCluster, tmp_path: Path, figures: Figures) -> None:
    """A copy of a moment ago is put in the database's place."""
    with ordeal(place, tmp_path, figures, "an older copy", 0, work=SMALL, restored=True):
        put_back(place, 0.5)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_older_copies_lose_nothing_without_a_word(
    place: FaultyCluster, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """At ten instants; meanwhile trials have ended and others begun."""
    with ordeal(place, tmp_path, figures, "an older copy", seed, restored=True) as chance:
        put_back(place, chance.uniform(0.5, 8.0))


def put_back(place: FaultyCluster, seconds: float) -> None:
    """Take a copy; so many seconds later lose the database, and go on with that copy, which says it is an hour old."""
    copy = place.copy()
    time.sleep(seconds)
    place.proxy.drop()
    place.restore(copy)
    place.age(1)
    place.proxy.restore()
