"""Output in segments: what the supervisor writes is what the agent reads, and a full disk is a gap."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenax.runtime import segments
from tenax.runtime.supervisor import MARKS, Segments


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current directory, as a supervisor has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def read_all(folder: Path, offset: int, limit: int) -> bytes:
    parts = []
    while True:
        first, data = segments.read(folder, "stdout", offset, limit)
        if not data:
            return b"".join(parts)
        assert first == offset
        parts.append(data)
        offset += len(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(sizes=st.lists(st.integers(1, 150_000), max_size=12), limit=st.integers(1000, 300_000), data=st.data())
def test_what_is_written_is_read(folder: Path, sizes: list[int], limit: int, data: st.DataObject) -> None:
    """From any offset, in pieces of any size, however it was cut into segments."""
    for path in folder.iterdir():
        path.unlink()
    writer = Segments("stdout", 64 * 1024 * 1024)
    writer.segment_bytes = 100_000
    whole = b"".join(bytes([number % 256]) * size for number, size in enumerate(sizes))
    start = 0
    for size in sizes:
        writer.write(whole[start : start + size])
        start += size
    offset = data.draw(st.integers(0, len(whole)))
    assert read_all(folder, offset, limit) == whole[offset:]
    assert (writer.offset, writer.dropped) == (len(whole), 0)


def test_a_disk_that_takes_nothing(folder: Path) -> None:
    """What does not fit is dropped and counted, no empty file is left, and what comes later keeps its offset."""
    (folder / f"stdout-{0:020d}").symlink_to("/dev/full")
    writer = Segments("stdout", 1 << 20)
    writer.write(b"lost")
    assert os.listdir(folder) == []
    writer.write(b"kept")
    assert writer.dropped == 4
    assert segments.read(folder, "stdout", 0, 100) == (4, b"kept")


def test_a_directory_that_cannot_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing goes on, since an error here would end the supervisor, and the task with it."""
    writer = Segments("stdout", 30)
    writer.segment_bytes = 10

    def failing(*arguments: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "listdir", failing)
    writer.write(b"0123456789abcdefghijKLM")
    assert (writer.offset, writer.dropped) == (23, 0)


def test_trimming_keeps_what_is_needed(folder: Path) -> None:
    """Only whole segments before the offset go, and never the newest."""
    writer = Segments("stdout", 1 << 20)
    writer.segment_bytes = 10
    writer.write(b"0123456789abcdefghijKLM")
    segments.trim(folder, "stdout", 15)
    assert segments.read(folder, "stdout", 0, 100) == (10, b"abcdefghij")
    segments.trim(folder, "stdout", 10_000)
    assert segments.read(folder, "stdout", 0, 100) == (20, b"KLM")


def test_streams_do_not_mix(folder: Path) -> None:
    """Each stream has its own offsets."""
    Segments("stdout", 1 << 20).write(b"out")
    Segments("stderr", 1 << 20).write(b"err")
    assert segments.read(folder, "stderr", 0, 100) == (0, b"err")
    assert segments.read(folder, "stdout", 3, 100) == (3, b"")


def test_it_is_known_when_a_byte_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a second, and to a hundredth of its age: how old what waits is, and where what came later begins."""
    clock = [1000.0]
    monkeypatch.setattr("tenax.runtime.supervisor.time.monotonic", lambda: clock[0])
    writer = Segments("stdout", 1 << 20)
    assert segments.written(folder, "stdout", 0) == (float("inf"), None)
    for after, text in ((0.0, b"first\n"), (0.5, b"second\n"), (60.0, b"third\n"), (0.2, b"fourth\n")):
        clock[0] += after
        writer.write(text)
    third = len(b"first\nsecond\n")
    assert segments.written(folder, "stdout", 0) == (1000.0, third)
    assert segments.written(folder, "stdout", third - 1) == (1000.0, third)
    assert segments.written(folder, "stdout", third) == (1060.5, None)


def test_the_marks_of_time_are_a_ring(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it runs they take no more room; what is older than the oldest is as old as that."""
    clock = [0.0]
    monkeypatch.setattr("tenax.runtime.supervisor.time.monotonic", lambda: clock[0])
    writer = Segments("stdout", 1 << 20)
    for _ in range(MARKS + 100):
        clock[0] += 2.0
        writer.write(b"x")
    assert (folder.parent / "times-stdout").stat().st_size == MARKS * 16
    assert segments.written(folder, "stdout", 0) == (202.0, 100)
    assert segments.written(folder, "stdout", MARKS + 99)[0] == 2.0 * (MARKS + 100)
