"""An agent whose network is cut off, for a while and for so long that it is given up: all is accounted for.

Its machine runs on: scripts train, print and report, and nobody hears it. `make test` cuts it off for seconds;
`make test-long` at ten random instants for ten seconds, and for two minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tenax.jsonvalue import Json
from tests.e2e.gangs import Gang
from tests.e2e.ordeal import SMALL, ordeal
from tests.kits.cable import Cable, cable
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.machine import wait_for
from tests.kits.second_machine import SecondMachine, second_machine

#: Given up after so many seconds; a script that is heard of by its own requests would be waited for longer. An agent
#: that is cut off for three is silent for up to six: it speaks every 2.5 s, and what is lost is sent anew at instants
#: that lie further and further apart.
HASTY = {"pools": [{"name": "default", "agent_reconnect_wait": 10}]}


@dataclass(frozen=True)
class Halves:
    """A cluster with a slot here, and two on a machine behind a cable."""

    place: FaultyCluster
    second: SecondMachine
    line: Cable

    def cut_off(self, seconds: float) -> None:
        """While something runs behind it."""
        wait_for(self.second.task_processes, "a task behind the cable")
        with self.line.pulled(seconds):
            pass

    def cut_off_and_given_up(self, seconds: float) -> None:
        """As `cut_off`, and until the master has given it up: a busy one is late with that."""
        wait_for(self.second.task_processes, "a task behind the cable")
        before = self._given_up()
        with self.line.pulled(seconds):
            wait_for(lambda: self._given_up() > before, "that the agent behind the cable is given up")

    def _given_up(self) -> int:
        """How many containers behind the cable were."""
        reason = "%no sign of life from agent second%"
        return len(self.place.rows("select 1 from containers where exit ->> 'reason' like $1", reason))

    def is_empty(self) -> None:
        """Behind the cable nothing is left either."""
        wait_for(lambda: not self.second.task_processes() or None, "the end of every process behind the cable")
        wait_for(lambda: not self.second.containers() or None, "the end of every container behind the cable")


@contextmanager
def halves(settings: Mapping[str, Json] | None = None) -> Iterator[Halves]:
    with (
        cable() as line,
        faulty_cluster(slots=1, options=("--host", "0.0.0.0"), settings=settings) as place,
        second_machine(place.machine, slots=2, line=line) as second,
    ):
        yield Halves(place, second, line)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Halves]:
    with halves(HASTY) as made:
        yield made


@pytest.fixture(scope="module")
def patient() -> Iterator[Halves]:
    """As it is where nobody has set anything."""
    with halves() as made:
        yield made


@pytest.mark.timeout(240)
def test_an_agent_that_is_cut_off_for_a_moment_loses_nothing(hasty: Halves, tmp_path: Path, figures: Figures) -> None:
    """Its tasks run on, and nobody is tried again."""
    with ordeal(hasty.place, tmp_path, figures, "agent cut off", 0, work=SMALL):
        hasty.cut_off(3.0)
    hasty.is_empty()


@pytest.mark.timeout(240)
def test_an_agent_that_is_cut_off_and_given_up_loses_nothing(hasty: Halves, tmp_path: Path, figures: Figures) -> None:
    """Its tasks go on elsewhere, or there once it is back, from what they saved; nobody is charged."""
    with ordeal(hasty.place, tmp_path, figures, "agent cut off, and given up", 0, work=SMALL, tried_again=True):
        hasty.cut_off_and_given_up(20.0)
    hasty.is_empty()


@pytest.mark.timeout(240)
def test_members_of_a_gang_that_are_cut_off_while_they_meet(hasty: Halves, tmp_path: Path) -> None:
    """For a moment: they meet when it is over. Until they are given up: in another run, at nobody's cost."""
    for name, cut_off, runs in (
        ("moment", partial(hasty.cut_off, 3.0), 1),
        ("long", partial(hasty.cut_off_and_given_up, 20.0), 2),
    ):
        gang = Gang(hasty.place.machine, tmp_path / name, slots=3)
        gang.meets()
        cut_off()
        gang.meets(runs)
        gang.let_go()
        gang.completed(runs)
        hasty.is_empty()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_times_an_agent_that_is_cut_off_for_ten_seconds_loses_nothing(
    patient: Halves, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """It is waited for."""
    with ordeal(patient.place, tmp_path, figures, "agent cut off for 10 s", seed):
        patient.cut_off(10.0)
    patient.is_empty()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 4))
def test_an_agent_that_is_cut_off_for_two_minutes_loses_nothing(
    patient: Halves, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """It is given up, and its tasks with it."""
    with ordeal(patient.place, tmp_path, figures, "agent cut off for two minutes", seed, tried_again=True):
        patient.cut_off_and_given_up(120.0)
    patient.is_empty()
