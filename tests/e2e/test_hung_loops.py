"""Nothing is lost when a loop of the master hangs, at a seeded random instant of a search: with one master and with
two.

A pass may wait for ever, be deaf to its cancellation, or hold the whole event loop. What a step may take is shortened
for the pass that hangs (`tests/kits/inside/sitecustomize.py`); all else is as it comes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tests.e2e.ordeal import SMALL, Work, ordeal
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.inside_faults import InsideFaults
from tests.kits.machine import wait_for
from tests.kits.master.process import MasterProcess

#: Those that a search cannot do without.
LOOPS = ("searching", "reconcile_experiments", "scheduling", "timeouts", "progress", "quota_use")
WAYS = ("waits", "stubborn", "blocks")
#: The agent knows no other master than the one that hangs.
PATIENT: JsonObject = {"pools": [{"name": "default", "agent_reconnect_wait": 120}]}


@dataclass(frozen=True)
class Masters:
    place: FaultyCluster
    faults: InsideFaults


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Masters]:
    """One master."""
    faults = InsideFaults(tmp_path_factory.mktemp("one") / "faults")
    with faulty_cluster(settings=PATIENT, environment=faults.environment) as up:
        yield Masters(up, faults)


@pytest.fixture
def two(one: Masters, tmp_path: Path) -> Iterator[Masters]:
    """Another beside it, as patient, which takes over what it can get."""
    settings = tmp_path / "second.json"
    settings.write_text(json.dumps(PATIENT))
    second = MasterProcess(tmp_path / "second", one.place.proxy.url, "--port", "0", "--config", str(settings))
    try:
        second.wait_for("serving")
        yield one
    finally:
        second.end()
        second.close()


def hang(masters: Masters, chance: random.Random, how: str) -> float:
    """One loop, until another process has its lease, or the same one anew; the seconds of that."""
    loop = chance.choice(LOOPS)
    epoch = "select epoch from leases where loop = $1 and expires_at > now()"
    masters.faults.hang(loop, how)
    began = time.monotonic()
    before = masters.place.value("select epoch from leases where loop = $1", loop)
    wait_for(lambda: masters.place.value(epoch, loop) not in (None, before), f"another lease of {loop}", 240)
    return time.monotonic() - began


def endure(masters: Masters, directory: Path, figures: Figures, how: str, count: str, seed: int, work: Work) -> None:
    name = f"a loop hangs ({how}, {count})"
    with ordeal(masters.place, directory, figures, name, seed, work=work) as chance:
        seconds = hang(masters, chance, how)
    figures.tell("a lease moved after a loop hung", fault=name, seed=seed, seconds=round(seconds, 2))
    masters.place.wait_until_well()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [way if way == "waits" else pytest.param(way, marks=pytest.mark.long) for way in WAYS])
def test_a_loop_that_hangs_loses_nothing(one: Masters, tmp_path: Path, figures: Figures, how: str) -> None:
    """Once in each way."""
    endure(one, tmp_path, figures, how, "one master", 0, SMALL)


@pytest.mark.timeout(300)
def test_a_loop_that_hangs_beside_another_master_loses_nothing(two: Masters, tmp_path: Path, figures: Figures) -> None:
    """The other one has its lease."""
    endure(two, tmp_path, figures, "waits", "two masters", 0, SMALL)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("how", WAYS)
def test_ten_loops_that_hang_lose_nothing(one: Masters, tmp_path: Path, figures: Figures, how: str, seed: int) -> None:
    """Ten times in each way, at other instants and other loops."""
    endure(one, tmp_path, figures, how, "one master", seed, Work())


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("how", WAYS)
def test_ten_loops_that_hang_beside_another_master_lose_nothing(
    two: Masters, tmp_path: Path, figures: Figures, how: str, seed: int
) -> None:
    """The same with two masters."""
    endure(two, tmp_path, figures, how, "two masters", seed, Work())
