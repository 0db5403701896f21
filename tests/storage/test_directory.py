"""Checkpoints as directories: the kit, and what is special about a file system."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tenax.errors import InvalidInput
from tenax.storage import directory, local_directory, registry
from tenax.storage.port import CheckpointMissing, Storage, StorageFailed
from tests.kits.storage_kit import PATHS, STORAGE_ID, StorageKit, put, source

__all__ = ["source"]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    (tmp_path / "share").mkdir()
    return registry.from_config(
        {"type": "shared_fs", "host_path": str(tmp_path / "share"), "storage_path": "team/checkpoints"},
        mount=str(tmp_path / "no-mount"),
    )


class TestSharedFs(StorageKit):
    def test_place(self, storage: Storage, source: Path, tmp_path: Path) -> None:
        """A checkpoint is the directory ``<host_path>/<storage_path>/<id>``, and nothing else is left beside it."""
        put(storage, source)
        assert os.listdir(tmp_path / "share/team/checkpoints") == [STORAGE_ID]
        assert storage.direct_path(STORAGE_ID) == str(tmp_path / "share/team/checkpoints" / STORAGE_ID)

    def test_written_in_place(self, storage: Storage) -> None:
        """Files written into the staging directory are part of the checkpoint after the commit, and not before."""
        directory = storage.stage_directory(STORAGE_ID)
        assert directory is not None
        (Path(directory) / "model.bin").write_bytes(b"abc")
        assert storage.staged(STORAGE_ID) == {"model.bin": 3}
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)
        storage.commit(STORAGE_ID)
        assert storage.list_files(STORAGE_ID) == {"model.bin": 3}

    def test_links_are_followed(self, storage: Storage, source: Path, tmp_path: Path) -> None:
        """A link in a checkpoint is stored as what it points to; a link to a folder above itself is an error."""
        outside = tmp_path / "outside.bin"
        outside.write_bytes(b"linked")
        directory = storage.stage_directory(STORAGE_ID)
        assert directory is not None
        os.symlink(outside, Path(directory) / "link.bin")
        assert storage.staged(STORAGE_ID) == {"link.bin": 6}
        os.symlink(directory, Path(directory) / "loop")
        with pytest.raises(StorageFailed, match="link to a directory above"):
            storage.staged(STORAGE_ID)

    def test_modes_are_kept(self, storage: Storage, source: Path, tmp_path: Path) -> None:
        """A file that may be executed comes back as one."""
        (source / "model.bin").chmod(0o755)
        put(storage, source)
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        assert (tmp_path / "back/model.bin").stat().st_mode & 0o777 == 0o755


class TestDirectory(StorageKit):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return registry.from_config({"type": "directory", "container_path": str(tmp_path / "made/when/needed")})


def test_mount_wins(tmp_path: Path) -> None:
    """Inside a container with the mount, checkpoints go there; the identity stays the host's path."""
    (tmp_path / "mount").mkdir()
    storage = registry.from_config(
        {"type": "shared_fs", "host_path": "/data/ckpt", "storage_path": "/data/ckpt/a", "save_trial_best": 1},
        mount=str(tmp_path / "mount"),
    )
    storage.stage_bytes(STORAGE_ID, "x", b"1")
    storage.commit(STORAGE_ID)
    assert (tmp_path / "mount/a" / STORAGE_ID / "x").exists()
    assert storage.identity() == {"type": "shared_fs", "host_path": "/data/ckpt", "storage_path": "a"}


def test_missing_host_path_is_not_made(tmp_path: Path) -> None:
    """A host_path that is not there (not mounted?) fails in words instead of filling the machine's own disk."""
    storage = registry.from_config(
        {"type": "shared_fs", "host_path": str(tmp_path / "gone")}, mount=str(tmp_path / "no-mount")
    )
    with pytest.raises(StorageFailed, match=r"gone cannot be written on .* does not exist there. Make or mount it"):
        storage.validate()
    assert not (tmp_path / "gone").exists()


def test_a_file_where_a_directory_belongs(tmp_path: Path) -> None:
    """Is told as what it is."""
    (tmp_path / "file").touch()
    place = {"type": "shared_fs", "host_path": str(tmp_path / "file")}
    storage = registry.from_config(place, mount=str(tmp_path / "no-mount"))
    with pytest.raises(StorageFailed, match=r"is no directory there\. Name a directory"):
        storage.validate()


def test_unwritable(tmp_path: Path) -> None:
    """A place that cannot be written fails with its name, the user and what to do."""
    (tmp_path / "file").write_text("a file, not a directory")
    storage = local_directory.from_directory(str(tmp_path / "file" / "checkpoints"))
    with pytest.raises(
        StorageFailed, match=rf"file/checkpoints cannot be written on \S+ as uid {os.getuid()}: Not a dir"
    ):
        storage.validate()


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """A full disk is named as such, and leaves no checkpoint."""
    storage = local_directory.from_directory(str(tmp_path / "c"))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(StorageFailed, match=r"No space left on device. Make room there"):
        storage.stage(STORAGE_ID, str(source), PATHS)
    with pytest.raises(CheckpointMissing):
        storage.list_files(STORAGE_ID)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"type": "tape", "bucket": "b"}, "type 'tape' is not served"),
        ({"type": "shared_fs"}, "needs host_path"),
        ({"type": "shared_fs", "host_path": "relative"}, "must be an absolute path"),
        ({"type": "shared_fs", "host_path": "/data", "storage_path": "../etc"}, "leads out of host_path"),
        ({"type": "shared_fs", "host_path": "/data", "storage_path": "/database"}, "leads out of host_path"),
        ({"type": "directory"}, "needs container_path"),
        ({"type": "directory", "container_path": 3}, "must be a string"),
    ],
)
def test_bad_sections(section: dict[str, object], message: str) -> None:
    """A section that names no usable place is refused with its key."""
    with pytest.raises(InvalidInput, match=message):
        registry.from_config(section)  # type: ignore[arg-type]


def test_files_beside_checkpoints(tmp_path: Path) -> None:
    """A file is put at its path, over what was there, and never outside; no checkpoint comes of it."""
    storage = local_directory.from_directory(str(tmp_path / "kept"))
    source = tmp_path / "events"
    for text in ("one", "another"):
        source.write_text(text)
        storage.put("cluster/tensorboard/events", str(source))
        assert [path.name for path in (tmp_path / "kept/cluster/tensorboard").iterdir()] == ["events"]
        assert (tmp_path / "kept/cluster/tensorboard/events").read_text() == text
    with pytest.raises(StorageFailed):
        storage.put("../outside", str(source))
    assert not (tmp_path / "outside").exists()


def test_half_of_a_file_beside_checkpoints_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk it would hold the room that is missing."""

    def full(source: str, target: str, **_: object) -> None:
        Path(target).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(directory, "copy_file", full)
    (tmp_path / "answers").write_text("x")
    storage = registry.from_config({"type": "directory", "container_path": str(tmp_path / "store")})
    with pytest.raises(StorageFailed):
        storage.put("outputs/answers", str(tmp_path / "answers"))
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
