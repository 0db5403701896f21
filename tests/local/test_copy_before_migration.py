"""Copies of the embedded database from before a migration: which are kept, and when none is begun."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tenax.local.backup import NotBackedUp
from tenax.local.copy_before_migration import copied_so_far, copy_before, superseded
from tenax.local.state_dir import StateDir


def test_the_newest_of_the_newest_two_migrations_are_kept() -> None:
    """A start that fails again and again pushes out no copy of another state; what people put there stays."""
    first, second, third = "0043_pre_a", "0044_pre_b", "0050_pre_c"
    names = [
        f"before-{first}-20260101T000000",
        f"before-{first}-20260101T000500",
        "monday",
        f"before-{second}-20260301T000000",
    ]
    assert superseded(names) == [f"before-{first}-20260101T000000"]
    again = [*names, f"before-{second}-20260301T000001", f"before-{second}-20260301T000002"]
    assert f"before-{first}-20260101T000500" not in superseded(again)
    assert superseded([*names, f"before-{third}-20260601T000000"]) == [
        f"before-{first}-20260101T000000",
        f"before-{first}-20260101T000500",
    ]
    assert superseded([f".before-{first}-20260101T000000.half"]) == []


def test_the_one_just_made_is_kept_whatever_the_clock_says() -> None:
    """One that once ran ahead has left copies of tomorrow."""
    made = "before-0043_pre_a-20260101T000000"
    ahead = [f"before-{name}-20290101T000000" for name in ("0043_pre_a", "0041_pre_b", "0042_pre_c")]
    assert made not in superseded([made, *ahead], made)
    assert superseded([made, *ahead], made) == ["before-0041_pre_b-20290101T000000", ahead[0]]


def test_without_room_none_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the disk under tasks that run."""
    state = StateDir(tmp_path)
    base = state.postgres / "data" / "base"
    base.mkdir(parents=True)
    (base / "1").write_bytes(b"x" * 4096)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4095))
    # What one that was killed has left counts as room: it is removed first.
    half = state.backups / ".before-0043_pre_a-20260101T000000.half"
    half.mkdir(parents=True)
    state.backups.chmod(0o700)
    assert copied_so_far(state) is None
    with pytest.raises(NotBackedUp, match="left"):
        copy_before(state, "0043_pre_a")
    assert not half.exists()
    assert copied_so_far(state) is None


def test_a_place_that_others_can_write_into_is_refused(tmp_path: Path) -> None:
    """Or a link to somewhere."""
    state = StateDir(tmp_path)
    state.backups.mkdir()
    state.backups.chmod(0o777)
    with pytest.raises(NotBackedUp, match="yours alone"):
        copy_before(state, "0043_pre_a")
    state.backups.rmdir()
    state.backups.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    with pytest.raises(NotBackedUp, match="yours alone"):
        copy_before(state, "0043_pre_a")
