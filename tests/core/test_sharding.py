"""One checkpoint from many ranks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax.core.checkpoint import CheckpointContext
from tenax.core.distributed import DistributedContext
from tenax.core.modes import DownloadMode
from tenax.core.sharding import OtherRankFailed, ShardConflict, merge_metadata
from tenax.core.spool import Spool
from tenax.core.spooling.file import SpoolFile
from tenax.errors import InvalidInput, NotNow
from tenax.storage.local_directory import from_directory
from tenax.storage.port import Storage
from tenax.wire.spool_names import MANIFEST_FILE
from tests.kits.object_store import ObjectStore
from tests.kits.ranks import on_ranks

Work = Callable[[DistributedContext, CheckpointContext], object]


class Job:
    """Ranks with one storage; each rank's reports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.base = root / "storage"
        self.storage: Storage = from_directory(str(self.base))

    def run(self, work: Work, size: int = 3) -> list[object]:
        def rank_main(distributed: DistributedContext) -> object:
            spool = Spool(SpoolFile(str(self.root / f"spool-{distributed.rank}"), "reports"), None, "", "")
            return work(distributed, CheckpointContext(self.storage, spool, distributed, None, needs_steps=True))

        return on_ranks(rank_main, size)

    def reports(self) -> list[dict[str, object]]:
        return [json.loads(line) for path in sorted(self.root.glob("spool-*/*")) for line in path.open()]

    def content(self, storage_id: object) -> dict[str, str]:
        place = self.base / str(storage_id)
        files = [path for path in place.rglob("*") if path.is_file() and path.name != MANIFEST_FILE]
        return {str(path.relative_to(place)): path.read_text() for path in files}

    def directory(self, rank: int, **files: str) -> str:
        place = self.root / f"rank-{rank}"
        place.mkdir(exist_ok=True)
        for name, text in files.items():
            (place / name).write_text(text)
        return str(place)


@pytest.fixture(params=[True, False], ids=["in place", "object store"])
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Job:
    job = Job(tmp_path)
    if not request.param:
        job.storage = ObjectStore(str(job.base), identity={}, label="objects")
    return job


def test_union(job: Job) -> None:
    """The checkpoint is the union of what ranks bring; it is reported once, and all ranks get its id."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        rank = distributed.rank
        directory = None if rank == 2 else job.directory(rank, **{f"shard{rank}": str(rank), "same": "equal"})
        return checkpoint.upload(directory, {"steps_completed": 5, "ranks": {str(rank): rank}}, shard=True)

    ids = job.run(work)
    assert len(set(ids)) == 1
    content = job.content(ids[0])
    assert {name: text for name, text in content.items() if name != "metadata.json"} == {
        "shard0": "0",
        "shard1": "1",
        "same": "equal",
    }
    (report,) = job.reports()
    body = report["body"]
    assert isinstance(body, dict)
    assert body["metadata"] == {"steps_completed": 5, "ranks": {"0": 0, "1": 1, "2": 2}}
    assert set(body["resources"]) == {"shard0", "shard1", "same", "metadata.json", MANIFEST_FILE}


def test_shared_directory(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that name one directory, by whatever path, store it once, from the lowest of them."""
    shared = job.directory(0, a="1", b="2")
    os.symlink(shared, job.root / "other-name")
    staged: list[list[str]] = []
    real = job.storage.stage

    def counting(storage_id: str, source: str, paths: dict[str, int]) -> None:
        staged.append(sorted(paths))
        real(storage_id, source, paths)

    monkeypatch.setattr(job.storage, "stage", counting)
    ids = job.run(
        lambda distributed, checkpoint: checkpoint.upload(
            shared if distributed.rank else str(job.root / "other-name"), {"steps_completed": 1}, shard=True
        )
    )
    assert set(job.content(ids[0])) == {"a", "b", "metadata.json"}
    assert staged == [["a", "b"]]


def test_selectors_in_a_shared_directory(job: Job) -> None:
    """With selectors, ranks share out one directory among themselves."""
    shared = job.directory(0, f0="0", f1="1", f2="2", rest="r")
    ids = job.run(
        lambda distributed, checkpoint: checkpoint.upload(
            shared, {"steps_completed": 1}, shard=True, selector=lambda path: path == f"f{distributed.rank}"
        )
    )
    assert set(job.content(ids[0])) == {"f0", "f1", "f2", "metadata.json"}


def test_conflicting_files(job: Job) -> None:
    """Different files under one name are an error on all ranks, and nothing is stored."""
    results = job.run(
        lambda distributed, checkpoint: checkpoint.upload(
            job.directory(distributed.rank, model=str(distributed.rank)), {"steps_completed": 1}, shard=True
        )
    )
    for result in results:
        assert isinstance(result, ShardConflict)
        assert "'model' on ranks 0, 1, 2" in str(result)
    assert not job.base.exists() or os.listdir(job.base) == []
    assert job.reports() == []


def test_file_against_directory(job: Job) -> None:
    """A file on one rank that is a directory on another is an error on all."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        place = Path(job.directory(distributed.rank))
        (place / "x").mkdir() if distributed.rank else (place / "x").write_text("")
        return checkpoint.upload(str(place), {"steps_completed": 1}, shard=True)

    for result in job.run(work):
        assert isinstance(result, ShardConflict)
        assert "'x' is a file on rank 0 and a directory on rank 1" in str(result)


def test_a_failing_rank(job: Job) -> None:
    """What fails on one rank fails on all, with its words, and nothing is stored."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        directory = job.directory(distributed.rank, x="1") if distributed.rank != 1 else str(job.root / "nowhere")
        return checkpoint.upload(directory, {"steps_completed": 1}, shard=True)

    results = job.run(work)
    assert isinstance(results[1], InvalidInput)
    assert isinstance(results[0], OtherRankFailed)
    assert "rank 1 failed: InvalidInput: the directory of the checkpoint cannot be read" in str(results[0])
    assert isinstance(results[2], OtherRankFailed)
    assert job.reports() == []


def test_missing_steps_fail_on_all(job: Job) -> None:
    """Without ``steps_completed`` on any rank, all ranks fail."""
    results = job.run(
        lambda distributed, checkpoint: checkpoint.upload(
            job.directory(distributed.rank, **{f"f{distributed.rank}": ""}), {}, shard=True
        )
    )
    assert isinstance(results[0], InvalidInput)
    assert isinstance(results[1], OtherRankFailed)


def test_store_path_of_all(job: Job) -> None:
    """With ``store_path(shard=True)`` all ranks write, and one checkpoint comes of it."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        metadata = {"steps_completed": 9} if distributed.rank == 0 else {"extra": distributed.rank % 1}
        with checkpoint.store_path(metadata, shard=True) as (path, storage_id):
            (path / f"shard{distributed.rank}").write_text(str(distributed.rank))
        return storage_id

    ids = job.run(work)
    assert len(set(ids)) == 1
    assert set(job.content(ids[0])) == {"shard0", "shard1", "shard2", "metadata.json"}
    (report,) = job.reports()
    assert report["body"]["metadata"] == {"steps_completed": 9, "extra": 0}  # type: ignore[index]


def test_store_path_with_a_failing_rank(job: Job) -> None:
    """A block that raises on one rank raises on all, and nothing is stored."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        with checkpoint.store_path({"steps_completed": 9}, shard=True) as (path, storage_id):
            (path / f"shard{distributed.rank}").write_text("x")
            if distributed.rank == 2:
                raise ZeroDivisionError("mine")
        return storage_id

    results = job.run(work)
    assert isinstance(results[2], ZeroDivisionError)
    assert "rank 2 failed: ZeroDivisionError: mine" in str(results[0])
    assert job.reports() == []
    assert not job.base.exists() or os.listdir(job.base) == []


def test_shared_download(job: Job) -> None:
    """Ranks of one machine share one download; with NoSharedDownload each makes its own."""
    storage_id = "0d3c2b1a-0000-4000-8000-000000000001"
    job.storage.stage_bytes(storage_id, "x", b"1")
    job.storage.commit(storage_id)

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        with checkpoint.restore_path(storage_id) as path:
            shared = str(path)
            assert (path / "x").read_text() == "1"
        own = job.root / f"own-{distributed.rank}"
        checkpoint.download(storage_id, own, DownloadMode.NoSharedDownload)
        common = job.root / "common"
        checkpoint.download(storage_id, common)
        return shared, (own / "x").read_text(), (common / "x").read_text()

    results = job.run(work)
    assert len(set(results)) == 1
    assert results[0][1:] == ("1", "1")  # type: ignore[index]


def test_failing_download_fails_for_all(job: Job) -> None:
    """A download that fails on the local chief fails on all ranks of the machine."""
    results = job.run(
        lambda _, checkpoint: checkpoint.download("00000000-0000-4000-8000-000000000000", str(job.root / "x"))
    )
    assert "there is no checkpoint" in str(results[0])
    assert isinstance(results[1], OtherRankFailed)
    assert "there is no checkpoint" in str(results[1])


def test_only_the_chief_uploads_alone(job: Job) -> None:
    """Without ``shard`` other ranks are told what to do."""

    def work(distributed: DistributedContext, checkpoint: CheckpointContext) -> object:
        if distributed.rank == 0:
            return None
        return checkpoint.upload(str(job.root), {"steps_completed": 1})

    for result in job.run(work)[1:]:
        assert isinstance(result, NotNow)
        assert "only the chief may upload without shard=True" in str(result)


def test_merge() -> None:
    """Nested metadata is united; the same value twice is fine, two values of one key are not."""
    first = {"a": 1, "nested": {"x": 1}}
    assert merge_metadata([first, None, {"b": 2, "nested": {"y": 2}, "a": 1}]) == {
        "a": 1,
        "b": 2,
        "nested": {"x": 1, "y": 2},
    }
    assert first == {"a": 1, "nested": {"x": 1}}
    with pytest.raises(ShardConflict, match=r"'nested.x' is 2 on rank 1 and 1 on a lower one"):
        merge_metadata([{"nested": {"x": 1}}, {"nested": {"x": 2}}])
