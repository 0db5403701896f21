"""Two masters of one cluster, whose agent, tasks and client know both: killed in turn, nothing is lost and nobody waits
for the one that is gone."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import signal
import time
from pathlib import Path
from zlib import crc32

import pytest

from tenax.client.connect import Client
from tests.e2e import noop
from tests.e2e.several_masters import NOOP, Masters, check, masters, searched
from tests.e2e.trials import script
from tests.kits.figures import Figures
from tests.kits.machine import wait_for

__all__ = ["masters"]

pytestmark = pytest.mark.timeout(900)
#: What ``examples/noop`` does, but that each trial stands at its tenth report while there is a file ``hold``.
HELD = """
    import os
    import time

    import noop
    from tenax import core


    class Held(noop.RowLog):
        def __init__(self, directory, info):
            super().__init__(directory, info)
            self.hold = os.path.join(directory, "hold")

        def write(self, row):
            while row["step"] > 10 and os.path.exists(self.hold):
                time.sleep(0.02)
            super().write(row)


    noop.RowLog = Held
    with core.init() as context:
        noop.main(context)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.long)])
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
    wait_for(lambda: asked_by_the_agent(masters)[1:], "the agent to have moved on")


@pytest.mark.long
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
    code, books = script(tmp_path / "code", HELD), tmp_path / "books"
    shutil.copyfile(NOOP / "train.py", code / "noop.py")
    hold = books / "hold"
    books.mkdir()
    hold.touch()
    with contextlib.ExitStack() as stack:
        stack.callback(hold.unlink, missing_ok=True)
        with masters.client() as client:
            number = searched(client, books, trials=3, reports=20, code=code).id
            wait_for(lambda: noop.reports(books) == 20 or None, "two trials that stand")
        asked = asked_by_the_agent(masters)
        [other] = set(masters.ports) - {asked[-1]}
        masters.signal(asked[-1], signal.SIGSTOP)
        stack.callback(masters.signal, asked[-1], signal.SIGCONT)
        client = stack.enter_context(masters.client(f"http://127.0.0.1:{other}"))
        assert not client.experiment(number).has_ended
        hold.unlink()
        # Each process meets the hung one first, and waits for it; on a busy machine some meet it again.
        ended = wait_for(lambda: ((e := client.experiment(number)).has_ended and e) or None, "its end", 800)
        assert ended.state == "COMPLETED", ended.reason
        assert [trial.restarts for trial in ended.trials()] == [0] * 3
        assert asked_by_the_agent(masters)[len(asked) :], "the agent asked no other master"
    check(masters, number, books, trials=3, reports=20)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_masters_hang_in_turn(masters: Masters, tmp_path: Path, figures: Figures) -> None:
    """Stopped at ten random instants, whatever each is in the middle of: with the other, trials go on ending."""
    stops, books, chance = 10, tmp_path / "books", random.Random(1)
    trials = 8 * stops
    with masters.client() as client:
        number = searched(client, books, trials=trials, reports=10).id
    for stop in range(stops):
        hung, other = chance.sample(masters.ports, 2)
        with masters.client(f"http://127.0.0.1:{other}") as client:
            goal = noop.reports(books) + chance.randrange(5, 15)
            wait_for(lambda goal=goal: noop.reports(books) >= goal or None, "some reports")
            time.sleep(chance.random())
            masters.signal(hung, signal.SIGSTOP)
            began, goal = time.monotonic(), min(ended_trials(client, number) + 4, trials)
            try:
                wait_for(lambda goal=goal: ended_trials(client, number) >= goal or None, "trials to end", 300)
            finally:
                masters.signal(hung, signal.SIGCONT)
            figures.tell("four trials beside a hung master", stop=stop, seconds=round(time.monotonic() - began, 1))
    check(masters, number, books, trials=trials, reports=10)


def ended_trials(client: Client, number: int) -> int:
    """How many trials of an experiment have ended."""
    return sum(trial.has_ended for trial in client.experiment(number).trials())


def asked_by_the_agent(masters: Masters) -> list[int]:
    """The ports of the masters that it has turned to, in this order."""
    moves = re.findall(r"asking another master\s+url=http://127\.0\.0\.1:(\d+)", masters.agent_log.read_text())
    return [masters.ports[crc32(b"box") % 2], *map(int, moves)]
