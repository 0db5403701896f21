"""The files of a task's spool, as an agent reads them that may be root: with the rights of whose they are.

The folder of the container is the agent's, ``run`` in it was given to the task's user by the agent, and below that all
is theirs: ``run/spool`` may be a link by now, and so may each file in it. So ``run`` says who they are, ``run/spool``
is opened once with their rights and no link followed, and every name is looked up in that open folder. Methods run in
threads: such a file may also be one that answers slowly.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from tenax.runtime.users import acting_as, owner_of
from tenax.wire.spool_names import BATCH_BYTES, LINES_SUFFIX, MAX_LINE_BYTES, SEGMENT_SUFFIX, ack_path
from tenax.wire.spool_records import SegmentUnknown, SpoolLines, read_lines

Result = TypeVar("Result")
STREAM_SUFFIXES, ACK_SUFFIX = (LINES_SUFFIX, SEGMENT_SUFFIX), ".ack"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SpoolAck(msgspec.Struct):
    """What the master has: up to which line, and where the next one begins."""

    n: int = 0
    offset: int = 0


class SpoolFolder:
    """``run/spool`` of one container."""

    def __init__(self, path: Path) -> None:
        """Blocking. Raises OSError, also where it is a link."""
        run = os.open(path.parent, _FOLDER)
        try:
            self._who = owner_of(run)
            self._folder = acting_as(self._who, lambda: os.open(path.name, _FOLDER, dir_fd=run))
        finally:
            os.close(run)

    def close(self) -> None:
        os.close(self._folder)

    async def streams(self) -> list[str]:
        """Names of the files that hold reports."""
        return await self._do(_streams)

    async def removed(self) -> dict[str, int]:
        """Files that were removed once the master had them whole, as their acknowledgements say: lines by name."""
        return await self._do(_removed)

    async def ack(self, name: str) -> SpoolAck:
        """Never beyond the end of the file: an ack that claims more is not believed."""
        return await self._do(lambda folder: _ack(folder, name))

    async def write_ack(self, name: str, ack: SpoolAck) -> None:
        """Raises OSError."""
        await self._do(lambda folder: _write_ack(folder, name, ack))

    async def size(self, name: str) -> int:
        """Of a file, in bytes. Raises OSError."""
        return await self._do(lambda folder: os.stat(name, dir_fd=folder, follow_symlinks=False).st_size)

    async def lines(self, name: str, ack: SpoolAck, end: int) -> SpoolLines:
        """Whole lines after ``ack`` and before ``end``, of one batch or one line; none where there is none.

        Raises OSError.
        """
        return await self._do(lambda folder: _lines(folder, name, ack, end))

    async def _do(self, work: Callable[[int], Result]) -> Result:
        # Of its own: a thread that is still at it when its caller was cancelled must not meet another file's number.
        folder = os.dup(self._folder)

        def run() -> Result:
            try:
                return acting_as(self._who, lambda: work(folder))
            finally:
                os.close(folder)

        return await asyncio.to_thread(run)


def _streams(folder: int) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(STREAM_SUFFIXES))


def _removed(folder: int) -> dict[str, int]:
    names = set(os.listdir(folder))
    streams = (name.removesuffix(ACK_SUFFIX) for name in sorted(names) if name.endswith(ACK_SUFFIX))
    gone = [name + LINES_SUFFIX for name in streams if names.isdisjoint(name + suffix for suffix in STREAM_SUFFIXES)]
    return {file: ack.n for file in gone if (ack := _read_ack(folder, file)).n > 0}


def _open(folder: int, name: str) -> int:
    """Raises OSError, also for what is not a plain file."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "it is not a plain file")
    return fd


def _lines(folder: int, name: str, ack: SpoolAck, end: int) -> SpoolLines:
    fd = _open(folder, name)
    if name.endswith(SEGMENT_SUFFIX):
        try:
            return read_lines(lambda at, length: os.pread(fd, length, at), ack.n, ack.offset, end)
        except SegmentUnknown as error:
            raise OSError(0, str(error)) from None
        finally:
            os.close(fd)
    offset = ack.offset
    with os.fdopen(fd, "rb") as file:
        file.seek(offset)
        data = file.read(max(0, min(BATCH_BYTES, end - offset)))
        if len(data) == BATCH_BYTES and b"\n" not in data:
            data += file.readline(max(0, min(MAX_LINE_BYTES, end - offset - len(data))))
    ends = []
    for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        offset += len(line)
        ends.append(offset)
    return SpoolLines(ack.n + 1, data[: data.rfind(b"\n") + 1], ends)


def _ack(folder: int, name: str) -> SpoolAck:
    ack = _read_ack(folder, name)
    try:
        size = os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return SpoolAck()
    return ack if 0 <= ack.offset <= size and (ack.n > 0) is (ack.offset > 0) else SpoolAck()


def _read_ack(folder: int, name: str) -> SpoolAck:
    try:
        with os.fdopen(_open(folder, ack_path(name)), "rb") as file:
            return msgspec.json.decode(file.read(4096), type=SpoolAck)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return SpoolAck()


def _write_ack(folder: int, name: str, ack: SpoolAck) -> None:
    target = ack_path(name)
    staged = f"{target}.agent"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(staged, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(msgspec.json.encode(ack))
    os.rename(staged, target, src_dir_fd=folder, dst_dir_fd=folder)
