"""A segment: records written through memory into room that was allocated ahead. Standard library only, Python 3.9.

Rules: a record is there, and outlives this process, once its mark is (format: `tenax.wire.spool_records`); no system
call but when the room is used up; a full disk is an OSError of the allocation, never a signal of the write. Where room
cannot be allocated or mapped `SegmentsRefused` is raised, and the caller writes lines. Not thread-safe, but for `read`.
"""

from __future__ import annotations

import errno
import os
import sys
import zlib
from contextlib import suppress
from time import sleep, time

from tenax.wire.spool_records import HEAD, MAGIC, SpoolLines, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Optional

#: Room that is allocated at once, at first and later: a trial of ten reports should not take a megabyte.
_FIRST_ROOM, _LATER_ROOM = 64 * 1024, 1024 * 1024
_PAGE = 64 * 1024
#: What a file system says that cannot allocate or map, in the words of several kernels.
_REFUSALS = frozenset(
    number
    for name in ("EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENODEV", "ENOSYS", "EACCES", "EPERM", "ENOTTY")
    if (number := getattr(errno, name, None)) is not None
)


class SegmentsRefused(Exception):
    """This file system, or this system, has no segments."""


class Segment:
    """One file that is open for writing."""

    def __init__(self, fd: int) -> None:
        """``fd``: a new file of its own, which is closed with it. Raises SegmentsRefused, OSError for a full disk."""
        self.fd = fd
        #: The byte of the file that the mapping begins at, bytes of it, and where in it the next mark goes.
        self._base = self._room = 0
        self._at = len(MAGIC)
        self._map: Optional[mmap.mmap] = None
        self._marks: Optional[memoryview] = None
        if sys.byteorder != "little" or not hasattr(os, "posix_fallocate"):
            raise SegmentsRefused
        try:
            self._extend(_FIRST_ROOM - len(MAGIC))
        except OSError as error:
            if error.errno in _REFUSALS:
                raise SegmentsRefused from error
            raise
        self._map[: len(MAGIC)] = MAGIC  # type: ignore[index]

    def append(self, n: int, body: bytes, durable: bool = False) -> int:
        """Write a record; the byte of the file after it. Raises OSError: it is not written."""
        data = HEAD.pack(n, time()) + body
        at = self._at
        end = at + 8 + len(data)
        if end > self._room:
            self._extend(len(data) + 8)
            at = self._at
            end = at + 8 + len(data)
        self._map[at + 8 : end] = data  # type: ignore[index]
        # One aligned store of eight bytes: it is there as a whole or not at all.
        self._marks[at >> 3] = zlib.crc32(data) << 32 | len(data)  # type: ignore[index]
        if durable:
            try:
                self._map.flush()  # type: ignore[union-attr]
                os.fsync(self.fd)
            except BaseException:  # Ctrl-C, too: nobody knows that it is there, and its number is used again
                self._marks[at >> 3] = 0  # type: ignore[index]
                raise
        self._at = end = (end + 7) & -8
        return self._base + end

    def read(self, n: int, offset: int, end: int) -> SpoolLines:
        """Lines after the ``n``-th, which ends at ``offset``, and before ``end``. Raises OSError. In any thread."""
        # Made to text by the shipper: the training loop gets its turn between a few dozen lines and the next ones.
        return read_lines(lambda at, length: os.pread(self.fd, length, at), n, offset, end, lambda: sleep(0))

    def close(self) -> None:
        """Give back what is allocated and not used."""
        end = self._base + self._at
        self.let_go()
        with suppress(OSError):  # zeros at its end are no records
            os.ftruncate(self.fd, end)
        os.close(self.fd)

    def forget(self) -> None:
        """After a fork, in the child: it is the parent's."""
        self.let_go()
        os.close(self.fd)

    def let_go(self) -> None:
        """Unmap it."""
        _let_go(self._map, self._marks)
        self._map = self._marks = None

    def _extend(self, more: int) -> None:
        """Have room for so many bytes after the last record. Raises OSError: nothing has changed."""
        import mmap

        written = self._base + self._at
        allocated = self._base + self._room
        needed = _rounded(written + more) - allocated
        usual = max(needed, min(_LATER_ROOM, max(_FIRST_ROOM, allocated)))
        try:
            os.posix_fallocate(self.fd, allocated, usual)
        except OSError as error:
            if needed == usual or error.errno in _REFUSALS:
                raise
            usual = needed  # the disk is nearly full: only what this record takes
            os.posix_fallocate(self.fd, allocated, usual)
        base = written // _PAGE * _PAGE
        room = allocated + usual - base
        mapped = mmap.mmap(self.fd, room, offset=base)
        marks = memoryview(mapped).cast("Q")
        before = self._map, self._marks
        # Ctrl-C may come behind any call: it finds the one mapping or the other.
        self._map, self._marks = mapped, marks
        self._base, self._room, self._at = base, room, written - base
        _let_go(*before)


def _let_go(mapped: Optional[mmap.mmap], marks: Optional[memoryview]) -> None:
    if marks is not None:
        marks.release()
    if mapped is not None:
        mapped.close()


def _rounded(size: int) -> int:
    return -(-size // _PAGE) * _PAGE
