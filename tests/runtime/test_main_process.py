"""How a main process is started, where it is not its program in time."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from tenax.runtime.main_process import ExecPlan, Main


def hangs(_: ExecPlan, _report: int) -> None:
    signal.pause()


@pytest.mark.parametrize("by", ["time", "a signal"])
def test_what_is_not_its_program_is_killed(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In time, which is the start's failure; and at once where somebody asks for the end, which is none."""
    if by == "time":
        monkeypatch.setattr("tenax.runtime.main_process.MAX_EXEC_S", 0.1)
    main = Main(ExecPlan(b"argv=/bin/slow\0cwd=/\0"), hangs)
    signals, write = os.pipe()
    null = os.open("/dev/null", os.O_WRONLY)
    if by == "a signal":
        os.write(write, bytes([signal.SIGTERM, signal.SIGUSR1]))
    number, text = main.start([null, null], signals)
    for fd in (signals, write, null):
        os.close(fd)
    assert (number, "/bin/slow was not run" in text) == ((errno.ETIMEDOUT, True) if by == "time" else (0, False))
    _, status = os.waitpid(main.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert main.signalled == (b"" if by == "time" else bytes([signal.SIGTERM, signal.SIGUSR1]))
    assert not Path(f"/proc/{main.pid}").exists()
