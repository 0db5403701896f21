"""Files that checkpoints in a bucket have in common, stored once: on servers of each protocol, and step by step."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tenax import core
from tenax.storage import objects
from tenax.storage.manifest import StoredFiles, contents_of
from tenax.storage.objects import ObjectStorage
from tenax.storage.port import CheckpointDamaged, CheckpointMissing, StorageFailed
from tests.kits.object_places import EMULATOR, PLACES, PREFIX, ObjectPlace

ONE, TWO, THREE = (f"{number * 8}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for number in "123")
#: Files of a model, each large enough to be shared.
LAYERS = [f"layers/{number}.bin" for number in range(10)]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """One of each protocol, by the type of a section."""
    with ExitStack() as stack:
        yield {kind: stack.enter_context(serve()) for kind, (serve, _) in PLACES.items()}


@pytest.fixture(params=PLACES)
def place(servers: dict[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ObjectPlace:
    monkeypatch.setenv(EMULATOR, servers["gcs"])
    return PLACES[request.param][1](servers[request.param])


def shared(place: ObjectPlace) -> list[str]:
    """The files that lie where checkpoints share them."""
    return [name for name in place.objects.names() if name.startswith(f"{PREFIX}/.shared/") and name.endswith("/data")]


def saved(context: core.Context, steps: int, changed: int) -> str:
    """A checkpoint of ten layers, of which one says the step."""
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid):
        (path / "layers").mkdir()
        for number, name in enumerate(LAYERS):
            (path / name).write_bytes(bytes([number, steps if number == changed else 0]) * 50_000)
    return uuid


def sharing(place: ObjectPlace) -> core.Context:
    """A script whose operator has chosen it."""
    context = core.init(checkpoint_storage=place.at())
    context.checkpoint.storage.share_unchanged()
    return context


def test_what_did_not_change_is_stored_once(place: ObjectPlace, tmp_path: Path) -> None:
    """Each checkpoint is whole, with the sizes of all its files; each outlives the other; nothing is left of both."""
    with sharing(place) as context:
        first, second = saved(context, 1, changed=3), saved(context, 2, changed=3)
        storage = context.checkpoint.storage
        assert len(shared(place)) == 11
        for uuid in (first, second):
            files = storage.list_files(uuid)
            assert {name: files.get(name) for name in LAYERS} == dict.fromkeys(LAYERS, 100_000)
            assert not [name for name in files if "tenax-files" in name]
        storage.delete(first)
        assert len(shared(place)) == 10
        with context.checkpoint.restore_path(second) as path:
            assert [(path / name).read_bytes()[:2] for name in LAYERS] == [bytes([n, 2 * (n == 3)]) for n in range(10)]
        # Whoever reads it needs not to have chosen anything.
        place.opened().download(second, str(tmp_path / "back"))
        assert (tmp_path / "back" / LAYERS[3]).read_bytes() == bytes([3, 2]) * 50_000
        storage.delete(second)
    assert place.objects.names() == []


def test_it_goes_on_with_what_was_restored(place: ObjectPlace) -> None:
    """A trial that was paused, continued or forked shares what it started from, which may be deleted then."""
    with sharing(place) as context:
        first = saved(context, 1, changed=3)
    with sharing(place) as context:
        with context.checkpoint.restore_path(first):
            pass
        second = saved(context, 2, changed=3)
        assert len(shared(place)) == 11
        context.checkpoint.storage.delete(first)
        with context.checkpoint.restore_path(second) as path:
            assert (path / LAYERS[0]).read_bytes() == bytes([0, 0]) * 50_000


def test_a_damaged_file_is_found(place: ObjectPlace) -> None:
    """By what the manifest of each checkpoint that has it says."""
    with sharing(place) as context:
        first, second = saved(context, 1, changed=3), saved(context, 2, changed=3)
        held = [name for name in place.objects.names() if name.endswith(f"/for-{first}")]
        common = next(name for name in held if name.replace(first, second) in place.objects.names())
        context.checkpoint.storage._bucket.write(common.replace(f"for-{first}", "data"), b"x" * 100_000)
        for uuid in (first, second):
            with pytest.raises(CheckpointDamaged, match=r"what is in layers/\d\.bin has changed"):
                with context.checkpoint.restore_path(uuid):
                    pass


@pytest.mark.parametrize("damage", ["shortened", "gone", "index", "no index"])
def test_what_was_damaged_meanwhile_is_not_shared(place: ObjectPlace, damage: str) -> None:
    """The next checkpoint is saved, and whole: the script has the files."""
    with sharing(place) as context:
        first, bucket = saved(context, 1, changed=3), context.checkpoint.storage._bucket
        index = next(name for name in place.objects.names() if name.startswith(f"{PREFIX}/{first}/.tenax-files/writer"))
        damaged = index if "index" in damage else shared(place)[0]
        if damage in ("shortened", "index"):
            bucket.write(damaged, b"{")
        else:
            bucket.delete([damaged])
        second = saved(context, 2, changed=3)
        with context.checkpoint.restore_path(second) as path:
            assert [(path / name).read_bytes()[:2] for name in LAYERS] == [bytes([n, 2 * (n == 3)]) for n in range(10)]


def test_other_clients_are_refused_in_words(place: ObjectPlace, tmp_path: Path) -> None:
    """One that takes all objects below a checkpoint for its files fails at the first of them, and says what to do."""
    with sharing(place) as context:
        uuid = saved(context, 1, changed=3)
    [first, *_] = sorted(name for name in place.objects.names() if name.startswith(f"{PREFIX}/{uuid}/"))
    target = tmp_path / first.removeprefix(f"{PREFIX}/{uuid}/")
    target.parent.mkdir()
    with pytest.raises(
        OSError, match=r"File name too long: .*shares files with others.*tenax checkpoint download UUID"
    ):
        target.write_bytes(b"")


def test_without_the_choice_nothing_is_shared(place: ObjectPlace) -> None:
    """Each checkpoint is a tree of objects, as Determined has it."""
    with core.init(checkpoint_storage=place.at()) as context:
        first, second = saved(context, 1, changed=3), saved(context, 2, changed=3)
    names = place.objects.names()
    assert {f"{PREFIX}/{uuid}/{name}" for uuid in (first, second) for name in LAYERS} <= set(names)
    assert not [name for name in names if "shared" in name]


def test_an_upload_that_was_killed(place: ObjectPlace, tmp_path: Path) -> None:
    """It is no checkpoint; thrown away, it leaves the one that it shared files with as it was."""
    with sharing(place) as context:
        first = saved(context, 1, changed=3)
    before = place.objects.names()
    program = (
        "import os\n"
        "from tenax.storage import registry\n"
        "from tenax.storage.manifest import StoredFiles, contents_of\n"
        f"LAYERS = {LAYERS!r}\n"
        f"storage = registry.from_config({place.at()!r})\nstorage.share_unchanged()\n"
        f"storage.download({first!r}, {str(tmp_path)!r})\n"
        f"contents = contents_of({str(tmp_path)!r}, LAYERS)\n"
        f"earlier = StoredFiles({first!r}, contents, None)\n"
        f"assert storage.reuse({TWO!r}, {str(tmp_path)!r}, earlier, earlier.shared(contents)) == set(LAYERS)\n"
        f"storage.stage({TWO!r}, {str(tmp_path)!r}, LAYERS[:5])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    assert len(place.objects.names()) > len(before)
    storage = place.opened()
    with pytest.raises(CheckpointMissing):
        storage.list_files(TWO)
    assert storage.delete(TWO) == {}
    storage.abandon(TWO)
    assert place.objects.names() == before


def test_files_that_are_trimmed(place: ObjectPlace, tmp_path: Path) -> None:
    """Of one checkpoint alone: the other one has them still."""
    with sharing(place) as context:
        first, second = saved(context, 1, changed=3), saved(context, 2, changed=3)
        storage = context.checkpoint.storage
        left = storage.delete(first, ["layers/[0-4].bin"])
        assert [name for name in LAYERS if name in left] == LAYERS[5:]
        assert [name for name in LAYERS if name in place.opened().list_files(first)] == LAYERS[5:]
        # That of step 1 was its alone.
        assert len(shared(place)) == 10
        with context.checkpoint.restore_path(second):
            pass
        storage.delete(second)
        assert len(shared(place)) == 5
        storage.delete(first)
    assert place.objects.names() == []


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (b"{", "does not say which files are shared"),
        (b'{"files": {"a": ["../../secret", 1]}, "held": []}', "names '../../secret', which is no shared file"),
        (b'{"files": {"../a": ["' + b"0" * 32 + b'", 1]}, "held": []}', "not a path inside a checkpoint"),
    ],
)
def test_an_index_of_somebody_else(place: ObjectPlace, index: bytes, says: str) -> None:
    """Whoever may write into a bucket leads nobody out of it."""
    place.objects.add(f"{PREFIX}/{ONE}/.tenax-files/1.json", index)
    with pytest.raises(StorageFailed, match=says):
        place.opened().list_files(ONE)


class _Killed(BaseException):
    """A process is not there any more."""


class MemoryBucket:
    """Objects in memory; ``step`` is called before anything is done."""

    patient = True

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.step: Callable[[], None] = lambda: None

    def write(self, key: str, data: bytes) -> None:
        self.step()
        self.objects[key] = data

    def read(self, key: str) -> bytes | None:
        self.step()
        return self.objects.get(key)

    def upload(self, key: str, path: str) -> None:
        self.write(key, Path(path).read_bytes())

    def download(self, key: str, path: str) -> None:
        self.step()
        if key not in self.objects:
            raise objects.ObjectGone("a file is not there any more", "")
        Path(path).write_bytes(self.objects[key])

    def read_part(self, key: str, start: int, size: int) -> bytes:
        self.step()
        return self.objects[key][start : start + size]

    def entries(self, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        self.step()
        return [(key, len(self.objects[key])) for key in sorted(self.objects) if key.startswith(prefix)][:limit]

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.step()
            self.objects.pop(key, None)

    def forget_uploads(self, prefix: str) -> None:
        self.step()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory with one file: all is done in one thread."""
    monkeypatch.setattr(objects, "_SHARED_FROM", 1)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/model.bin").write_bytes(b"weights")
    return str(tmp_path / "source")


def opened(bucket: MemoryBucket) -> ObjectStorage:
    storage = ObjectStorage(bucket, "p", identity={}, label="memory")
    storage.waits_for_s = 0.0
    storage.share_unchanged()
    return storage


def store(bucket: MemoryBucket, source: str, storage_id: str, earlier: str | None = None) -> None:
    """A checkpoint with the file, which ``earlier`` may have, too."""
    storage, contents = opened(bucket), contents_of(source, ["model.bin"])
    reused = set()
    if earlier is not None:
        known = StoredFiles(earlier, contents, None)
        reused = storage.reuse(storage_id, source, known, known.shared(contents))
    storage.stage(storage_id, source, [path for path in ("model.bin",) if path not in reused])
    storage.stage_bytes(storage_id, "metadata.json", b"{}")
    storage.commit(storage_id)


def remove(bucket: MemoryBucket, storage_id: str) -> None:
    """As a task that deletes does it."""
    storage = opened(bucket)
    if not storage.delete(storage_id):
        storage.abandon(storage_id)


def check_whole(bucket: MemoryBucket, tmp_path: Path) -> set[str]:
    """All checkpoints that are there have their file; which they are."""
    there = set()
    for storage_id in (ONE, TWO, THREE):
        with suppress(CheckpointMissing):
            opened(bucket).download(storage_id, str(tmp_path / "back"))
            assert (tmp_path / "back/model.bin").read_bytes() == b"weights"
            (tmp_path / "back/model.bin").unlink()
            there.add(storage_id)
    return there


def check_nothing_is_left(bucket: MemoryBucket) -> None:
    for storage_id in (ONE, TWO, THREE):
        remove(bucket, storage_id)
    assert bucket.objects == {}


def test_ranks_that_write_together(source: str, tmp_path: Path) -> None:
    """Each has an index of its own; a part that is staged again replaces what it was, which goes."""
    bucket = MemoryBucket()
    ranks = [opened(bucket), opened(bucket)]
    for rank, storage in enumerate(ranks):
        for content in (b"before", b"weights of %d" % rank):
            Path(source, f"{rank}.bin").write_bytes(content)
            storage.stage(ONE, source, [f"{rank}.bin"])
    ranks[0].commit(ONE)
    assert len([key for key in bucket.objects if key.endswith("/data")]) == 2
    opened(bucket).download(ONE, str(tmp_path / "back"))
    assert [(tmp_path / f"back/{rank}.bin").read_bytes() for rank in (0, 1)] == [b"weights of 0", b"weights of 1"]
    check_nothing_is_left(bucket)


@pytest.mark.parametrize("work", ["store", "remove"])
def test_killed_at_each_step(source: str, tmp_path: Path, work: str) -> None:
    """Whoever is killed, wherever: no checkpoint lacks a file, and what is thrown away leaves nothing."""
    killed = 0
    for at in range(100):
        bucket = MemoryBucket()
        store(bucket, source, ONE)
        store(bucket, source, THREE, ONE)
        left = [at]

        def step(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise _Killed

        bucket.step = step
        try:
            store(bucket, source, TWO, ONE) if work == "store" else remove(bucket, ONE)
        except _Killed:
            killed += 1
        ended = left[0] >= 0
        bucket.step = lambda: None
        there = check_whole(bucket, tmp_path)
        assert THREE in there
        if work == "store":
            assert ONE in there
            assert (TWO in there) or not ended
        check_nothing_is_left(bucket)
        if ended:
            break
    assert killed > 8


class _Turns:
    """Two workers, of which one at a time takes a step, in an order that ``rng`` chooses."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self._rng = rng
        self._running = set(range(count))
        self._changed = threading.Condition()
        self._turn = rng.choice(sorted(self._running))
        self._mine = threading.local()

    def work(self, number: int, job: Callable[[], None], failures: list[BaseException]) -> None:
        self._mine.number = number
        try:
            job()
        except BaseException as error:
            failures.append(error)
        with self._changed:
            self._running.discard(number)
            self._next()

    def step(self) -> None:
        number = self._mine.number
        with self._changed:
            assert self._changed.wait_for(lambda: self._turn == number, 240.0)
            self._next()

    def _next(self) -> None:
        if self._running:
            self._turn = self._rng.choice(sorted(self._running))
        self._changed.notify_all()


@pytest.mark.parametrize("seed", range(150))
def test_in_any_order(source: str, tmp_path: Path, seed: int) -> None:
    """One shares a file while another deletes the last checkpoints that have it: no checkpoint lacks a file."""
    rng = random.Random(seed)
    bucket = MemoryBucket()
    store(bucket, source, ONE)
    jobs: list[Callable[[], None]] = [lambda: store(bucket, source, TWO, ONE), lambda: remove(bucket, ONE)]
    if seed % 3 == 0:
        jobs.append(lambda: store(bucket, source, THREE, ONE))
    if seed % 3 == 1:
        store(bucket, source, THREE, ONE)
        jobs.append(lambda: remove(bucket, THREE))
    turns, failures = _Turns(rng, len(jobs)), []  # type: ignore[var-annotated]
    bucket.step = turns.step
    threads = [threading.Thread(target=turns.work, args=(at, job, failures)) for at, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    bucket.step = lambda: None
    assert failures == []
    assert TWO in check_whole(bucket, tmp_path)
    check_nothing_is_left(bucket)
