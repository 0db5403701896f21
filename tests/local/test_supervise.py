"""The supervising process, over small servers of the test's own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tenax.local.state_dir import StateDir, number_of
from tenax.local.supervise.glance import Glance, glance
from tenax.local.supervise.supervisor import BACKOFF, HEALTHY_S, next_start

SERVE = "import os, pathlib, signal; pathlib.Path(os.environ['READY']).touch(); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVE
Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "cluster")


@pytest.fixture
def run(state: StateDir) -> Iterator[Run]:
    started: list[subprocess.Popen[str]] = []

    def start(*services: str) -> subprocess.Popen[str]:
        script = Path(__file__).with_name("little_cluster.py")
        process = subprocess.Popen(
            [sys.executable, str(script), str(state.root), *services], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(state: StateDir, condition: Callable[[Glance], bool]) -> Glance:
    """The first glance that meets the condition."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        seen = glance(state)
        if condition(seen):
            return seen
        time.sleep(0.01)
    raise AssertionError(f"never seen: {glance(state)}")


def pid_of(seen: Glance, name: str) -> int:
    return number_of(seen.services()[name], "pid")


def is_gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def test_up_and_down(state: StateDir, run: Run) -> None:
    """All servers come up in order, and SIGTERM ends them, lets go of the lock and is a success."""
    process = run(f"one!={SERVE}", f"two={SERVE}")
    seen = wait_for(state, lambda seen: seen.phase == "up" and seen.services()["two"]["state"] == "up")
    process.terminate()
    assert process.wait(240) == 0
    assert glance(state).phase == "down"
    assert is_gone(pid_of(seen, "one"))
    assert is_gone(pid_of(seen, "two"))


def test_restart(state: StateDir, run: Run) -> None:
    """A server that is killed is started again under a new process id, and the other is left alone."""
    run(f"one!={SERVE}", f"two!={SERVE}")
    before = wait_for(state, lambda seen: seen.phase == "up")
    os.kill(pid_of(before, "one"), signal.SIGKILL)
    after = wait_for(state, lambda seen: seen.services()["one"].get("restarts") == 1)
    assert after.services()["one"]["ended_with"] == -9
    assert pid_of(after, "one") not in (0, pid_of(before, "one"))
    assert pid_of(after, "two") == pid_of(before, "two")


def test_servers_die_with_the_supervisor(state: StateDir, run: Run) -> None:
    """After kill -9 of the supervisor no server is left, the lock is free, and a new one comes up."""
    process = run(f"one!={SERVE}", f"two!={STUBBORN}")
    seen = wait_for(state, lambda seen: seen.phase == "up")
    process.kill()
    process.wait()
    wait_for(state, lambda now: is_gone(pid_of(seen, "one")) and is_gone(pid_of(seen, "two")))
    assert glance(state).phase == "down"
    run(f"one!={SERVE}", f"two!={SERVE}")
    again = wait_for(state, lambda seen: seen.phase == "up")
    assert pid_of(again, "one") != pid_of(seen, "one")


def test_a_vital_server_that_does_not_come_up(state: StateDir, run: Run) -> None:
    """The first start fails with the last words of the server that failed, and the others are ended."""
    process = run(f"one!={SERVE}", "two!=raise SystemExit('the port is taken')")
    _, output = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "two ended with exit code 1" in output
    assert "the port is taken" in output
    seen = glance(state)
    assert seen.phase == "failed"
    assert "the port is taken" in seen.message
    assert seen.services()["one"]["pid"] is None


def test_a_server_that_is_not_vital_may_fail(state: StateDir, run: Run) -> None:
    """The cluster is up although a server that is not vital keeps ending, which can be seen."""
    run(f"one!={SERVE}", "two=raise SystemExit(3)")
    seen = wait_for(state, lambda seen: number_of(seen.services().get("two", {}), "restarts") >= 2)
    assert seen.phase == "up"
    assert seen.services()["two"]["ended_with"] == 3


def test_stop_while_starting(state: StateDir, run: Run) -> None:
    """SIGTERM ends a cluster whose server has not come up yet."""
    process = run("one!=import signal; signal.pause()")
    seen = wait_for(state, lambda seen: "one" in seen.services() and pid_of(seen, "one") > 0)
    process.terminate()
    assert process.wait(240) == 0
    assert is_gone(pid_of(seen, "one"))


def test_restarts_wait_longer_each_time() -> None:
    """The first restart is at once, the next ones wait twice as long each, and a long life forgets."""
    ends, waits = 0, []
    for _ in range(12):
        ends, wait = next_start(ends, 0.1)
        waits.append(wait)
    assert waits[:4] == [0.0, 0.2, 0.4, 0.8]
    assert waits[-1] == BACKOFF.ceiling == 30.0
    assert next_start(ends, HEALTHY_S + 1) == (1, 0.0)
    assert next_start(1, 0.1) == (2, 0.2)
