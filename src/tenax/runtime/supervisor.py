"""Watches over one container of the process runtime: a small detached program that outlives its agent.

Forked in the container's directory by `tenax.runtime.forking.forkserver`, where all that it imports is loaded, so that
the agent's environment may be upgraded or removed beneath it. Of the standard library only what loads in a millisecond.

Arguments: container id, descriptor of the lock, descriptor of the ready pipe. The container's directory, version 1, is
the current one:

``plan``         what to run, items ``name=value`` between NUL bytes (see :class:`Plan`)
``lock``         locked (flock) for as long as this program lives; taken by the agent and inherited
``started``      made once, before the main process: whoever finds it never starts this container again; with the pid
                 and start time of this program, where there was room for them
``state.json``   boot id, pid and start time of this program and of the main process
``out/``         output in segments named ``<stream>-<raw offset, 20 digits>``; gaps between them were dropped
``times-*``      when which byte of a stream was written, for output that is read later: a ring of `MARKS` marks, each a
                 raw offset and microseconds of the monotonic clock, 8 bytes each
``exit.json``    how it ended, written when nothing of the container runs any more

Rules it keeps:

- Training is never held up: output is read as it comes; what the disk does not take is dropped and counted.
- What the main process left in the background may go on writing for ``DET_LOG_WAIT_TIME`` seconds (`LINGER_S`) of the
  task's environment, while it holds the output open and nobody asked for an end.
- A container whose directory was deleted is ended: nobody would find it.
- Nothing outlives that: as the subreaper it inherits all descendants and kills until there are none.
- If it is killed itself, the main process dies with it (PDEATHSIG); the agent sweeps what is left.
- Nothing but this program holds the lock once the main process has its user, who can stop it before it is its program:
  it is killed then when somebody asks for the end, and after `MAX_EXEC_S`.
- The exit is on disk (fsync, rename) before the lock is free; its space is reserved at the start.

SIGTERM, SIGINT, SIGHUP, SIGQUIT and SIGUSR2 are passed to the main process; SIGUSR1 kills all of the container.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import fcntl
import os
import select
import time

from tenax.backoff import Backoff
from tenax.host.disk import is_full, says_full
from tenax.runtime.main_process import ExecPlan, Main
from tenax.runtime.procfs import oom_kills, prctl, put, quietly, start_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.runtime.main_process import Execute

VERSION = 1
STREAMS = ("stdout", "stderr")
#: Where the agent listens, seen from a container's directory.
WAKE = "../../wake"
READ_BYTES = 256 * 1024
#: At most one wake-up in this time, so that a chatty task does not keep the agent busy.
WAKE_INTERVAL_S = 0.01
#: Room kept for the exit's record from the start.
EXIT_BYTES = 1024
#: Between two looks whether the container's directory is still there.
LOOK_EVERY_S = 5.0
#: Of a stream, one a second at most: 64 KiB.
MARKS = 4096
MARK_EVERY_S = 1.0
PASSED_ON = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR2)
PR_SET_CHILD_SUBREAPER = 36
#: As long as Determined waits for the last lines.
LINGER_S = 30.0
F_SETPIPE_SZ = 1031
#: Between two rounds of killing what is left of a container.
_KILLING = Backoff(first=0.005, ceiling=1.0, factor=1.5)


class Segments:
    """The output files of one stream, appended to; the oldest are dropped beyond ``cap`` bytes."""

    def __init__(self, stream: str, cap: int) -> None:
        self.stream = stream
        self.cap = cap
        self.segment_bytes = max(64 * 1024, min(8 * 1024 * 1024, cap // 16))
        #: Raw offset of the next byte.
        self.offset = 0
        #: Bytes that the disk did not take.
        self.dropped = 0
        #: There was no room for some of them.
        self.full = False
        self._fd = -1
        self._filled = 0
        self._marks = 0
        self._marked_at = float("-inf")

    def write(self, data: bytes) -> None:
        """Append, and never fail: what cannot be written is dropped and counted."""
        self._mark()
        view = memoryview(data)
        while view:
            if self._filled >= self.segment_bytes:
                self._close()
                self._make_room()
            try:
                if self._fd < 0:
                    self._open()
                written = os.write(self._fd, view[: self.segment_bytes - self._filled])
            except OSError as error:
                self.full = self.full or says_full(error)
                self._abandon()
                self.dropped += len(view)
                self.offset += len(view)
                return
            self._filled += written
            self.offset += written
            view = view[written:]

    def _mark(self) -> None:
        """Note when the next byte is written; without room for it nothing is noted."""
        now = time.monotonic()
        if now - self._marked_at >= MARK_EVERY_S:
            mark = self.offset.to_bytes(8, "little") + int(now * 1e6).to_bytes(8, "little")
            quietly(_write_at, f"times-{self.stream}", mark, self._marks % MARKS * len(mark))
            self._marks += 1
            self._marked_at = now

    def _path(self, offset: int) -> str:
        return f"out/{self.stream}-{offset:020d}"

    def _open(self) -> None:
        self._fd = os.open(self._path(self.offset), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._filled = 0

    def _close(self) -> None:
        if self._fd >= 0:
            quietly(os.close, self._fd)
        self._fd = -1
        self._filled = 0

    def _abandon(self) -> None:
        """After a failure the next byte begins a segment of its own; an empty one is not left behind."""
        empty = self._fd >= 0 and self._filled == 0
        self._close()
        if empty:
            quietly(os.unlink, self._path(self.offset))

    def _make_room(self) -> None:
        """Drop the oldest segments until one more fits. The agent drops what the master has stored, too."""
        listed = quietly(os.listdir, "out")
        names = sorted(
            name for name in (listed if isinstance(listed, list) else ()) if name.startswith(self.stream + "-")
        )
        sizes = [getattr(quietly(os.stat, "out/" + name), "st_size", 0) for name in names]
        total = sum(sizes)
        for name, size in zip(names, sizes):
            if total <= max(0, self.cap - self.segment_bytes):
                return
            quietly(os.unlink, "out/" + name)
            total -= size


def _write_at(path: str, data: bytes, place: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, data, place)
    finally:
        os.close(fd)


class Wake:
    """Tells the agent to look, if one is there."""

    def __init__(self, container_id: str) -> None:
        self._message = container_id.encode()
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._last = 0.0
        #: When the next one is due, on the monotonic clock; None for not at all.
        self.due: float | None = None

    def soon(self) -> None:
        """Now, or once the interval since the last one has passed."""
        now = time.monotonic()
        if now - self._last >= WAKE_INTERVAL_S:
            self.now()
        elif self.due is None:
            self.due = self._last + WAKE_INTERVAL_S

    def now(self) -> None:
        self.due = None
        self._last = time.monotonic()
        # Where no agent is, or one that is behind: it looks by itself once a second.
        quietly(self._socket.sendto, self._message, WAKE)


class ProcessSupervisor:
    """One container from its start to the record of its end."""

    def __init__(self, container_id: str, ready: int, execute: Execute, start: int) -> None:
        """``start``: this program's own, in clock ticks since boot."""
        with open("plan", "rb") as file:
            self.plan = ExecPlan(file.read())
        self.ready = ready
        self.start = start
        self.wake = Wake(container_id)
        self.main = Main(self.plan, execute)
        cap = self.plan.number("cap", 256 * 1024 * 1024)
        self.segments = {stream: Segments(stream, cap) for stream in STREAMS}
        self.streams: dict[int, Segments] = {}
        self.poll = select.poll()
        self.signals = -1
        self.killed = False
        self.terminated = False
        #: When what the main process left behind is ended, on the monotonic clock; None while it runs.
        self.until: float | None = None
        self.oom_kills = oom_kills()

    def run(self) -> None:
        # The exit's room on the disk is taken now, while there is some.
        put("exit.new", b" " * EXIT_BYTES)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._catch_signals()
        error = self._start()
        if error:
            self._end_rest()
            self._finish(error)
            os.write(self.ready, f"failed {error[0]} {error[1]}".encode())
            return
        boot = os.fsdecode(self.plan.single.get("boot", b""))
        state = (
            f'{{"v": {VERSION}, "boot_id": "{boot}", "pid": {os.getpid()}, "start": {self.start}, '
            f'"main_pid": {self.main.pid}, "main_start": {quietly(start_ticks, self.main.pid) or 0}}}\n'
        )
        put("state.new", state.encode())
        os.rename("state.new", "state.json")
        os.write(self.ready, b"running %d" % self.main.pid)
        os.close(self.ready)
        self._watch()
        self._finish(None)

    def _catch_signals(self) -> None:
        self.signals, write = os.pipe()
        os.set_blocking(self.signals, False)
        os.set_blocking(write, False)
        _signal.set_wakeup_fd(write)
        for number in (*PASSED_ON, _signal.SIGUSR1, _signal.SIGCHLD):
            _signal.signal(number, lambda *_: None)
        self.poll.register(self.signals, select.POLLIN)

    def _start(self) -> tuple[int, str] | None:
        writes = []
        for stream in STREAMS:
            read, write = os.pipe()
            quietly(fcntl.fcntl, read, F_SETPIPE_SZ, 1024 * 1024)
            os.set_blocking(read, False)
            self.streams[read] = self.segments[stream]
            self.poll.register(read, select.POLLIN)
            writes.append(write)
        number, text = self.main.start(writes, self.signals)
        for write in writes:
            os.close(write)
        if number:
            return number, text
        self._signalled(self.main.signalled)
        return None

    def _end_rest(self) -> None:
        """Of a start that failed."""
        kills = 0
        while not self.main.reap():
            self.main.kill_all()
            kills += 1
            time.sleep(_KILLING.after(kills))

    def _watch(self) -> None:
        """Until the main process has ended and no descendant is left."""
        kills = 0
        while True:
            left = self._lingers()
            pause = _KILLING.after(kills + 1) if left == 0 else left
            self._wait(LOOK_EVERY_S if pause is None else min(pause, LOOK_EVERY_S))
            if self.main.reap():
                return
            # Where somebody deleted its directory, no agent will ever find it and end it.
            self.killed = self.killed or directory_is_gone()
            if self._lingers() == 0:
                self.main.kill_all()
                kills += 1

    def _lingers(self) -> float | None:
        """Seconds that what runs may go on: None without end, 0 not at all."""
        if self.killed:
            return 0
        if self.main.status is None:
            return None
        if self.terminated or not self.streams:
            return 0
        if self.until is None:
            self.until = time.monotonic() + self.plan.linger_s(LINGER_S)
        return max(0.0, self.until - time.monotonic())

    def _wait(self, pause: float | None) -> None:
        if self.wake.due is not None:
            left = max(0.0, self.wake.due - time.monotonic())
            pause = left if pause is None else min(pause, left)
        for fd, _ in self.poll.poll(None if pause is None else int(pause * 1000) + 1):
            if fd == self.signals:
                self._signalled(os.read(fd, 4096))
            else:
                self._read(fd)
        if self.wake.due is not None and time.monotonic() >= self.wake.due:
            self.wake.now()

    def _signalled(self, numbers: bytes) -> None:
        for number in numbers:
            if number == _signal.SIGUSR1:
                self.killed = True
            elif number in PASSED_ON:
                self.terminated = True
                # 0 would be our whole group.
                if self.main.pid > 0 and self.main.status is None:
                    os.kill(self.main.pid, number)

    def _read(self, fd: int) -> bool:
        """Take what is there; False when there is nothing more."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.poll.unregister(fd)
            del self.streams[fd]
            os.close(fd)
            return False
        self.streams[fd].write(data)
        self.wake.soon()
        return True

    def _finish(self, error: tuple[int, str] | None) -> None:
        self.main.reap()
        for fd in list(self.streams):
            while self._read(fd):
                pass
        quietly(os.rmdir, self.main.cgroup)
        status = self.main.status or 0
        died = os.WIFSIGNALED(status)
        before, now = self.oom_kills, oom_kills()
        fields = [
            f'"v": {VERSION}',
            f'"code": {"null" if died or error else os.WEXITSTATUS(status)}',
            f'"signal": {os.WTERMSIG(status) if died and not error else "null"}',
            f'"killed": {"true" if self.killed else "false"}',
            f'"terminated": {"true" if self.terminated else "false"}',
            f'"oom_kills": {0 if before is None or now is None else now - before}',
            f'"start_errno": {error[0] if error else "null"}',
            f'"disk_full": {"true" if self._disk_is_full() else "false"}',
            *(f'"{stream}_bytes": {segments.offset}' for stream, segments in self.segments.items()),
            *(f'"{stream}_dropped": {segments.dropped}' for stream, segments in self.segments.items()),
        ]
        write_exit("{" + ", ".join(fields) + "}\n")
        self.wake.now()

    def _disk_is_full(self) -> bool:
        """It took no output at some time, or takes no more now: neither reports nor a message that says so."""
        if any(segments.full for segments in self.segments.values()):
            return True
        return is_full(".")


def directory_is_gone() -> bool:
    """Whether somebody deleted the container's directory; not where the file system cannot say it now.

    The count of its links would tell, too, but some file systems in user space always say none.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def write_exit(text: str) -> None:
    """Put the record into the reserved room, then name it. Tries until the disk takes it: the exit is never lost.

    But where somebody deleted the container's directory, there is nobody who could find it.
    """
    content = text.encode().ljust(EXIT_BYTES)
    while True:
        try:
            fd = os.open("exit.new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(fd, content, 0)
            os.fsync(fd)
            os.close(fd)
            os.rename("exit.new", "exit.json")
            return
        except OSError:
            if directory_is_gone():
                return
            time.sleep(1)


def main(arguments: list[str], execute: Execute) -> int:
    """Watch over the container whose directory is the current one; ``execute``: what its main process becomes."""
    container_id, lock, ready = arguments[0], int(arguments[1]), int(arguments[2])
    os.set_inheritable(lock, False)
    os.set_inheritable(ready, False)
    # A supervisor that nobody could name would never hear of an end: one that cannot tell this does not begin.
    start = start_ticks(os.getpid())
    started = os.open("started", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    quietly(os.write, started, b"%d %d" % (os.getpid(), start))
    os.close(started)
    ProcessSupervisor(container_id, ready, execute, start).run()
    return 0
