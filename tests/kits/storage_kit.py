"""What every checkpoint storage must do. A test module inherits ``StorageKit`` and gives the fixture ``storage``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.storage.port import CheckpointMissing, Storage, StorageFailed

STORAGE_ID = "0d3c2b1a-0000-4000-8000-000000000001"
TWO = "0d3c2b1a-0000-4000-8000-000000000002"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory to upload: two files, one of them empty, one in a folder, and an empty folder."""
    root = tmp_path / "source"
    (root / "layers" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "model.bin").write_bytes(b"weights" * 1000)
    (root / "layers" / "deep" / "one.bin").write_bytes(b"1")
    (root / "nothing.txt").write_bytes(b"")
    return root


PATHS = ("model.bin", "layers/", "layers/deep/", "layers/deep/one.bin", "empty/", "nothing.txt")
SIZES = {"model.bin": 7000, "layers/": 0, "layers/deep/": 0, "layers/deep/one.bin": 1, "empty/": 0, "nothing.txt": 0}


def put(storage: Storage, source: Path, storage_id: str = STORAGE_ID) -> None:
    storage.stage(storage_id, str(source), PATHS)
    storage.commit(storage_id)


class StorageKit:
    def test_validate(self, storage: Storage) -> None:
        """A storage that works validates, again and again, and holds nothing afterwards."""
        storage.validate()
        storage.validate()

    def test_round_trip(self, storage: Storage, source: Path, tmp_path: Path) -> None:
        """What was staged and committed is listed with its sizes and comes back byte for byte."""
        put(storage, source)
        assert storage.list_files(STORAGE_ID) == SIZES
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        assert (tmp_path / "back/model.bin").read_bytes() == b"weights" * 1000
        assert (tmp_path / "back/layers/deep/one.bin").read_bytes() == b"1"
        assert (tmp_path / "back/empty").is_dir()

    def test_nothing_before_commit(self, storage: Storage, source: Path) -> None:
        """Until the commit there is no checkpoint: nobody can take half of one for a whole."""
        storage.stage(STORAGE_ID, str(source), PATHS)
        with pytest.raises(CheckpointMissing, match=STORAGE_ID):
            storage.list_files(STORAGE_ID)

    def test_two_stagers(self, storage: Storage, source: Path) -> None:
        """Several processes stage parts of one checkpoint."""
        storage.stage(STORAGE_ID, str(source), ["model.bin"])
        storage.stage(STORAGE_ID, str(source), ["layers/deep/one.bin"])
        storage.stage_bytes(STORAGE_ID, "metadata.json", b"{}")
        storage.commit(STORAGE_ID)
        files = {path for path in storage.list_files(STORAGE_ID) if not path.endswith("/")}
        assert files == {"model.bin", "layers/deep/one.bin", "metadata.json"}

    def test_commit_again(self, storage: Storage, source: Path) -> None:
        """A commit that is repeated changes nothing."""
        put(storage, source)
        storage.commit(STORAGE_ID)
        assert storage.list_files(STORAGE_ID) == SIZES

    def test_staging_again(self, storage: Storage, source: Path) -> None:
        """Staging that was cut off by a crash is simply done again."""
        storage.stage(STORAGE_ID, str(source), ["model.bin"])
        put(storage, source)
        assert storage.list_files(STORAGE_ID) == SIZES

    def test_abandon(self, storage: Storage, source: Path) -> None:
        """What is abandoned is gone, and the id can be used anew."""
        storage.stage(STORAGE_ID, str(source), PATHS)
        storage.abandon(STORAGE_ID)
        storage.abandon(STORAGE_ID)
        storage.stage(STORAGE_ID, str(source), ["nothing.txt"])
        storage.commit(STORAGE_ID)
        assert storage.list_files(STORAGE_ID) == {"nothing.txt": 0}

    def test_download_selected(self, storage: Storage, source: Path, tmp_path: Path) -> None:
        """A selector chooses paths; the folders above a chosen file come along."""
        put(storage, source)
        offered: list[str] = []
        storage.download(
            STORAGE_ID, str(tmp_path / "some"), lambda path: offered.append(path) or path.endswith("one.bin")
        )
        paths = sorted(str(path.relative_to(tmp_path / "some")) for path in (tmp_path / "some").rglob("*"))
        assert paths == ["layers", "layers/deep", "layers/deep/one.bin"]
        assert sorted(offered) == sorted(SIZES)

    def test_missing(self, storage: Storage, tmp_path: Path) -> None:
        """Reading what is not there says so, with the id."""
        with pytest.raises(CheckpointMissing, match=TWO):
            storage.download(TWO, str(tmp_path / "nowhere"))
        with pytest.raises(CheckpointMissing, match=TWO):
            storage.direct_path(TWO)

    def test_delete(self, storage: Storage, source: Path) -> None:
        """Deleting takes one checkpoint and no other; what is gone already is no error."""
        put(storage, source)
        put(storage, source, TWO)
        assert storage.delete(STORAGE_ID) == {}
        assert storage.delete(STORAGE_ID) == {}
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)
        assert storage.list_files(TWO) == SIZES

    def test_delete_some(self, storage: Storage, source: Path) -> None:
        """A glob deletes what it matches, a matched folder with all in it; the rest is returned and stays."""
        put(storage, source)
        left = storage.delete(STORAGE_ID, ["layers"])
        assert left == {"model.bin": 7000, "empty/": 0, "nothing.txt": 0}
        assert storage.list_files(STORAGE_ID) == left
        assert storage.delete(STORAGE_ID, ["*.txt", "*.bin"]) == {}
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)

    @pytest.mark.parametrize("bad", ["", "..", "../x", "a/b", "/etc", ".hidden", "a\\b"])
    def test_ids_stay_inside(self, storage: Storage, source: Path, bad: str) -> None:
        """An id that could lead out of the storage is refused by every method, before anything is touched."""
        for attempt in (
            lambda: storage.stage(bad, str(source), ["model.bin"]),
            lambda: storage.commit(bad),
            lambda: storage.direct_path(bad),
            lambda: storage.delete(bad),
            lambda: storage.abandon(bad),
        ):
            with pytest.raises(StorageFailed, match="not the id of a checkpoint"):
                attempt()

    def test_paths_stay_inside(self, storage: Storage, source: Path) -> None:
        """A path that leads out of the checkpoint is refused."""
        with pytest.raises(StorageFailed, match="not a path inside"):
            storage.stage_bytes(STORAGE_ID, "../outside", b"x")
        with pytest.raises(StorageFailed, match="not a path inside"):
            storage.stage(STORAGE_ID, str(source), ["../source/model.bin"])
