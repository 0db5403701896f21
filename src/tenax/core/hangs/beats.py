"""Beats: how far each rank is, in a small file of its own that whoever watches for hangs reads.

A beat is a report, a ``should_preempt`` or a collective of `tenax.core`: one number in mapped memory goes up. No system
call, no lock and no clock: the reader has a clock, and sees when the number last changed. Where nobody watches (no
``TENAX_BEATS``) the numbers are this process's own.

Rules: a rank has a file for each process that speaks for it, named ``<rank>-<pid>``; it is made whole before its first
number says so; a child of the process beats nowhere. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Optional, Type

#: The variable with the directory for these files.
DIRECTORY = "TENAX_BEATS"

#: What a rank is doing. START: its process runs and has not come to `tenax.core` yet; JOIN: it waits for the others to
#: come; LEFT: it is done.
START, JOIN, TRAIN, SAVE, RESTORE, EVALUATE, LEFT = range(7)

_FORMAT = 1
_FORMAT_AT, _PID, _START, _RANK, _SIZE, _THREAD, _SIGNAL, _PHASE, _BEATS, _STEP = range(10)
_BYTES = 8 * 10
#: What the file of the stacks that a rank's own handler prints is called, beside that of its beats.
STACKS = ".stacks"


class Beats:
    """Those of this process. Any thread may use it; of beats at the same moment one may get lost."""

    def __init__(self) -> None:
        self._cells = _nowhere()
        self._identity = (-1, -1)
        self.path = ""

    def open(self, rank: int, size: int, phase: int = TRAIN) -> None:
        """This process is ``rank`` of ``size``. What cannot be written is not watched."""
        directory = os.environ.get(DIRECTORY)
        if not directory:
            return
        if self._identity != (rank, size):
            try:
                self._cells, self.path = _made(directory, rank, size, os.getpid())
            except OSError:
                return
            self._identity = (rank, size)
            self._cells[_SIGNAL] = _print_stacks_into(self.path + STACKS)
        self._cells[_PHASE] = phase

    def beat(self) -> None:
        """It goes on."""
        self._cells[_BEATS] += 1

    def at(self, step: int) -> None:
        """It goes on, and has completed so many steps."""
        cells = self._cells
        cells[_BEATS] += 1
        try:
            cells[_STEP] = step
        except (TypeError, ValueError):  # no number, or one that nobody counts to
            return

    @property
    def step(self) -> int:
        """Steps that it has completed; -1: it never said so."""
        return self._cells[_STEP]

    def during(self, phase: int) -> PhaseOfRank:
        """``with`` it: what this rank does meanwhile."""
        return PhaseOfRank(self, phase)

    def change_phase(self, phase: int) -> int:
        """From now on; returns the phase before."""
        before = self._cells[_PHASE]
        self._cells[_PHASE] = phase
        self._cells[_BEATS] += 1
        return before

    def forget(self) -> None:
        """After a fork, in the child."""
        self._cells = _nowhere()
        self._identity = (-1, -1)
        self.path = ""


class PhaseOfRank:
    """A phase, and the one before it afterwards."""

    __slots__ = ("_beats", "_before", "_phase")

    def __init__(self, beats: Beats, phase: int) -> None:
        self._beats, self._phase, self._before = beats, phase, TRAIN

    def __enter__(self) -> None:
        self._before = self._beats.change_phase(self._phase)

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._beats.change_phase(self._before)


class BeatRecord:
    """What stands in the file of a rank."""

    __slots__ = ("beats", "path", "phase", "pid", "rank", "signal", "size", "start", "step", "thread")

    def __init__(self, path: str, cells: memoryview) -> None:
        self.path = path
        self.pid, self.start, self.rank, self.size = (int(cells[at]) for at in (_PID, _START, _RANK, _SIZE))
        #: Of the main thread, as ``threading`` identifies it.
        self.thread = int(cells[_THREAD])
        #: The signal at which the process prints its stacks into ``path`` + ``.stacks``; 0: none.
        self.signal = int(cells[_SIGNAL])
        self.phase, self.beats, self.step = (int(cells[at]) for at in (_PHASE, _BEATS, _STEP))


def announce(directory: str, rank: int, size: int, pid: int) -> None:
    """The process of a rank has been started, by another one than itself."""
    try:
        _made(directory, rank, size, pid)[0].release()
    except OSError:
        return


def read_all(directory: str) -> list[BeatRecord]:
    """Of each rank the process that speaks for it, by rank: that which runs, else that which ran last."""
    records: dict[int, tuple[tuple[bool, bool, int], BeatRecord]] = {}
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    for name in names:
        record = _read(os.path.join(directory, name)) if not name.endswith(STACKS) else None
        if record is None:
            continue
        runs = start_ticks(record.pid) == record.start
        order = (runs, record.phase != START, record.start)
        if record.rank not in records or order > records[record.rank][0]:
            records[record.rank] = order, record
    return [records[rank][1] for rank in sorted(records)]


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since the boot; 0: it does not run, or it cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _read(path: str) -> Optional[BeatRecord]:
    try:
        with open(path, "rb") as file:
            data = file.read(_BYTES)
    except OSError:
        return None
    if len(data) < _BYTES:
        return None
    cells = memoryview(data).cast("q")
    return BeatRecord(path, cells) if cells[_FORMAT_AT] == _FORMAT else None


def _nowhere() -> memoryview:
    return memoryview(bytearray(_BYTES)).cast("q")


def _made(directory: str, rank: int, size: int, pid: int) -> tuple[memoryview, str]:
    """A file of a rank, mapped. Raises OSError."""
    import mmap
    import threading

    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, f"{rank}-{pid}")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, _BYTES)
        cells = memoryview(mmap.mmap(fd, _BYTES)).cast("q")
    finally:
        os.close(fd)
    cells[_PID], cells[_START], cells[_RANK], cells[_SIZE] = pid, start_ticks(pid), rank, size
    cells[_THREAD] = threading.main_thread().ident or 0
    cells[_STEP] = -1
    cells[_FORMAT_AT] = _FORMAT
    return cells, path


def _print_stacks_into(path: str) -> int:
    """Have a signal print the stacks of all threads into a file; the signal, or 0 for none.

    A real-time signal that nobody uses: SIGUSR1 is for people, and prints into the log.
    """
    import signal

    lowest = getattr(signal, "SIGRTMIN", None)
    if lowest is None or not sys.platform.startswith("linux"):
        return 0
    import faulthandler

    for number in range(lowest + 11, lowest + 21):
        if signal.getsignal(number) is not signal.SIG_DFL:
            continue
        try:
            # Never closed: the handler writes there.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
            faulthandler.register(number, file=fd, all_threads=True)
        except (AttributeError, ValueError, OSError):
            return 0
        return int(number)
    return 0


#: Those of this process.
OWN = Beats()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OWN.forget)
