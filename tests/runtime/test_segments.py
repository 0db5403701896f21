"""Output in segments: what the supervisor writes is what the agent reads, and a full disk is a gap."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenax.runtime import segments
from tenax.runtime.supervisor import Segments


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
