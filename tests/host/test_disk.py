"""When a disk is full, and sizes as text."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from tenax.host.disk import FULL_BYTES, is_full, says_full, size_text


@pytest.mark.parametrize(("free", "full"), [(0, True), (FULL_BYTES - 4096, True), (FULL_BYTES, False)])
def test_a_disk_is_full_where_a_user_has_no_room(monkeypatch: pytest.MonkeyPatch, free: int, full: bool) -> None:
    """What is kept for root does not count as room."""
    disk = SimpleNamespace(f_bavail=free // 4096, f_bfree=1 << 20, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    assert is_full("/anywhere") is full


def test_a_place_that_says_nothing_is_not_full() -> None:
    """A directory that is gone, a mount that does not answer."""
    assert not is_full("/does/not/exist")


def test_which_errors_say_that_a_disk_is_full() -> None:
    """A full quota is a full disk for who writes; a read-only one is not."""
    assert says_full(OSError(errno.ENOSPC, "full"))
    assert says_full(OSError(errno.EDQUOT, "quota"))
    assert not says_full(OSError(errno.EROFS, "read-only"))
    assert not says_full(ValueError())


def test_sizes_for_people() -> None:
    """MiB below a GiB."""
    assert [size_text(count) for count in (0, 3 << 20, 1 << 30, 3 << 29)] == ["0 MiB", "3 MiB", "1.0 GiB", "1.5 GiB"]
