"""Machines that do not see the same checkpoint storage are told of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tenax.launch.failures import connect
from tenax.launch.shared_storage import warn_where_apart
from tenax.storage.registry import from_config
from tests.kits.ports import free_port

ADDRESSES = ["127.0.0.1", "127.0.0.2"]


def check(directories: list[Path | None]) -> None:
    """A launcher on each machine, in a thread, with its storage."""
    port = free_port()

    def launcher(member: int) -> None:
        star = connect(member, ADDRESSES, port, 120.0)
        directory = directories[member]
        section = None if directory is None else from_config({"type": "shared_fs", "host_path": str(directory)})
        warn_where_apart(star, ADDRESSES, section)
        star.close()

    other = threading.Thread(target=launcher, args=(1,))
    other.start()
    launcher(0)
    other.join(120.0)


def test_one_directory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Is seen by all: nothing is said, and nothing is left of the look."""
    check([tmp_path, tmp_path])
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


def test_two_directories(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A machine that has one of its own is named, with what to do."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    check([tmp_path / "first", tmp_path / "second"])
    error = capfd.readouterr().err
    assert "127.0.0.2 does not see them" in error
    assert str(tmp_path / "first") in error
    assert [*(tmp_path / "first").iterdir(), *(tmp_path / "second").iterdir()] == []


def test_no_directory(capfd: pytest.CaptureFixture[str]) -> None:
    """Where nothing is stored, or not in files, there is nothing to say."""
    check([None, None])
    assert capfd.readouterr().err == ""
