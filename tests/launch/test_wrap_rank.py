"""One rank as a process: its lines, its end, its signals, and what its launcher hears."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tenax.launch.failures import MAILBOX, Failure, Mailbox
from tenax.launch.wrap_rank import Prefixer
from tests.exec.place import SOURCE
from tests.kits.interpreters import interpreters
from tests.kits.machine import wait_for


class Heard:
    """What a launcher heard."""

    def __init__(self) -> None:
        self.failures: queue.SimpleQueue[Failure] = queue.SimpleQueue()
        self.mailbox = Mailbox(self.failures.put)

    def start(self, *command: str, python: str = sys.executable) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, "-m", "tenax.launch.wrap_rank", "RANK", "--", *command],
            env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin", "RANK": "3", MAILBOX: self.mailbox.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, python: str = sys.executable) -> tuple[int, str, str]:
        process = self.start(*command, python=python)
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err


@pytest.fixture
def launcher() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.mailbox.close()


def test_lines_get_the_prefix() -> None:
    """Whole lines, however they arrive; progress bars too; what has no end gets one."""
    prefixer = Prefixer(b"[rank=3] ")
    assert prefixer.feed(b"one\ntw") == b"[rank=3] one\n"
    assert prefixer.feed(b"o\r\n10%\r20%\r") == b"[rank=3] two\r\n[rank=3] 10%\r"
    assert prefixer.feed(b"\nend") == b"[rank=3] 20%\r\n"
    assert (prefixer.rest(), prefixer.rest()) == (b"[rank=3] end\n", b"")
    long = b"x" * 100_000
    assert prefixer.feed(long) == b"[rank=3] " + long


@pytest.mark.parametrize("python", interpreters())
def test_a_rank_that_ends_well(launcher: Heard, python: str) -> None:
    """Both streams arrive with the prefix, and nobody hears of a failure."""
    code, out, err = launcher.run("sh", "-c", "echo out; echo err >&2; printf last", python=python)
    assert (code, out, err) == (0, "[rank=3] out\n[rank=3] last\n", "[rank=3] err\n")
    assert launcher.failures.empty()


@pytest.mark.parametrize("python", interpreters())
def test_a_rank_that_raises(launcher: Heard, tmp_path: Path, python: str) -> None:
    """The exit code is its own, and the launcher hears what it raised, and where, also of a rank that PyTorch marks."""
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nsys.excepthook = sys.excepthook\n\ndef f():\n    raise ValueError('bad batch')\n\nf()\n"
    )
    assert launcher.run(python, str(script), python=python)[0] == 1
    failure = launcher.failures.get(timeout=240)
    assert (failure.rank, failure.code) == (3, 1)
    assert failure.exception == f"ValueError: bad batch (in {tmp_path.name}/train.py, line 5)"
    marked = (
        '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/a/b/c.py", line 7, in x\n[rank3]: KeyError: 1'
    )
    assert launcher.run("sh", "-c", f"printf '%s' '{marked}' >&2; exit 4", python=python)[0] == 4
    assert launcher.failures.get(timeout=240).exception == "KeyError: 1 (in b/c.py, line 7)"


def test_a_rank_that_is_killed(launcher: Heard) -> None:
    """As a shell has it: 128 and the signal."""
    assert launcher.run("sh", "-c", "kill -SEGV $$")[0] == 128 + signal.SIGSEGV
    failure = launcher.failures.get(timeout=240)
    assert str(failure) == "rank 3 failed first, killed by SIGSEGV"


def test_a_command_that_is_not_there(launcher: Heard) -> None:
    """Is told in words, with a shell's exit code."""
    code, _, err = launcher.run("no-such-program")
    assert (code, err) == (127, "[rank=3] tenax: no-such-program cannot be started: No such file or directory\n")
    assert launcher.failures.get(timeout=240).code == 127


def test_signals_are_passed_on(launcher: Heard) -> None:
    """The command may save, and end as it likes."""
    process = launcher.start("sh", "-c", "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == "[rank=3] ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=240)
    assert (process.returncode, out) == (5, "[rank=3] saved\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the signal at a parent's death is Linux's")
def test_nothing_outlives_it(launcher: Heard) -> None:
    """torchrun kills what does not end in time: the command goes with it."""
    process = launcher.start("sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "[rank=3] ready\n"
    [command] = psutil.Process(process.pid).children()
    process.kill()
    process.communicate(timeout=240)
    wait_for(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE, "its end")


def test_without_a_launcher() -> None:
    """It is a program of its own: a number is a rank, too."""
    command = [sys.executable, "-m", "tenax.launch.wrap_rank", "0", "sh", "-c", "echo x; exit 2"]
    done = subprocess.run(command, env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[rank=0] x\n")
    wrong = subprocess.run(command[:-4], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True)
    assert (wrong.returncode, "usage" in wrong.stderr) == (2, True)


def test_failures_travel_as_ages() -> None:
    """Clocks of two machines have nothing in common: what arrives says how long ago it was."""
    before = time.monotonic()
    arrived = Failure.decode(Failure(2, 1, before - 5.0, "x", 1).encode())
    assert arrived is not None
    assert (arrived.rank, arrived.code, arrived.exception, arrived.member) == (2, 1, "x", 1)
    assert before - 5.0 <= arrived.at <= time.monotonic() - 5.0
    for line in (b"", b"[]", b"{}", b'{"rank": "1"}', b"\xff"):
        assert Failure.decode(line) is None
