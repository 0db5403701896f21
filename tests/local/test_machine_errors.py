"""Errors of the operating system that nobody listed end no cluster, hide none, and cost no log."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from tenax.local.state_dir import StateDir, read_json
from tenax.local.supervise import supervisor
from tenax.local.supervise.logs import rotate
from tenax.local.supervise.supervisor import ClusterSupervisor
from tests.kits.machine_errors import FailingCall, no_descriptors


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "cluster")
    made.prepare()
    return made


def test_a_lock_that_cannot_be_opened_is_not_free(state: StateDir) -> None:
    """Whoever asks hears of the error: without it a cluster that is up would be down."""
    lock = state.take_lock()
    assert lock is not None
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        state.is_locked()
    assert state.is_locked()
    os.close(lock)
    assert not state.is_locked()


def test_a_directory_that_does_not_answer_is_not_gone(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of a cluster run on while its disk fails."""
    monkeypatch.setattr(supervisor, "_LOOK_EVERY_S", 0.01)
    lock = state.take_lock()
    assert lock is not None
    failing = FailingCall(os.stat, errno.EIO, lambda path, *_, **__: path == state.lock)

    def stat(path: Any, *arguments: Any, **named: Any) -> Any:
        if failing.failed == 3 and path == state.lock:
            os.kill(os.getpid(), signal.SIGTERM)
        return failing(path, *arguments, **named)

    failing.left = 3
    monkeypatch.setattr(os, "stat", stat)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        ClusterSupervisor(state, [], {}, lock).run()
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(lock)
    assert failing.failed == 3
    assert read_json(state.supervisor)["state"] == "down"


def test_a_log_that_cannot_be_rotated_loses_nothing(tmp_path: Path) -> None:
    """On a disk without room the older parts stay as they are, however often it is tried."""
    path = tmp_path / "master.log"
    parts = {"master.log": "now" * 10, "master.log.1": "1", "master.log.2": "2", "master.log.3": "3"}
    for name, text in parts.items():
        (tmp_path / name).write_text(text)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for _ in range(3):
        # The system's own refusal to write more than so much.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                rotate(path, limit=9)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {place.name: place.read_text() for place in tmp_path.iterdir()} == parts
    assert rotate(path, limit=9)
    assert {place.name: place.read_text() for place in tmp_path.iterdir()} == {
        "master.log": "",
        "master.log.1": "now" * 10,
        "master.log.2": "1",
        "master.log.3": "2",
    }
