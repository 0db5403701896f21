"""The file of a spool: lines appended by one process, read back in batches, acknowledged beside it.

Rules: a line is written whole or not at all (a short write is taken back and raised); ``n`` has no gaps; a record is in
the file, and so survives the death of the process, when ``append`` returns; ``durable`` ones survive a power cut too.
Not thread-safe: the owner holds a lock, but for `next_batch`, which the shipper alone calls. Nothing is made on disk
before the first append. Formats: `tenax.wire.spool`, and `tenax.wire.spool_records` where whoever ships the rest reads
segments, and the file system has them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import time

from tenax.client.connection import fast_json
from tenax.core.spooling.segment import Segment, SegmentsRefused
from tenax.errors import InvalidInput, TenaxError
from tenax.wire.spool_names import (
    BATCH_BYTES,
    LINES_SUFFIX,
    MAX_LINE_BYTES,
    METRICS,
    SEGMENT_SUFFIX,
    ack_path,
    stream_name,
)
from tenax.wire.spool_records import SpoolLines, text_of_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Union


#: A file that the master has whole, and that is longer than this, is followed by a new one, and removed when that one
#: is followed in its turn: a training of weeks does not fill the disk with what is stored elsewhere, and a master whose
#: database is restored from a copy gets the latest reports again. Of a removed one the acknowledgement stays: by it the
#: agent finds out how many are gone.
TURN_BYTES = 64 * 1024 * 1024
#: What a line has beside its body, at most.
_AROUND = 120


class SpoolWriteFailed(TenaxError):
    """A report could not be written to the run directory."""


class LineFile:
    """A file of lines, which every reader of a spool reads, of every release. Methods raise OSError."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._end = 0
        #: Something may stand behind the end: Ctrl-C, twice even, came before that was known or taken back.
        self._unsure = False

    def append(self, n: int, body: bytes, durable: bool = False) -> int:
        """Write a line, ``body`` being its kind and its body; the byte of the file after it."""
        line = b'{"n":%d,"at":%.6f,%b}\n' % (n, time(), body)
        end = self._end + len(line)
        if self._unsure:
            os.ftruncate(self.fd, self._end)
        self._unsure = True
        try:
            written = os.write(self.fd, line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written: the disk is full")
            if durable:
                os.fsync(self.fd)
        except BaseException:  # Ctrl-C, too: nobody knows that it is there, and its number is used again
            with suppress(OSError):
                os.ftruncate(self.fd, self._end)
                self._unsure = False
            raise
        self._end, self._unsure = end, False
        return end

    def read(self, n: int, offset: int, end: int) -> SpoolLines:
        """Lines after the ``n``-th, which ends at ``offset``, and before ``end``."""
        size = BATCH_BYTES
        while True:
            length = min(size, end - offset)
            data = self._read(offset, length)
            # A line that is longer than a batch goes alone.
            cut = (data.rfind(b"\n") if size == BATCH_BYTES else data.find(b"\n")) + 1
            if cut or length < size:
                return SpoolLines(n + 1, data[:cut], ends_of(data[:cut], offset))
            size *= 2

    def _read(self, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            part = os.pread(self.fd, length, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        os.close(self.fd)

    def forget(self) -> None:
        """After a fork, in the child: it is the parent's."""
        os.close(self.fd)


def ends_of(lines: bytes, offset: int) -> list[int]:
    """The byte after each of these lines, the first of which begins at ``offset``."""
    ends = []
    for line in lines.splitlines(keepends=True):
        offset += len(line)
        ends.append(offset)
    return ends


class SpoolFile:
    """One stream in ``directory``; ``name`` is for tests and for files that are no stream of a container.

    ``segments``: whether what reads the file besides reads segments.
    """

    def __init__(
        self,
        directory: str,
        name: Optional[str] = None,
        on_open: Optional[Callable[[], None]] = None,
        *,
        segments: bool = False,
    ) -> None:
        self._directory = directory
        #: Called before the file is made.
        self._on_open = on_open
        self._fixed_name = name
        #: Whether packed metrics are what costs least; a file system may refuse them at the first append.
        self.packs = segments
        self._store: Optional[Union[LineFile, Segment]] = None
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
        return os.path.join(self._directory, self.name + (SEGMENT_SUFFIX if self.packs else LINES_SUFFIX))

    def append(self, kind: str, body: Union[str, bytes], durable: bool = False) -> int:
        """Write a record. Returns ``written_in_all``.

        ``body``: JSON on one line, in ASCII; or, of metrics, what `tenax.core.values.packed_metrics` made.
        Raises SpoolWriteFailed, InvalidInput for a line that is too long.
        """
        n = self.written_n + 1
        store = self._store
        if store is None:
            store = self._open()
        if body.__class__ is str:
            body = f'"kind":"{kind}","body":{body}'.encode("ascii")
        elif store.__class__ is not Segment:
            body = f'"kind":"{METRICS}","body":{text_of_values(body)}'.encode("ascii")  # type: ignore[arg-type]
        if len(body) + _AROUND > MAX_LINE_BYTES:
            raise InvalidInput(
                f"one report has {len(body) + _AROUND} bytes, the most is {MAX_LINE_BYTES}: "
                "report less at a time, or save it as a file of a checkpoint"
            )
        try:
            self.written_offset = store.append(n, body, durable)  # type: ignore[arg-type]
        except OSError as error:
            raise SpoolWriteFailed(f"a report could not be written to {self.path}: {error}") from error
        self.written_n = n
        return self._before + n

    def next_batch(self) -> SpoolLines:
        """The lines that the master does not have yet, from the first, up to ``BATCH_BYTES`` (but one at least)."""
        store = self._store
        if store is None:
            return SpoolLines(self.acked_n + 1, b"", [])
        return store.read(self.acked_n, self.acked_offset, self.written_offset)

    def acknowledge(self, batch: SpoolLines, lines: int) -> None:
        """The first ``lines`` lines of the next batch are with the master."""
        self.acked_n += lines
        self.acked_offset = batch.ends[lines - 1]
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
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def forget(self) -> None:
        """After a fork, in the child: the stream is the parent's; the next append begins one of our own."""
        store, self._store = self._store, None
        if store is not None:
            store.forget()
        self._before = 0
        self._previous = ""
        self._start()

    def _open(self) -> Union[LineFile, Segment]:
        """Raises SpoolWriteFailed."""
        if self._on_open is not None:
            self._on_open()
        fd = -1
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            if self.packs:
                try:
                    fd = self._create()
                    self._store = Segment(fd)
                    return self._store
                except SegmentsRefused:
                    self._discard(fd)
                    fd = -1
                    self.packs = False
            fd = self._create()
            self._store = LineFile(fd)
            return self._store
        except OSError as error:
            if fd >= 0:
                self._discard(fd)
            raise SpoolWriteFailed(f"no report can be written to {self._directory}: {error}") from error

    def _create(self) -> int:
        """A file that nobody else has. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | (0 if self.packs else os.O_APPEND)
        while True:
            try:
                return os.open(self.path, flags, 0o600)
            except FileExistsError:
                # What this process was before it replaced itself (os.exec) had the same name.
                if self._fixed_name is not None:
                    raise
                self._name = ""

    def _discard(self, fd: int) -> None:
        with suppress(OSError):
            os.close(fd)
        with suppress(OSError):
            os.unlink(self.path)


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
