"""Nothing is lost when something is wrong inside a process, at a seeded random instant of a search: its clock jumps by
an hour, or a loop of the master hangs, with one master and with two.

Durations are counted on monotonic clocks, and decisions are made by the database's: what a process's own says of the
time of day is shown and nothing else.

A pass may wait for ever, be deaf to its cancellation, or hold the whole event loop. What a step may take is shortened
for the pass that hangs (`tests/kits/inside/sitecustomize.py`); all else is as it comes.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tests.e2e.ordeal import SMALL, Work, ordeal, ordeals
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.inside_faults import ROLES, InsideFaults
from tests.kits.machine import wait_for
from tests.kits.master.process import MasterProcess

#: Those that a search cannot do without.
LOOPS = ("searching", "reconcile_experiments", "scheduling", "timeouts", "progress", "quota_use")
WAYS = ("waits", "stubborn", "blocks")
#: The agent knows no other master than the one that hangs.
PATIENT: JsonObject = {"pools": [{"name": "default", "agent_reconnect_wait": 120}]}
HOUR_S = 3600


@dataclass(frozen=True)
class Masters:
    place: FaultyCluster
    faults: InsideFaults


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Masters]:
    """One master; it, the agent and the tasks each have a clock of their own."""
    faults = InsideFaults(tmp_path_factory.mktemp("one") / "faults", clocks=True)
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


def name_of(role: str, hours: int) -> str:
    return f"the clock of the {role} jumps by {hours:+d} h"


def jump(one: Masters, role: str, hours: int, seconds: float) -> None:
    """There, and after a while back again: the second jump is one in the other direction."""
    one.faults.jump(role, hours * HOUR_S)
    try:
        if role == "master":
            wait_for(lambda: abs(_ahead_s(one.place) - hours * HOUR_S) < HOUR_S / 2, "the master's clock to jump")
        time.sleep(0.5 + seconds)
    finally:
        one.faults.jump(role, 0)


def _ahead_s(place: FaultyCluster) -> float:
    """By how much the master's clock is ahead of ours, as its answers say."""
    # Whether it is well or not.
    with contextlib.closing(HTTPConnection("127.0.0.1", place.machine.port, timeout=60)) as connection:
        connection.request("GET", "/health")
        date = connection.getresponse().getheader("Date") or ""
    return parsedate_to_datetime(date).timestamp() - time.time()


@pytest.mark.timeout(240)
def test_clocks_that_jump_lose_nothing(one: Masters, tmp_path: Path, figures: Figures) -> None:
    """Each an hour ahead and back again, and the master's an hour behind, one after another, in one search."""
    with ordeals(one.place, tmp_path, figures, environment=one.faults.environment) as befalls:
        for role, hours in (*((role, 1) for role in ROLES), ("master", -1)):
            with befalls(name_of(role, hours), 0) as chance:
                jump(one, role, hours, chance.uniform(0.0, 0.5))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize("role", ROLES)
def test_ten_clocks_that_jump_lose_nothing(
    one: Masters, tmp_path: Path, figures: Figures, role: str, hours: int, seed: int
) -> None:
    """Each ten times, in a search of its own, and for longer."""
    environment = one.faults.environment
    with ordeal(one.place, tmp_path, figures, name_of(role, hours), seed, environment=environment) as chance:
        jump(one, role, hours, chance.uniform(0.0, 5.0))
