"""Checkpoints of one process: what is stored, reported, and left when something fails."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest

from tenax import core
from tenax.core.checkpoint import CheckpointContext
from tenax.core.distributed import DummyDistributedContext
from tenax.core.modes import DownloadMode
from tenax.core.spool import Spool
from tenax.core.spooling.file import SpoolFile
from tenax.core.staging import temporary_place
from tenax.errors import InvalidInput, NotFound
from tenax.storage.directory import DirectoryStorage
from tenax.storage.local_directory import from_directory
from tenax.storage.port import CheckpointMissing, StorageFailed, claimed_id
from tests.kits.object_store import ObjectStore
from tests.kits.task_master import TaskMaster


class Task:
    """A checkpoint context with its storage, and what it reported."""

    def __init__(self, root: Path, in_place: bool) -> None:
        self.base = root / "storage"
        kind = DirectoryStorage if in_place else ObjectStore
        self.storage = kind(str(self.base), identity={"type": "x", "where": "here"}, label=str(self.base))
        self.spool = Spool(SpoolFile(str(root / "spool"), "reports"), None, "", "")
        self.context = CheckpointContext(self.storage, self.spool, DummyDistributedContext(), None, needs_steps=True)

    def reported(self) -> list[dict[str, object]]:
        if not os.path.exists(self.spool.path):
            return []
        return [json.loads(line) for line in Path(self.spool.path).read_text().splitlines()]

    def stored(self) -> list[str]:
        return sorted(os.listdir(self.base)) if self.base.exists() else []


@pytest.fixture(params=[True, False], ids=["in place", "object store"])
def task(tmp_path: Path, request: pytest.FixtureRequest) -> Task:
    return Task(tmp_path, request.param)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "sub").mkdir(parents=True)
    (root / "model.bin").write_bytes(b"12345")
    (root / "sub/part.bin").write_bytes(b"1")
    return root


def test_upload(task: Task, source: Path) -> None:
    """A directory is stored with its metadata, reported with sizes and place, and left as it was."""
    storage_id = task.context.upload(source, {"steps_completed": 7, "note": "x"})
    assert task.stored() == [storage_id]
    (record,) = task.reported()
    assert record["kind"] == "checkpoint"
    metadata = {"steps_completed": 7, "note": "x"}
    body = record["body"]
    assert isinstance(body, dict)
    assert claimed_id(body.pop("claim")) == storage_id
    assert body == {
        "uuid": storage_id,
        "stepsCompleted": 7,
        "metadata": metadata,
        "resources": {
            "model.bin": 5,
            "sub/": 0,
            "sub/part.bin": 1,
            **{
                name: os.path.getsize(task.base / storage_id / name)
                for name in ("metadata.json", ".tenax-manifest.json")
            },
        },
        "storage": {"type": "x", "where": "here"},
        "state": "COMPLETED",
    }
    assert json.loads((task.base / storage_id / "metadata.json").read_text()) == metadata
    assert not (source / "metadata.json").exists()


def test_upload_selected(task: Task, source: Path) -> None:
    """A selector decides by path what is stored."""
    storage_id = task.context.upload(source, {"steps_completed": 1}, selector=lambda path: path.endswith("part.bin"))
    resources = task.reported()[0]["body"]["resources"]  # type: ignore[index]
    assert set(resources) == {"sub/", "sub/part.bin", "metadata.json", ".tenax-manifest.json"}
    assert not (task.base / storage_id / "model.bin").exists()


def test_store_and_restore(task: Task) -> None:
    """What is written into the path of ``store_path`` is what ``restore_path`` shows."""
    with task.context.store_path({"steps_completed": 3}) as (path, storage_id):
        assert task.reported() == []
        (path / "state").write_text("three")
    assert task.stored() == [storage_id]
    assert task.reported()[0]["body"]["resources"]["state"] == 5  # type: ignore[index]
    for mode in DownloadMode:
        with task.context.restore_path(storage_id, mode) as back:
            assert (back / "state").read_text() == "three"
    assert task.stored() == [storage_id]
    assert task.context.get_metadata(storage_id) == {"steps_completed": 3}


def test_temporary_copies_are_removed(tmp_path: Path, source: Path) -> None:
    """A copy made for reading is gone after the block, also when the block raises."""
    task = Task(tmp_path, in_place=False)
    storage_id = task.context.upload(source, {"steps_completed": 1})
    seen: list[Path] = []

    def read_and_fail() -> None:
        with task.context.restore_path(storage_id) as path:
            seen.append(path / "model.bin")
            assert seen[0].exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read_and_fail()
    assert not seen[0].exists()


def test_block_that_raises_stores_nothing(task: Task) -> None:
    """If the block of ``store_path`` raises, there is no checkpoint, no report and no rest."""

    def write_and_fail() -> None:
        with task.context.store_path({"steps_completed": 3}) as (path, _):
            (path / "half").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert task.stored() == []
    assert task.reported() == []


@pytest.mark.parametrize("says", [True, False])
def test_a_full_storage_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bool) -> None:
    """Whatever the library says that wrote into it: not all of them pass the system's error on."""
    task = Task(tmp_path, in_place=True)
    disk = os.statvfs(tmp_path)
    full = os.statvfs_result((*disk[:3], 0, 0, *disk[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: disk if says else full)
    error = OSError(errno.ENOSPC, "No space left on device") if says else RuntimeError("unexpected pos 64 vs 0")

    def write_and_fail() -> None:
        with task.context.store_path({"steps_completed": 3}):
            raise error

    with pytest.raises(StorageFailed, match=f"storage is full, or takes no more, at {task.base}") as failed:
        write_and_fail()
    assert str(error) in str(failed.value)
    assert task.reported() == []


def test_failing_storage_reports_nothing(task: Task, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that could not be committed is not reported, and what was staged is thrown away."""

    def broken(storage_id: str) -> None:
        raise StorageFailed("the disk is gone")

    monkeypatch.setattr(task.storage, "commit", broken)
    with pytest.raises(StorageFailed, match="disk is gone"):
        task.context.upload(source, {"steps_completed": 1})
    assert task.stored() == []
    assert task.reported() == []


@pytest.mark.parametrize("metadata", [None, {}, {"steps_completed": "3"}, {"steps_completed": True}])
def test_steps_are_needed(task: Task, source: Path, metadata: dict[str, object] | None) -> None:
    """A trial's checkpoint says after how many steps it was made; without, nothing is stored."""
    with pytest.raises(InvalidInput, match="steps_completed"):
        task.context.upload(source, metadata)
    with pytest.raises(InvalidInput, match="steps_completed"):
        with task.context.store_path(metadata):
            pass
    assert task.stored() == []


def test_what_cannot_be_uploaded(task: Task, tmp_path: Path) -> None:
    """Nothing, or a directory that is not there, is refused in words."""
    with pytest.raises(InvalidInput, match="stores nothing"):
        task.context.upload(None, {"steps_completed": 1})
    with pytest.raises(InvalidInput, match=r"cannot be read: .*No such file"):
        task.context.upload(tmp_path / "nowhere", {"steps_completed": 1})
    with pytest.raises(TypeError, match="fn is a function"):
        task.context.upload(tmp_path, {"steps_completed": 1, "fn": test_upload})


def test_download(task: Task, source: Path, tmp_path: Path) -> None:
    """A checkpoint comes back into any directory, whole or selected."""
    storage_id = task.context.upload(source, {"steps_completed": 1})
    task.context.download(storage_id, tmp_path / "back")
    assert (tmp_path / "back/sub/part.bin").read_bytes() == b"1"
    task.context.download(storage_id, tmp_path / "some", selector=lambda path: path == "model.bin")
    assert os.listdir(tmp_path / "some") == ["model.bin"]


def test_delete(task: Task, source: Path) -> None:
    """Deleting removes the files and reports that nothing is left; again is no error."""
    storage_id = task.context.upload(source, {"steps_completed": 1})
    task.context.delete(storage_id)
    task.context.delete(storage_id)
    assert task.stored() == []
    assert [record["body"] for record in task.reported()[1:]] == [{"uuid": storage_id, "resources": {}}] * 2


def test_missing(task: Task, tmp_path: Path) -> None:
    """An id that is not there is said to be missing."""
    unknown = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(CheckpointMissing, match=unknown):
        task.context.download(unknown, tmp_path / "x")
    with pytest.raises(CheckpointMissing):
        with task.context.restore_path(unknown):
            pass
    with pytest.raises(NotFound):
        task.context.get_metadata(unknown)


def test_ids_are_uuids(task: Task, source: Path) -> None:
    """Ids are random UUIDs of version 8: what each is made of only its task knows."""
    import uuid

    ids = {task.context.upload(source, {"steps_completed": 1}) for _ in range(20)}
    assert len(ids) == 20
    for storage_id in ids:
        parsed = uuid.UUID(storage_id)
        assert (str(parsed), parsed.version, parsed.variant) == (storage_id, 8, uuid.RFC_4122)


def test_metadata_from_the_master(trial: Path, master: TaskMaster, source: Path) -> None:
    """On a cluster the master is asked, after it has the report of the checkpoint itself."""
    with core.init() as context:
        storage_id = context.checkpoint.upload(source, {"steps_completed": 1})
        path = f"/api/v1/checkpoints/{storage_id}"
        master.answers[path] = (200, {"checkpoint": {"metadata": {"steps_completed": 1, "label": "later"}}}, {})
        assert context.checkpoint.get_metadata(storage_id) == {"steps_completed": 1, "label": "later"}
        assert master.bodies_of("checkpoint")[0]["uuid"] == storage_id


def test_chosen_storage(off_cluster: Path, tmp_path: Path, source: Path) -> None:
    """``checkpoint_storage`` of ``core.init`` is where checkpoints go: a path or a section."""
    section = {"type": "directory", "container_path": str(tmp_path / "b")}
    for chosen, base in ((str(tmp_path / "a"), tmp_path / "a"), (section, tmp_path / "b")):
        with core.init(checkpoint_storage=chosen) as context:  # type: ignore[arg-type]
            storage_id = context.checkpoint.upload(source, {"steps_completed": 1})
        assert (base / storage_id / "model.bin").exists()
    with core.init(checkpoint_storage="http://bucket") as context:
        with pytest.raises(InvalidInput, match="not served"):
            _ = context.checkpoint
    assert from_directory(str(tmp_path / "a")).identity()["type"] == "directory"


def reported(master: TaskMaster) -> list[tuple[str, str]]:
    """Kind and id of all that was reported about checkpoints, in order."""
    kinds = ("checkpoint_started", "checkpoint_abandoned", "checkpoint", "checkpoint_files")
    return [(str(record["kind"]), record["body"]["uuid"]) for record in master.records() if record["kind"] in kinds]  # type: ignore[index]


def test_an_upload_is_announced_before_its_first_file(trial: Path, master: TaskMaster, source: Path) -> None:
    """With the place; then it is reported, or, thrown away after an error, taken back."""
    with core.init() as context:
        storage_id = context.checkpoint.upload(source, {"steps_completed": 1})
        with contextlib.suppress(KeyError), context.checkpoint.store_path({"steps_completed": 2}) as (path, lost):
            (path / "half").write_text("h")
            raise KeyError("the script")
    assert not path.exists()
    assert reported(master) == [
        ("checkpoint_started", storage_id),
        ("checkpoint", storage_id),
        ("checkpoint_started", lost),
        ("checkpoint_abandoned", lost),
    ]
    first, done = master.bodies_of("checkpoint_started")[0], master.bodies_of("checkpoint")[0]
    assert first["storage"] == done["storage"]


def test_what_cannot_be_thrown_away_stays_announced(
    trial: Path, master: TaskMaster, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the master finds it later."""

    def broken(*_: object) -> None:
        raise OSError("the storage is gone")

    with core.init() as context:
        storage = context.checkpoint._storage
        monkeypatch.setattr(storage, "stage", broken)
        monkeypatch.setattr(storage, "abandon", broken)
        with pytest.raises(OSError, match="gone"):
            context.checkpoint.upload(source, {"steps_completed": 1})
    assert [kind for kind, _ in reported(master)] == ["checkpoint_started"]


@pytest.mark.parametrize("way", ["upload", "shard", "store", "store shard"])
def test_a_name_that_no_report_can_say(task: Task, source: Path, way: str) -> None:
    """The error names the file, escaped, and says what to do; nothing is stored or reported."""

    def odd(folder: Path) -> None:
        Path(os.fsdecode(os.fsencode(folder) + b"/model-\xff.bin")).write_bytes(b"1")

    def save() -> None:
        if way.startswith("store"):
            with task.context.store_path({"steps_completed": 1}, shard="shard" in way) as (path, _):
                odd(path)
        else:
            task.context.upload(source, {"steps_completed": 1}, shard=way == "shard")

    odd(source / "sub")
    with pytest.raises(InvalidInput, match=r"file (sub/)?model-\\xff\.bin is not UTF-8, and cannot be .* rename it"):
        save()
    assert task.stored() == []
    assert "checkpoint" not in [record["kind"] for record in task.reported()]


def test_a_temporary_directory_without_room(tmp_path: Path) -> None:
    """Files of a bucket pass through one that nobody has chosen: it is named, with what to do."""
    with pytest.raises(StorageFailed, match=f"no room for .* directory {tmp_path} on .* set TMPDIR") as failed:
        with temporary_place(str(tmp_path / "some")):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert isinstance(failed.value.__cause__, OSError)
    with pytest.raises(KeyError), temporary_place(str(tmp_path)):
        raise KeyError("a mistake of the script's own")
