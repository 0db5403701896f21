"""Checkpoints whose files, or patterns for them, cost the master more than it has."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax.master.checkpoints import files as checkpoint_files
from tenax.master.checkpoints.archive import Form, packed
from tenax.master.checkpoints.files import CheckpointPlace, delete_checkpoint, files_of
from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.loop import PassContext
from tenax.master.store.database.wakeups import Woken
from tenax.runtime.removal import delete_home
from tenax.storage.port import StorageFailed
from tests.kits.api import Api
from tests.kits.master.checkpoints import UUID
from tests.kits.master.deleting import context, ended

__all__ = ["context"]

#: Of each of these a matcher that goes back tries every way to lay the stars: for longer than anybody lives.
PATTERNS = ("*a" * 100 + "b", "**a" * 100 + "b", "**/" * 100 + "b", "*" * 999 + "b", "[a]*" * 100 + "b")


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_pattern_that_goes_back(api: Api, pattern: str) -> None:
    """Which holds up every thread of the master, and after a restart again, as the removal is still to be done."""
    _, folder = await ended(api)
    file = folder / ("a" * 250)
    file.touch()
    body = {"checkpointUuids": [UUID], "checkpointGlobs": [pattern]}
    assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 200
    assert file.exists()


@pytest.mark.parametrize("patterns", [["a" * 1001], ["a" * 1000] * 11, [" "]])
async def test_patterns_that_nobody_means(api: Api, patterns: list[str]) -> None:
    """Each is tried on each file."""
    await ended(api)
    body = {"checkpointUuids": [UUID], "checkpointGlobs": patterns}
    assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 400


def nested(folder: Path, levels: int) -> None:
    """Deeper than a path can say."""
    folder.mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize(
    "use",
    [
        files_of,
        delete_checkpoint,
        lambda place, name: delete_checkpoint(place, name, ["*.pt"]),
        lambda place, name: list(packed(place, name, Form.TAR)),
    ],
)
def test_directories_in_directories(tmp_path: Path, use: Callable[[CheckpointPlace, str], object]) -> None:
    """Neither the stack nor the open files of the master are a user's to use up: it says that it is too much."""
    nested(tmp_path / UUID, 3000)
    before = len(os.listdir("/proc/self/fd"))
    try:
        with pytest.raises(StorageFailed, match="nested more than"):
            use(CheckpointPlace(str(tmp_path)), UUID)
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        for left in tmp_path.iterdir():
            assert delete_home(left)


def test_files_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that is listed stands in memory."""
    monkeypatch.setattr(checkpoint_files, "MAX_ENTRIES", 10)
    (tmp_path / UUID).mkdir()
    for number in range(11):
        (tmp_path / UUID / str(number)).touch()
    with pytest.raises(StorageFailed, match="more than 10 files"):
        files_of(CheckpointPlace(str(tmp_path)), UUID)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """They are listed, packed and deleted like others."""
    folder = os.fsencode(tmp_path / UUID)
    os.mkdir(folder)
    for name in (b"\xff.pt", b"\xff.bin"):
        with open(folder + b"/" + name, "wb"):
            pass
    os.symlink(b"\xff.pt", folder + b"/\xfe")
    place = CheckpointPlace(str(tmp_path))
    assert files_of(place, UUID) == {"\N{REPLACEMENT CHARACTER}.pt": 0, "\N{REPLACEMENT CHARACTER}.bin": 0} | {
        "\N{REPLACEMENT CHARACTER}": 4
    }
    for form in Form:
        assert b"".join(packed(place, UUID, form))
    assert sorted(delete_checkpoint(place, UUID, ["*.bin"]) or ()) == [
        "\N{REPLACEMENT CHARACTER}",
        "\N{REPLACEMENT CHARACTER}.pt",
    ]
    assert os.listdir(folder) == [b"\xff.pt", b"\xfe"] or os.listdir(folder) == [b"\xfe", b"\xff.pt"]


async def test_a_removal_that_breaks_is_no_obstacle(
    api: Api, context: PassContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is that breaks: it waits for its turn, as those do that fail in a usual way."""
    await ended(api)
    monkeypatch.setattr("tenax.master.api.checkpoints.routes._AT_ONCE", 0)
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200

    def breaks(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("tenax.master.checkpoints.removal.delete_checkpoint", breaks)
    wait_s = await CheckpointGc(api.master.settings).make_pass(context, Woken(frozenset(), full=True))
    assert wait_s is not None
    assert wait_s > 0
    async with api.master.db.connection() as conn:
        row = await conn.fetchrow("select failure, tries from removals")
    assert tuple(row) == ("RecursionError: ", 1)
