"""Checkpoints are held against what was stored, and files that two of them have are stored once."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax import core
from tenax.core.checkpoint import CheckpointContext
from tenax.core.distributed import DistributedContext, DummyDistributedContext
from tenax.core.spool import Spool
from tenax.core.spooling.file import SpoolFile
from tenax.storage.local_directory import from_directory
from tenax.storage.port import CheckpointDamaged
from tests.kits.object_store import ObjectStore
from tests.kits.ranks import on_ranks
from tests.kits.task_master import TaskMaster

STEPS = {"steps_completed": 1}


def context_of(root: Path, distributed: DistributedContext | None = None, in_place: bool = True) -> CheckpointContext:
    """As a new process has it."""
    base = str(root / "storage")
    storage = from_directory(base) if in_place else ObjectStore(base, identity={}, label="objects")
    ranks = distributed or DummyDistributedContext()
    spool = Spool(SpoolFile(str(root / f"spool-{ranks.rank}-{os.urandom(2).hex()}"), "reports"), None, "", "")
    return CheckpointContext(storage, spool, ranks, None, needs_steps=True)


@pytest.fixture
def context(tmp_path: Path) -> CheckpointContext:
    return context_of(tmp_path)


def store(context: CheckpointContext, **files: str) -> str:
    with context.store_path(STEPS) as (path, storage_id):
        for name, text in files.items():
            (path / name).write_text(text)
    return storage_id


def place(tmp_path: Path, storage_id: str, name: str = "") -> Path:
    return tmp_path / "storage" / storage_id / name


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "object store"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda file: file.unlink(), "a is missing"),
        (lambda file: file.write_text("alph"), "a has 4 bytes and had 5"),
        (lambda file: file.write_text("alpHa"), "what is in a has changed"),
        (lambda file: (file.unlink(), file.mkdir()), "a is no file any more"),
        (lambda file: (file.parent / "metadata.json").write_text("{}"), "metadata.json has 2 bytes and had"),
        (lambda file: (file.parent / ".tenax-manifest.json").write_text("{"), "manifest.json or a file cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_not_read(
    tmp_path: Path, in_place: bool, damage: Callable[[Path], object], says: str
) -> None:
    """The message names the file and what to do; who wants it all the same gets it."""
    context = context_of(tmp_path, in_place=in_place)
    storage_id = store(context, a="alpha", b="beta")
    damage(place(tmp_path, storage_id, "a"))
    with pytest.raises(CheckpointDamaged, match=rf"{storage_id} at .*{says}.* Go on from another checkpoint"):
        with context.restore_path(storage_id):
            pass
    with pytest.raises(CheckpointDamaged, match=says):
        context.download(storage_id, tmp_path / "back")
    with context.restore_path(storage_id, verify=False) as path:
        assert (path / "b").read_text() == "beta"


def test_only_what_is_selected_is_verified(tmp_path: Path, context: CheckpointContext) -> None:
    """And the manifest comes along with what it is of alone."""
    storage_id = store(context, a="alpha", b="beta")
    place(tmp_path, storage_id, "a").unlink()
    context.download(storage_id, tmp_path / "some", selector=lambda path: path == "b")
    assert os.listdir(tmp_path / "some") == ["b"]
    with context.restore_path(storage_id, selector=lambda path: path == "b"):
        pass


def test_what_was_trimmed_by_hand_is_not_damaged(tmp_path: Path, context: CheckpointContext) -> None:
    """Nor is what has no manifest, as from another program."""
    storage_id = store(context, a="alpha", b="beta")
    assert sorted(context._storage.delete(storage_id, ["a"])) == ["b", "metadata.json"]
    with context.restore_path(storage_id) as path:
        assert sorted(os.listdir(path)) == ["b", "metadata.json"]


def test_the_checkpoint_to_go_on_from_is_named(trial: Path, master: TaskMaster, tmp_path: Path) -> None:
    """The one of this trial with the most steps."""
    listed = [
        {"uuid": f"other-{steps}", "state": f"STATE_{state}", "metadata": {"steps_completed": steps}}
        for steps, state in ((1, "COMPLETED"), (3, "COMPLETED"), (5, "PARTIALLY_DELETED"), (7, "DELETED"))
    ]
    with core.init(checkpoint_storage=str(tmp_path / "storage")) as context:
        storage_id = store(context.checkpoint, a="alpha")
        master.answers[f"/api/v1/trials/{context.info.trial.trial_id}/checkpoints"] = (  # type: ignore[union-attr]
            200,
            {"checkpoints": [*listed, {"uuid": storage_id, "state": "STATE_COMPLETED", "metadata": STEPS}]},
            {},
        )
        place(tmp_path, storage_id, "a").unlink()
        with pytest.raises(CheckpointDamaged, match=r"Go on from checkpoint other-3 of step 3: delete this"):
            with context.checkpoint.restore_path(storage_id):
                pass


def inodes(tmp_path: Path, storage_id: str) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in place(tmp_path, storage_id).iterdir() if "." not in path.name}


@pytest.mark.parametrize("way", ["store", "upload", "async"])
def test_a_file_that_the_checkpoint_before_has_is_stored_once(tmp_path: Path, way: str) -> None:
    """Under any name; one that has changed is stored anew, and the later checkpoint needs the earlier one no more."""
    context = context_of(tmp_path)

    def save(**files: str) -> str:
        if way == "store":
            return store(context, **files)
        source = tmp_path / os.urandom(4).hex()
        source.mkdir()
        for name, text in files.items():
            (source / name).write_text(text)
        if way == "upload":
            return context.upload(source, STEPS)

        def write(path: Path) -> None:
            for name, text in files.items():
                (path / name).write_text(text)

        return context.store_async(lambda: write, STEPS).wait()

    first, second = save(a="alpha", b="beta", c="gamma"), save(a="alpha", b="betb", d="gamma", e="")
    before, after = inodes(tmp_path, first), inodes(tmp_path, second)
    assert (after["a"], after["d"]) == (before["a"], before["c"])
    assert after["b"] != before["b"]
    context.delete(first)
    with context.restore_path(second) as path:
        assert {name: (path / name).read_text() for name in "abd"} == {"a": "alpha", "b": "betb", "d": "gamma"}
    assert not [name for name in os.listdir(place(tmp_path, second)) if name.endswith(".new")]


def test_a_resumed_run_shares_with_what_it_went_on_from(tmp_path: Path, context: CheckpointContext) -> None:
    """It has verified that by then."""
    first = store(context, a="alpha")
    later = context_of(tmp_path)
    with later.restore_path(first):
        pass
    second = store(later, a="alpha")
    assert inodes(tmp_path, first) == inodes(tmp_path, second)


def replaced_by_a_link(file: Path) -> None:
    outside = file.parents[2] / "outside"
    outside.write_text("alpha")
    file.unlink()
    file.symlink_to(outside)


def rewritten(file: Path) -> None:
    """With the same bytes: somebody has written it in place, and may again."""
    file.write_text("alpha")
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize(
    "change",
    [replaced_by_a_link, rewritten, lambda file: file.chmod(0o600), lambda file: file.unlink(), None],
    ids=["link", "rewritten", "mode", "gone", "refused"],
)
def test_what_is_not_the_file_that_was_stored_is_not_shared(
    tmp_path: Path, context: CheckpointContext, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object] | None
) -> None:
    """Nor where the file system gives no second name: then it is stored again."""
    first = store(context, a="alpha")
    if change is not None:
        change(place(tmp_path, first, "a"))
    else:
        monkeypatch.setattr(os, "link", refuse)
    second = store(context, a="alpha")
    file = place(tmp_path, second, "a")
    assert (file.read_text(), file.is_symlink(), file.stat().st_nlink) == ("alpha", False, 1)
    with context.restore_path(second):
        pass


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_ranks_share_what_they_had(tmp_path: Path) -> None:
    """Each reads a part of one directory, or its own; and the whole is verified."""

    def work(distributed: DistributedContext) -> list[str]:
        context = context_of(tmp_path, distributed)
        ids = []
        for turn in range(2):
            with context.store_path(STEPS if distributed.rank == 0 else None, shard=True) as (path, storage_id):
                (path / f"same{distributed.rank}").write_text("same")
                (path / f"turn{distributed.rank}").write_text(f"turn {turn}")
            ids.append(storage_id)
        own = tmp_path / f"own-{distributed.rank}"
        own.mkdir()
        (own / f"own{distributed.rank}").write_text("own")
        ids += [context.upload(own, STEPS, shard=True) for _ in range(2)]
        return ids

    ids = on_ranks(work, 3)[0]
    assert isinstance(ids, list)
    stored = [inodes(tmp_path, each) for each in ids]
    assert len(stored[0]) == 6
    for name in stored[0]:
        assert (stored[0][name] == stored[1][name]) == name.startswith("same")
    assert stored[2] == stored[3]
    context = context_of(tmp_path)
    for each in ids:
        manifest = json.loads(place(tmp_path, each, ".tenax-manifest.json").read_text())["files"]
        names = {path.name for path in place(tmp_path, each).iterdir()}
        assert set(manifest) == names - {".tenax-manifest.json"}
        with context.restore_path(each):
            pass


def test_a_file_that_is_written_while_it_is_stored_is_not_verified(
    tmp_path: Path, context: CheckpointContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the log of a program that runs on: nobody knows what of it was stored."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "log").write_text("one\n")
    (source / "model").write_text("weights")
    stage = context._storage.stage

    def writing(storage_id: str, directory: str, paths: dict[str, int]) -> None:
        stage(storage_id, directory, paths)
        with (source / "log").open("a") as log:
            log.write("another\n")

    monkeypatch.setattr(context._storage, "stage", writing)
    storage_id = context.upload(source, STEPS)
    manifest = json.loads(place(tmp_path, storage_id, ".tenax-manifest.json").read_text())["files"]
    assert set(manifest) == {"model", "metadata.json"}
    with context.restore_path(storage_id):
        pass
