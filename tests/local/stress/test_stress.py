"""``tenax up`` and ``tenax down`` while everything happens to the cluster, at seeded instants, with the real servers.

Whatever happened: every command ends and says something in words, ``tenax down`` ends what is ours, nobody else is
signalled, and afterwards ``tenax up`` works.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from random import Random

import psutil
import pytest

from tenax.cli.console import exits
from tests.local.stress.faults import FAULTS
from tests.local.stress.place import Place, place, was_signalled

#: A start of the real servers takes two to five seconds here; a fault may come at any moment of it, and after.
_START_S = 4.0
#: Exit codes of commands, of `tenax.cli.console.exits`.
CODES = frozenset({exits.OK, exits.FAILED, exits.UNREACHABLE, exits.EXISTS, exits.INTERRUPTED})
#: What a fault that is done to ``tenax up`` itself makes of it.
ENDED_BY = {"kill_all": frozenset({137}), "lie": frozenset({137}), "interrupt": frozenset({143})}
#: A fault takes 10 to 20 seconds: the other kinds are met in the long run alone. What a directory that was moved or
#: removed and a port that is taken come to is in `tests/local/test_supervise_directory.py`, too.
SHORT = [(kind, seed) for seed, kind in enumerate(("kill_all", "race"))]
LONG = [(kind, 1000 + seed) for seed in range(10) for kind in FAULTS]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "seed"), SHORT)
def test_whatever_happens(kind: str, seed: int) -> None:
    """The kinds that ended worst, once."""
    meet(kind, seed)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "seed"), LONG)
def test_a_hundred_instants(kind: str, seed: int) -> None:
    """Each kind of fault at ten instants."""
    meet(kind, seed)


def meet(kind: str, seed: int) -> None:
    rng = Random(f"{kind} {seed}")
    with place() as here:
        here.stand_by(here.root / "disk")
        up = here.up()
        late = rng.random() < 0.4
        if late:
            here.finish(up, "up")
            stand_in_its_directories(here)
        else:
            pass_until(up, rng.uniform(0, _START_S))
        with FAULTS[kind](here, rng, up):
            if rng.random() < 0.3:
                pass_until(up, rng.uniform(0, _START_S / 4))
            here.run("status")
            if rng.random() < 0.5:
                here.run("up", "--no-agent")
            down = here.run("down")
            assert down.code == 0, here.story()
        if not late and "No cluster is up" in down.output:
            # It came before the other took the directory, or the directory was elsewhere.
            here.finish(up, "up")
            assert here.run("down").code == 0, here.story()
        elif not late:
            here.finish(up, "up")
        assert_ended(here)
        again = here.run("up", "--no-agent", "--port", str(here.port))
        assert again.code == 0, here.story()
        assert here.run("down").code == 0, here.story()
        assert_ended(here)
        assert_said_in_words(here, ENDED_BY.get(kind, frozenset()))
        assert_nobody_else_was_signalled(here)


def stand_in_its_directories(here: Place) -> None:
    for directory in (here.directory, here.directory / "postgres" / "data"):
        with contextlib.suppress(OSError):
            here.stand_by(directory)


def pass_until(process: subprocess.Popen[str], instant: float) -> None:
    """To the seeded instant: the input of the test, not a wait for anything."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(instant)


def assert_ended(here: Place) -> None:
    left = here.ours()
    if "No cluster is up" in here.said[-1].output:
        # It ends by itself, as where its directory is gone: its process may be about to.
        psutil.wait_procs(left, timeout=20)
        left = here.ours()
    assert not left, f"{left}\n{here.story()}"


def assert_said_in_words(here: Place, ended_by: frozenset[int]) -> None:
    for done in here.said:
        # Before it is our program the interpreter has its own words for Ctrl-C.
        assert "Traceback" not in done.output or "init_import_site" in done.output, here.story()
        assert "internal error" not in done.output, here.story()
        assert "process 0" not in done.output, here.story()
        assert done.code in CODES or (done.arguments == ("up",) and done.code in ended_by), here.story()


def assert_nobody_else_was_signalled(here: Place) -> None:
    for sent in here.signals():
        ours = (
            here.mark in sent["environ"]
            or str(here.root) in sent["cmdline"]
            or Path(sent["cwd"]).is_relative_to(here.directory)
        )
        assert sent["pid"] > 0, sent
        assert ours or not sent["cmdline"], sent
        assert "tenax up" not in sent["cmdline"], sent
    met = [was_signalled(process) for process in here.bystanders]
    assert not any(met), (met, here.signals())
