"""What the master may touch of checkpoints, and what it never does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings
from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.checkpoints.files import (
    CheckpointPlace,
    delete_checkpoint,
    delete_tensorboard,
    files_of,
    is_empty,
)
from tenax.master.checkpoints.roots import checkpoint_roots
from tenax.storage.port import StorageFailed

UUID = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001"
CLUSTER = "7a1f5b52-61a5-4d0b-9a55-5b0d6f6a0002"


def shared(root: Path | str, **more: str) -> JsonObject:
    return {"type": "shared_fs", "host_path": str(root), **more}


def checkpoint(base: Path, uuid: str = UUID) -> Path:
    """A checkpoint with a file, and one in a folder."""
    folder = base / uuid
    (folder / "sub").mkdir(parents=True)
    (folder / "a.bin").write_text("aa")
    (folder / "sub" / "b.bin").write_text("b")
    return folder


def test_only_listed_places_are_touched(tmp_path: Path) -> None:
    """Those below a root of the operator's, and the cluster's own; what a task has named counts as little as a user."""
    own, clusters, other = shared(tmp_path / "own"), shared(tmp_path / "all", storage_path="x"), shared(tmp_path)
    settings = MasterSettings(
        dir=tmp_path / "m", checkpoint_storage=clusters, checkpoint_roots=(str(tmp_path / "own"),)
    )
    roots = checkpoint_roots(settings)
    assert str(roots.place_of(None, own, None)) == str(tmp_path / "own")
    assert str(roots.place_of({**own, "container_path": "/mnt", "propagation": "rprivate"}, own, None)) == str(
        tmp_path / "own"
    )
    deeper = roots.place_of(shared(tmp_path / "own" / "a", storage_path="b"), own, None)
    assert (deeper.root, deeper.below) == (str(tmp_path / "own"), ("a", "b"))
    assert str(roots.place_of(clusters, own, None)) == str(tmp_path / "all" / "x")
    assert str(roots.place_of(None, None, None)) == str(tmp_path / "all" / "x")
    for stranger in (other, shared(tmp_path / "owner"), shared(tmp_path / "own" / ".."), shared(tmp_path / "all")):
        with pytest.raises(NotNow, match="checkpoint_roots"):
            roots.place_of(stranger, stranger, None)
    with pytest.raises(NotNow, match="neither"):
        checkpoint_roots(MasterSettings(dir=tmp_path)).place_of(None, None, None)
    with pytest.raises(NotNow, match="s3"):
        roots.place_of(None, {"type": "s3", "bucket": "b"}, None)


def test_a_checkpoint_goes_with_what_broke_off(tmp_path: Path) -> None:
    """An upload that was never committed, a deletion that was never finished; again there is nothing to do."""
    checkpoint(tmp_path)
    checkpoint(tmp_path, f".{UUID}.partial")
    checkpoint(tmp_path, f".{UUID}.deleted")
    neighbour = checkpoint(tmp_path, UUID[:-1] + "9")
    assert delete_checkpoint(CheckpointPlace(str(tmp_path)), UUID) == {}
    assert delete_checkpoint(CheckpointPlace(str(tmp_path)), UUID) is None
    assert [each.name for each in tmp_path.iterdir()] == [neighbour.name]


def test_some_files_go_and_the_rest_is_told(tmp_path: Path) -> None:
    """With directories; without a file left the checkpoint is gone."""
    folder = checkpoint(tmp_path)
    place = CheckpointPlace(str(tmp_path))
    assert delete_checkpoint(place, UUID, ["**/b.bin"]) == {"a.bin": 2, "sub/": 0}
    assert files_of(place, UUID) == {"a.bin": 2, "sub/": 0}
    assert delete_checkpoint(place, UUID, ["a.*"]) == {}
    assert not folder.exists()
    with pytest.raises(NotFound, match="not in"):
        files_of(place, UUID)


@pytest.mark.parametrize("name", ["..", ".", "", "not-a-uuid", "../" + UUID, UUID + "/sub", "{" + UUID + "}"])
def test_only_uuids_are_checkpoints(tmp_path: Path, name: str) -> None:
    """Whatever else stands there is left alone."""
    base = tmp_path / "base"
    checkpoint(base)
    checkpoint(tmp_path)
    with pytest.raises(NotNow):
        delete_checkpoint(CheckpointPlace(str(base)), name)
    assert len(list(tmp_path.rglob("*.bin"))) == 4


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Neither in place of a checkpoint, nor inside of it, nor on the way to it below the root."""
    secret = checkpoint(tmp_path / "secret")
    base = tmp_path / "base"
    base.mkdir()
    (base / UUID).symlink_to(secret)
    with pytest.raises(NotNow, match="leads elsewhere"):
        delete_checkpoint(CheckpointPlace(str(base)), UUID)
    with pytest.raises(NotNow, match="leads elsewhere"):
        files_of(CheckpointPlace(str(base)), UUID)
    (base / UUID).unlink()
    inside = checkpoint(base)
    (inside / "out").symlink_to(secret)
    assert set(delete_checkpoint(CheckpointPlace(str(base)), UUID, ["**/*.bin"]) or {}) == {"out", "sub/"}
    assert delete_checkpoint(CheckpointPlace(str(base)), UUID) == {}
    (base / "swapped").symlink_to(tmp_path / "secret")
    with pytest.raises(NotNow, match="link"):
        delete_checkpoint(CheckpointPlace(str(base), ("swapped",)), UUID)
    assert sorted(each.name for each in secret.rglob("*")) == ["a.bin", "b.bin", "sub"]


def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    """An administrator's mount point often is."""
    checkpoint(tmp_path / "real")
    (tmp_path / "mount").symlink_to(tmp_path / "real")
    assert delete_checkpoint(CheckpointPlace(str(tmp_path / "mount")), UUID) == {}
    assert not list((tmp_path / "real").iterdir())


def test_what_is_out_of_reach_says_so(tmp_path: Path) -> None:
    """A root that is not there is no empty one."""
    with pytest.raises(NotNow, match="mount it"):
        delete_checkpoint(CheckpointPlace(str(tmp_path / "absent")), UUID)
    assert is_empty(CheckpointPlace(str(tmp_path)))


def test_a_refusal_of_the_file_system_names_place_and_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that somebody can change it."""
    checkpoint(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StorageFailed, match=f"{tmp_path}, as uid {os.getuid()} .*Permission denied"):
        delete_checkpoint(CheckpointPlace(str(tmp_path)), UUID)


def test_tensorboard_files_go_with_their_experiment(tmp_path: Path) -> None:
    """Those of one experiment of this cluster, and nothing through a link."""
    for number in ("1", "2"):
        checkpoint(tmp_path / CLUSTER / "tensorboard" / "experiment" / number)
    place = CheckpointPlace(str(tmp_path))
    assert delete_tensorboard(place, CLUSTER, 1)
    assert not delete_tensorboard(place, CLUSTER, 1)
    assert not delete_tensorboard(place, UUID, 2)
    assert [each.name for each in (tmp_path / CLUSTER / "tensorboard" / "experiment").iterdir()] == ["2"]
    (tmp_path / UUID).symlink_to(tmp_path / CLUSTER)
    with pytest.raises(NotNow):
        delete_tensorboard(place, UUID, 2)
