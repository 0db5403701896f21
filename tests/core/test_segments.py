"""Segments: only whole records count, none is lost or doubled, whatever becomes of the writer, its disk or its file."""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

import tenax
from tenax.core.spooling import segment
from tenax.core.spooling.file import SpoolFile, SpoolWriteFailed
from tenax.core.values import MetricsPacker, metrics_body, text_of
from tenax.wire import spool_records
from tenax.wire.spool_names import MAX_LINE_BYTES
from tenax.wire.spool_records import HEAD, MAGIC, SegmentUnknown, read_lines, values_packer
from tests.kits.interpreters import interpreters
from tests.kits.spools import Record, records_of, segment_lines

SOURCE = str(Path(tenax.__file__).parents[1])
METRICS = {f"m{number}": number * 0.5123456 for number in range(10)}


def report(file: SpoolFile, step: int, **more: float) -> None:
    body = MetricsPacker().pack("training", step, {**METRICS, **more})
    assert body is not None
    file.append("metrics", body)


def three_reports(directory: Path) -> Path:
    file = SpoolFile(str(directory), "s", segments=True)
    report(file, 1)
    file.append("progress", '{"progress":0.5}')
    report(file, 3)
    file.close()
    return Path(file.path)


def steps_of(records: list[Record]) -> list[object]:
    return [record["body"]["stepsCompleted"] for record in records]  # type: ignore[index]


@pytest.mark.parametrize(
    "metrics",
    [
        METRICS,
        {"loss": math.nan, "up": math.inf, "down": -math.inf, "zero": -0.0, "tiny": 5e-324, "huge": 1.7e308},
        {"count": 7, "negative": -(2**63), "loss": 1e16, "third": 1 / 3},
        {'quoted "name"': 1.0, "new\nline": 2.0, "\0": 3.0, "größe": 4, "\ud800": 5, "": 6},
    ],
)
@pytest.mark.parametrize("group", ["training", 'my "group" é'])
def test_packed_is_what_is_written_otherwise(group: str, metrics: dict[str, float]) -> None:
    """A packed report becomes the same text, to the last digit, as one that is not packed."""
    packed = MetricsPacker().pack(group, 12, metrics)
    assert packed is not None
    assert text_of(packed) == metrics_body(group, 12, metrics)


@pytest.mark.parametrize(
    ("steps", "metrics"),
    [
        (1, {"loss": True}),
        (1, {"loss": None}),
        (1, {"loss": "text"}),
        (1, {"loss": [1.0]}),
        (1, {1: 1.0}),
        (1, {"loss": 2**63}),
        (1, {}),
        (2**63, {"loss": 1.0}),
        (-1, {"loss": 1.0}),
        (True, {"loss": 1.0}),
        (1.5, {"loss": 1.0}),
        (1, [("loss", 1.0)]),
    ],
)
def test_what_cannot_be_packed_is_left_to_text(steps: object, metrics: dict[str, object]) -> None:
    """Also right after one of the same names that could be."""
    packer = MetricsPacker()
    assert packer.pack("training", 1, {"loss": 1.0}) is not None
    assert packer.pack("training", steps, metrics) is None


def test_packing_follows_names_and_types() -> None:
    """Reports of one group may change theirs at each step."""
    packer = MetricsPacker()
    for metrics in ({"a": 1.0}, {"b": 1.0}, {"a": 1}, {"a": 1.0, "b": 2}, {"b": 2, "a": 1.0}):
        packed = packer.pack("training", 1, metrics)
        assert packed is not None
        assert json.loads(text_of(packed))["metrics"] == metrics
        assert list(json.loads(text_of(packed))["metrics"]) == list(metrics)


WRITER = """
import mmap, os, sys
from tenax.core.spooling.file import SpoolFile
from tenax.core.values import MetricsPacker

with open(sys.argv[2], "r+b") as counter:
    done = memoryview(mmap.mmap(counter.fileno(), 8)).cast("Q")
file, packer, step = SpoolFile(sys.argv[1], "s", segments=True), MetricsPacker(), 0
print("ready", flush=True)
while True:
    step += 1
    if step % 7:
        file.append("metrics", packer.pack("training", step, {f"m{i}": step + i / 7 for i in range(step % 13 + 1)}))
    else:
        file.append("metrics", '{"stepsCompleted":%d,"metrics":{"m0":"%s"}}' % (step, "x" * (step % 5000)))
    done[0] = step
"""


@pytest.mark.parametrize("python", interpreters())
def test_kill_at_any_moment(tmp_path: Path, python: str) -> None:
    """Twenty writers are killed: each report that had returned is there, at most the next one besides, all whole."""
    rng = random.Random(12)
    for number in range(20):
        directory, counter = tmp_path / str(number), tmp_path / f"{number}.count"
        counter.write_bytes(bytes(8))
        command = [python, "-c", WRITER, str(directory), str(counter)]
        env = {**os.environ, "PYTHONPATH": SOURCE}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            enough = rng.randrange(1, 3_000)
            while int.from_bytes(counter.read_bytes(), "little") < enough:
                assert writer.poll() is None
            writer.send_signal(signal.SIGKILL)
        done = int.from_bytes(counter.read_bytes(), "little")
        records = records_of(directory / "s.records")
        assert len(records) in (done, done + 1)
        assert [record["n"] for record in records] == list(range(1, len(records) + 1)) == steps_of(records)
        for record in records:
            step, metrics = record["n"], record["body"]["metrics"]  # type: ignore[index]
            assert isinstance(step, int)
            assert metrics == (
                {f"m{i}": step + i / 7 for i in range(step % 13 + 1)} if step % 7 else {"m0": "x" * (step % 5000)}
            )


def test_cut_anywhere(tmp_path: Path) -> None:
    """Of a file that was cut, the records before the cut are there, and nothing else."""
    path = three_reports(tmp_path)
    content, lines = path.read_bytes(), segment_lines(path)
    ends = read_lines(lambda at, length: content[at : at + length], 0, 0, len(content)).ends
    for size in range(len(MAGIC), len(content)):
        path.write_bytes(content[:size])
        # A record is padded to a multiple of 8: what is missing of that is nothing.
        expected = [line for line, end in zip(lines, ends, strict=True) if content[size:end].strip(b"\0") == b""]
        assert segment_lines(path) == expected


def test_torn_anywhere(tmp_path: Path) -> None:
    """The last record counts neither without its mark, nor with its mark and without one of its bytes."""
    path = three_reports(tmp_path)
    content, lines = path.read_bytes(), segment_lines(path)
    last = read_lines(lambda at, length: content[at : at + length], 0, 0, len(content)).ends[1]
    for size in range(last, len(content)):
        path.write_bytes(content[:last] + bytes(8) + content[last + 8 : size] + bytes(70_000))
        assert segment_lines(path) == lines[:2]
    for lost in range(last + 8, len(content)):
        if content[lost]:
            path.write_bytes(content[:lost] + b"\0" + content[lost + 1 :] + bytes(70_000))
            assert segment_lines(path) == lines[:2]


def test_any_bit_that_flips(tmp_path: Path) -> None:
    """A damaged record is taken for none, and its number by a line that no master takes; the others stay whole."""
    path = three_reports(tmp_path)
    content, lines = path.read_bytes(), segment_lines(path)
    ends = read_lines(lambda at, length: content[at : at + length], 0, 0, len(content)).ends
    damaged = json.dumps({"n": 2, "kind": "damaged on its disk", "at": 0, "body": {}}, separators=(",", ":"))
    for bit in range(ends[0] * 8, ends[1] * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        is_padding = content[bit // 8 : ends[1]].strip(b"\0") == b""
        assert segment_lines(path) == (lines if is_padding else [lines[0], damaged.encode(), lines[2]])


def test_page_that_is_lost(tmp_path: Path) -> None:
    """After a power cut a page may be missing: what stands behind it is found, with its numbers, across windows."""
    file = SpoolFile(str(tmp_path), "s", segments=True)
    for step in range(1, 1001):
        report(file, step)
    file.close()
    path = Path(file.path)
    content = path.read_bytes()
    path.write_bytes(content[:40960] + bytes(49152) + content[90112:])
    records = records_of(path)
    assert [record["n"] for record in records] == list(range(1, 1001))
    whole = [record for record in records if record["kind"] == "metrics"]
    assert steps_of(whole) == [record["n"] for record in whole]
    assert 1000 - 49152 // 150 < len(whole) < 1000


def test_damage_of_more_reports_than_a_batch_has_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it the others are found, wherever a batch ends or whoever ships it begins again."""
    monkeypatch.setattr(spool_records, "BATCH_BYTES", 1000)
    file = SpoolFile(str(tmp_path), "s", segments=True)
    for _ in range(2000):
        file.append("progress", '{"progress":0.5}')
    file.close()
    path = Path(file.path)
    content = path.read_bytes()
    size = (len(content) - len(MAGIC)) // 2000
    for first in (len(MAGIC), len(MAGIC) + 3 * size, len(MAGIC) + 700 * size):
        path.write_bytes(content[:first] + bytes(1000 * size) + content[first + 1000 * size :])
        records = records_of(path)
        assert [record["n"] for record in records] == list(range(1, 2001))
        assert [record["kind"] for record in records].count("progress") == 1000


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (b'"kind":"progress","body":{\n}', 1.0),
        (b'"kind":"progress","body":{\r}', 1.0),
        (b'"kind":"progress","body":{}}\n{"n":3,"kind":"progress","at":1,"body":{}', 1.0),
        (b'"kind":"progress","body":{}', math.nan),
        (b'"kind":"progress","body":{}', math.inf),
        (values_packer(b'"a\n"\0"b"', "d")(1, 1, 8, 3, b'"a\n"\0"b"d', 1.0), 1.0),
    ],
)
def test_a_record_is_one_line(body: bytes, at: float) -> None:
    """What a task puts between the right marks makes neither two of it, nor one that nobody can read."""
    content = MAGIC
    for n, text in ((1, b'"kind":"progress","body":{}'), (2, body), (3, b'"kind":"progress","body":{}')):
        data = HEAD.pack(n, at if n == 2 else 1.0) + text
        content += (struct.pack("<II", len(data), zlib.crc32(data)) + data).ljust(-(-(8 + len(data)) // 8) * 8, b"\0")
    batch = read_lines(lambda at, length: content[at : at + length], 0, 0, len(content))
    assert len(batch.ends) == 3
    records = [json.loads(line) for line in batch.data.splitlines()]
    assert [(record["n"], record["kind"]) for record in records] == [
        (1, "progress"),
        (2, "unreadable"),
        (3, "progress"),
    ]


def test_nonsense_is_no_record(tmp_path: Path) -> None:
    """Random bytes behind the beginning, a beginning of another release, no beginning at all."""
    path = tmp_path / "s.records"
    path.write_bytes(MAGIC + random.Random(3).randbytes(200_000))
    assert segment_lines(path) == []
    path.write_bytes(b"TNXSPL9\n" + bytes(1000))
    with pytest.raises(SegmentUnknown, match="another release"):
        segment_lines(path)
    path.write_bytes(b"")
    assert segment_lines(path) == []


def test_a_file_of_holes_takes_little_memory(tmp_path: Path) -> None:
    """A task makes one of a terabyte with one call, and the agent looks into it, as root."""
    path = three_reports(tmp_path)
    os.truncate(path, 2**40)
    pieces: list[int] = []
    with path.open("rb") as file:

        def read(offset: int, length: int) -> bytes:
            pieces.append(length)
            return os.pread(file.fileno(), length, offset)

        assert len(read_lines(read, 0, 0, 2**40).ends) == 3
    assert max(pieces) <= 8 + MAX_LINE_BYTES
    assert sum(pieces) <= 3 * MAX_LINE_BYTES


def test_what_only_looks_like_records_is_soon_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long ones with a right number, at each place: the checksum of each would be made for hours."""
    checked: list[int] = []

    def crc32(data: bytes) -> int:
        checked.append(len(data))
        return 0

    monkeypatch.setattr(spool_records.zlib, "crc32", crc32)
    length = 20 * 2**20
    content = MAGIC + struct.pack("<IIQ", length, 1, 1) * (length // 8)
    assert read_lines(lambda at, size: content[at : at + size], 0, 0, len(content)).ends == []
    assert sum(checked) <= 8 * MAX_LINE_BYTES


@pytest.mark.parametrize("refusal", ["fallocate", "mmap", "no fallocate"])
def test_file_systems_without_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    """Where room cannot be allocated, or not be mapped, lines are written."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP if refusal == "fallocate" else errno.ENODEV, "refused")

    if refusal == "mmap":
        monkeypatch.setattr(mmap, "mmap", refused)
    elif refusal == "fallocate":
        monkeypatch.setattr(os, "posix_fallocate", refused)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
    file = SpoolFile(str(tmp_path), segments=True)
    report(file, 1)
    file.append("progress", '{"progress":0.5}')
    assert os.listdir(tmp_path) == [f"{file.name}.jsonl"]
    assert [record["kind"] for record in records_of(file.path)] == ["metrics", "progress"]
    file.close()


FULL = """
import resource, sys
from tenax.core.spooling.file import SpoolFile, SpoolWriteFailed
from tenax.core.values import MetricsPacker

soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
file, packer, step = SpoolFile(sys.argv[1], "s", segments=True), MetricsPacker(), 0
while True:
    step += 1
    try:
        file.append("metrics", packer.pack("training", step, {"loss": 1 / step}))
    except SpoolWriteFailed as error:
        print(step, error)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
file.append("metrics", packer.pack("training", step, {"loss": 1 / step}))
"""


def test_no_room_is_an_error_in_words(tmp_path: Path) -> None:
    """Not a signal that kills the process; what was written stands, and goes on without a gap once there is room."""
    env = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    step, message = done.stdout.split(" ", 1)
    assert f"a report could not be written to {tmp_path}/s.records: [Errno {errno.EFBIG}]" in message
    records = records_of(tmp_path / "s.records")
    assert steps_of(records) == list(range(1, int(step) + 1))
    assert int(step) > 1000


def test_nearly_full_disk_is_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for all that is allocated ahead, the room that a record needs is taken."""
    monkeypatch.setattr(segment, "_FIRST_ROOM", 65536)
    file = SpoolFile(str(tmp_path), "s", segments=True)
    real, room = os.posix_fallocate, [3 * 65536]

    def small(fd: int, offset: int, length: int) -> None:
        if offset + length > room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(fd, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", small)
    written = 0
    while file.written_offset < 3 * 65536 - 400:
        written += 1
        report(file, written)
    with pytest.raises(SpoolWriteFailed, match="No space left on device"):
        file.append("metrics", json.dumps("x" * 500))
    assert file.written_offset > 3 * 65536 - 400
    room[0] *= 2
    report(file, written + 1)
    assert steps_of(records_of(file.path)) == list(range(1, written + 2))
    file.close()


def test_read_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reader sees whole records alone, each once and in order, over many windows."""
    monkeypatch.setattr(segment, "_LATER_ROOM", 65536)
    file = SpoolFile(str(tmp_path), "s", segments=True)
    report(file, 1)
    count = 5_000

    def write() -> None:
        for step in range(2, count + 1):
            report(file, step)

    thread = threading.Thread(target=write)
    thread.start()
    steps: list[object] = []
    fd = os.open(file.path, os.O_RDONLY)
    n = offset = 0
    while n < count:
        alive = thread.is_alive()
        batch = read_lines(lambda at, length: os.pread(fd, length, at), n, offset, os.fstat(fd).st_size)
        assert batch.ends or alive
        steps += steps_of([json.loads(line) for line in batch.data.splitlines()])
        n, offset = n + len(batch.ends), batch.ends[-1] if batch.ends else offset
        assert not batch.damaged
    thread.join()
    os.close(fd)
    assert steps == list(range(1, count + 1))
    file.close()
    assert os.path.getsize(file.path) == offset


def test_fork_leaves_the_parents_segment(tmp_path: Path) -> None:
    """What the child reports is in a file of its own, and the parent's goes on."""
    file = SpoolFile(str(tmp_path), segments=True)
    report(file, 1)
    child = os.fork()
    if child == 0:
        try:
            file.forget()
            report(file, 100)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    report(file, 2)
    file.close()
    steps = sorted(steps_of(records_of(path)) for path in tmp_path.iterdir())  # type: ignore[type-var]
    assert steps == [[1, 2], [100]]


def test_room_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed segment has no more than what was written; a record longer than a window has a larger one."""
    monkeypatch.setattr(spool_records, "BATCH_BYTES", 1000)
    file = SpoolFile(str(tmp_path), "s", segments=True)
    report(file, 1)
    assert os.path.getsize(file.path) == 65536
    file.append("metrics", json.dumps({"stepsCompleted": 2, "text": "x" * 3_000_000}))
    report(file, 3)
    file.close()
    assert os.path.getsize(file.path) == file.written_offset
    assert steps_of(records_of(file.path)) == [1, 2, 3]


def test_durable_records_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to outlive a power cut is on the disk when the call returns."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    file = SpoolFile(str(tmp_path), "s", segments=True)
    report(file, 1)
    assert synced == []
    file.append("early_exit", "{}", durable=True)
    assert len(synced) == 1
    file.close()
