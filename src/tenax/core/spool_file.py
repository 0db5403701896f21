"""The file of a spool: lines appended by one process, read back in batches, acknowledged beside it.

Rules: a line is written whole or not at all (a short write is taken back and raised); ``n`` has no gaps; a record is in
the file, and so survives the death of the process, when ``append`` returns; ``durable`` ones survive a power cut too.
Not thread-safe: the owner holds a lock. Nothing is made on disk before the first append. Format: ``tenax.wire.spool``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import time

from tenax.client.connection import fast_json
from tenax.errors import InvalidInput, TenaxError
from tenax.wire.spool_names import BATCH_BYTES, MAX_LINE_BYTES, ack_path, stream_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional


#: A file that the master has whole, and that is longer than this, is followed by a new one, and removed when that one
#: is followed in its turn: a training of weeks does not fill the disk with what is stored elsewhere, and a master whose
#: database is restored from a copy gets the latest reports again. Of a removed one the acknowledgement stays: by it the
#: agent finds out how many are gone.
TURN_BYTES = 64 * 1024 * 1024


class SpoolWriteFailed(TenaxError):
    """A report could not be written to the run directory."""


class Lines:
    """Whole lines as they stand in the file; ``first`` is the number of the first."""

    __slots__ = ("data", "first", "lines")

    def __init__(self, first: int, data: bytes) -> None:
        self.first = first
        self.data = data
        self.lines = data.count(b"\n")

    def bytes_of(self, lines: int) -> int:
        """Length of the first ``lines`` lines."""
        end = 0
        for _ in range(lines):
            end = self.data.index(b"\n", end) + 1
        return end


class SpoolFile:
    """One stream in ``directory``; ``name`` is for tests and for files that are no stream of a container."""

    def __init__(
        self, directory: str, name: Optional[str] = None, on_open: Optional[Callable[[], None]] = None
    ) -> None:
        self._directory = directory
        #: Called before the file is made.
        self._on_open = on_open
        self._fixed_name = name
        self._fd = -1
        #: Lines in streams before this one, all with the master.
        self._before = 0
        #: The file before this one.
        self._previous = ""
        self._start()

    def _start(self) -> None:
        self._name = ""
        #: Number of the last line written, and the byte after it.
        self.written_n = 0
        self.written_offset = 0
        #: Number of the last line that the master has, and the byte after it.
        self.acked_n = 0
        self.acked_offset = 0

    @property
    def name(self) -> str:
        if not self._name:
            self._name = self._fixed_name or own_stream_name()
        return self._name

    @property
    def path(self) -> str:
        return os.path.join(self._directory, self.name + ".jsonl")

    def append(self, kind: str, body: str, durable: bool = False) -> int:
        """Write a record; ``body`` is JSON on one line, in ASCII. Returns ``written_in_all``.

        Raises SpoolWriteFailed, InvalidInput for a line that is too long.
        """
        n = self.written_n + 1
        line = f'{{"n":{n},"kind":"{kind}","at":{time():.6f},"body":{body}}}\n'.encode("ascii")
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(
                f"one report has {len(line)} bytes, the most is {MAX_LINE_BYTES}: "
                "report less at a time, or save it as a file of a checkpoint"
            )
        if self._fd < 0:
            self._open()
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written: the disk is full")
            if durable:
                os.fsync(self._fd)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self.written_offset)
            raise SpoolWriteFailed(f"a report could not be written to {self.path}: {error}") from error
        self.written_n = n
        self.written_offset += len(line)
        return self._before + n

    def next_batch(self) -> Lines:
        """The lines that the master does not have yet, from the first, up to ``BATCH_BYTES`` (but one at least)."""
        size = BATCH_BYTES
        while True:
            length = min(size, self.written_offset - self.acked_offset)
            data = self._read(length)
            # A line that is longer than a batch goes alone.
            end = (data.rfind(b"\n") if size == BATCH_BYTES else data.find(b"\n")) + 1
            if end or length < size:
                return Lines(self.acked_n + 1, data[:end])
            size *= 2

    def _read(self, length: int) -> bytes:
        parts = []
        offset = self.acked_offset
        while length > 0:
            part = os.pread(self._fd, length, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def acknowledge(self, lines: int, length: int) -> None:
        """The next ``lines`` lines, ``length`` bytes, are with the master."""
        self.acked_n += lines
        self.acked_offset += length
        self._write_ack()

    @property
    def written_in_all(self) -> int:
        """Lines written so far, over all streams: what a caller waits for."""
        return self._before + self.written_n

    @property
    def acked_in_all(self) -> int:
        return self._before + self.acked_n

    def turn(self) -> bool:
        """Go over to a new stream if this one is long and the master has all of it; whether that was so."""
        if self.written_offset < TURN_BYTES or self.acked_n < self.written_n or self._fixed_name is not None:
            return False
        path = self.path
        self.close()
        if self._previous:
            with suppress(OSError):
                os.unlink(self._previous)
        self._previous = path
        self._before += self.written_n
        self._start()
        return True

    def rewind(self) -> None:
        """The master has less than it once acknowledged (it was restored from a backup): send all again."""
        self.acked_n = self.acked_offset = 0
        self._write_ack()

    def _write_ack(self) -> None:
        # Losing it costs a second sending of lines that the master knows already, so it need not reach the disk.
        target = ack_path(self.path)
        temporary = target + ".new"
        with suppress(OSError):
            with open(temporary, "w") as file:
                file.write(fast_json.dumps({"n": self.acked_n, "offset": self.acked_offset}))
            os.replace(temporary, target)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def forget(self) -> None:
        """After a fork, in the child: the stream is the parent's; the next append begins one of our own."""
        self.close()
        self._before = 0
        self._previous = ""
        self._start()

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        if self._on_open is not None:
            self._on_open()
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            while self._fd < 0:
                try:
                    self._fd = os.open(self.path, flags, 0o600)
                except FileExistsError:
                    # What this process was before it replaced itself (os.exec) had the same name.
                    if self._fixed_name is not None:
                        raise
                    self._name = ""
        except OSError as error:
            raise SpoolWriteFailed(f"no report can be written to {self._directory}: {error}") from error


#: Streams of this process so far: a further one (a second ``core.init``) gets a name of its own, ending in -2.
_streams_made = 0


def own_stream_name() -> str:
    """A name that no other process has, nor an earlier stream of this one."""
    global _streams_made
    name = stream_name(_boot_id(), os.getpid(), _start_ticks())
    _streams_made += 1
    return name if _streams_made == 1 else f"{name}-{_streams_made}"


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:  # no Linux
        return f"{sys.platform}00000000"


def _start_ticks() -> int:
    """When this process started, in clock ticks since the boot; elsewhere than on Linux the present moment serves."""
    try:
        with open("/proc/self/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return int(time() * 100)
