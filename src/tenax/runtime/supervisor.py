"""Watches over one container of the process runtime: a small detached program that outlives its agent.

Forked in the container's directory by `tenax.runtime.forkserver`, where all that it imports is loaded, so the agent's
environment may be upgraded or removed beneath it. Of the standard library only what loads in a millisecond.

Arguments: container id, descriptor of the lock, descriptor of the ready pipe. The container's directory, version 1, is
the current one:

``plan``         what to run, items ``name=value`` between NUL bytes (see :class:`Plan`)
``lock``         locked (flock) for as long as this program lives; taken by the agent and inherited
``started``      made once, before the main process: whoever finds it never starts this container again
``state.json``   boot id, pid and start time of this program and of the main process
``out/``         output in segments named ``<stream>-<raw offset, 20 digits>``; gaps between them were dropped
``exit.json``    how it ended, written when nothing of the container runs any more

Rules it keeps:

- Training is never held up: output is read as it comes; what the disk does not take is dropped and counted.
- Nothing outlives the main process: as the subreaper it inherits all descendants and kills until there are none.
- If it is killed itself, the main process dies with it (PDEATHSIG); the agent sweeps what is left.
- The exit is on disk (fsync, rename) before the lock is free; its space is reserved at the start.

SIGTERM, SIGINT, SIGHUP, SIGQUIT and SIGUSR2 are passed to the main process; SIGUSR1 kills all of the container.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import errno
import fcntl
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1
STREAMS = ("stdout", "stderr")
#: Where the agent listens, seen from a container's directory.
WAKE = "../../wake"
READ_BYTES = 256 * 1024
#: At most one wake-up in this time, so that a chatty task does not keep the agent busy.
WAKE_INTERVAL_S = 0.01
#: Room kept for the exit's record from the start.
EXIT_BYTES = 1024
PASSED_ON = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR2)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
F_SETPIPE_SZ = 1031


class Plan:
    """``argv``, ``env``, ``group`` (repeated), ``cwd``, ``boot``, ``cap``; maybe ``uid gid cgroup loaded``."""

    def __init__(self, content: bytes) -> None:
        self.argv: list[bytes] = []
        self.groups: list[bytes] = []
        self.env: dict[bytes, bytes] = {}
        self.single: dict[str, bytes] = {}
        for item in content.split(b"\0"):
            name, separator, value = item.partition(b"=")
            if not separator:
                continue
            if name == b"argv":
                self.argv.append(value)
            elif name == b"group":
                self.groups.append(value)
            elif name == b"env":
                key, _, text = value.partition(b"=")
                self.env[key] = text
            else:
                self.single[name.decode()] = value

    def number(self, name: str, otherwise: int) -> int:
        return int(self.single.get(name, b"%d" % otherwise))


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
        self._fd = -1
        self._filled = 0

    def write(self, data: bytes) -> None:
        """Append, and never fail: what cannot be written is dropped and counted."""
        view = memoryview(data)
        while view:
            if self._filled >= self.segment_bytes:
                self._close()
                self._make_room()
            try:
                if self._fd < 0:
                    self._open()
                written = os.write(self._fd, view[: self.segment_bytes - self._filled])
            except OSError:
                self._abandon()
                self.dropped += len(view)
                self.offset += len(view)
                return
            self._filled += written
            self.offset += written
            view = view[written:]

    def _path(self, offset: int) -> str:
        return f"out/{self.stream}-{offset:020d}"

    def _open(self) -> None:
        self._fd = os.open(self._path(self.offset), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._filled = 0

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
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
        names = sorted(name for name in os.listdir("out") if name.startswith(self.stream + "-"))
        sizes = [getattr(quietly(os.stat, "out/" + name), "st_size", 0) for name in names]
        total = sum(sizes)
        for name, size in zip(names, sizes):
            if total <= max(0, self.cap - self.segment_bytes):
                return
            quietly(os.unlink, "out/" + name)
            total -= size


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


class Main:
    """The main process and all that comes from it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.pid = 0
        #: Wait status; None while it runs.
        self.status: int | None = None
        self.cgroup = os.fsdecode(plan.single.get("cgroup", b""))

    def start(self, outputs: list[int]) -> tuple[int, str]:
        """Fork and exec; returns (0, "") or the error's number and what failed."""
        if self.cgroup:
            quietly(os.mkdir, self.cgroup)
            if not os.path.isdir(self.cgroup):
                self.cgroup = ""
        error_read, error_write = os.pipe()
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(self.plan, outputs, self.cgroup, supervisor, error_write)
        os.close(error_write)
        self.pid = pid
        report = b""
        while part := os.read(error_read, 4096):
            report += part
        os.close(error_read)
        if not report:
            return 0, ""
        number, _, text = report.partition(b" ")
        return int(number), text.decode(errors="replace")

    def reap(self) -> bool:
        """Collect what has ended; True when no descendant is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.pid:
                self.status = status

    def kill_all(self) -> None:
        """SIGKILL to every descendant. One pass: what forks meanwhile is met by the next."""
        if self.cgroup:
            quietly(put, self.cgroup + "/cgroup.kill", b"1")
        if not os.path.isdir("/proc/self"):
            quietly(os.killpg, self.pid, _signal.SIGKILL)
            return
        for pid in descendants(os.getpid()):
            quietly(os.kill, pid, _signal.SIGKILL)


def become(plan: Plan, outputs: list[int], cgroup: str, supervisor: int, error_write: int) -> None:
    """In the forked child: turn into the main process. Never returns."""
    doing = ""
    try:
        os.setsid()
        # The kernel's out-of-memory killer should take the task, not the agent or this program.
        quietly(put, "/proc/self/oom_score_adj", b"300")
        if cgroup:
            quietly(put, cgroup + "/cgroup.procs", b"0")
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        doing = "cannot run as that user"
        if "uid" in plan.single:
            os.setgroups([int(group) for group in plan.groups])
            os.setgid(plan.number("gid", -1))
            os.setuid(plan.number("uid", -1))
        # After the change of user, which would reset it.
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(127)
        doing = "cannot enter the work directory"
        os.chdir(plan.single["cwd"])
        os.umask(0o022)
        for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
            quietly(_signal.signal, number, _signal.SIG_DFL)
        doing = f"cannot run {os.fsdecode(plan.argv[0])}"
        execute(plan, error_write)
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        os.write(error_write, f"{number} {doing}: {os.strerror(number)}".encode(errors="replace"))
    os._exit(127)


def execute(plan: Plan, told: int) -> None:
    """Become the program, looked up in its own PATH unless it is a path; raises OSError, of which the pipe ``told``
    tells. The forkserver puts another in this place, which knows programs that it has loaded."""
    argv, env = plan.argv, plan.env
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)
    candidates = [folder + b"/" + argv[0] for folder in env.get(b"PATH", b"/usr/bin:/bin").split(b":")]
    for candidate in candidates:
        quietly(os.execve, candidate, argv, env)
    raise OSError(errno.EACCES if any(map(os.path.exists, candidates)) else errno.ENOENT, "")


class Supervisor:
    """One container from its start to the record of its end."""

    def __init__(self, container_id: str, ready: int) -> None:
        with open("plan", "rb") as file:
            self.plan = Plan(file.read())
        self.ready = ready
        self.wake = Wake(container_id)
        self.main = Main(self.plan)
        cap = self.plan.number("cap", 256 * 1024 * 1024)
        self.segments = {stream: Segments(stream, cap) for stream in STREAMS}
        self.streams: dict[int, Segments] = {}
        self.poll = select.poll()
        self.signals = -1
        self.killed = False
        self.terminated = False
        self.oom_kills = oom_kills()

    def run(self) -> None:
        # The exit's room on the disk is taken now, while there is some.
        put("exit.new", b" " * EXIT_BYTES)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._catch_signals()
        error = self._start()
        if error:
            self._finish(error)
            os.write(self.ready, f"failed {error[0]} {error[1]}".encode())
            return
        boot = os.fsdecode(self.plan.single.get("boot", b""))
        state = (
            f'{{"v": {VERSION}, "boot_id": "{boot}", "pid": {os.getpid()}, "start": {start_ticks(os.getpid())}, '
            f'"main_pid": {self.main.pid}, "main_start": {start_ticks(self.main.pid)}}}\n'
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
        number, text = self.main.start(writes)
        for write in writes:
            os.close(write)
        return (number, text) if number else None

    def _watch(self) -> None:
        """Until the main process has ended and no descendant is left."""
        pause = 0.005
        while True:
            killing = self.killed or self.main.status is not None
            self._wait(pause if killing else None)
            if self.main.reap():
                return
            if self.killed or self.main.status is not None:
                self.main.kill_all()
                pause = min(1.0, pause * 1.5)

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
                if self.main.status is None:
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
        fields = [
            f'"v": {VERSION}',
            f'"code": {"null" if died or error else os.WEXITSTATUS(status)}',
            f'"signal": {os.WTERMSIG(status) if died and not error else "null"}',
            f'"killed": {"true" if self.killed else "false"}',
            f'"terminated": {"true" if self.terminated else "false"}',
            f'"oom_kills": {oom_kills() - self.oom_kills}',
            f'"start_errno": {error[0] if error else "null"}',
            *(f'"{stream}_bytes": {segments.offset}' for stream, segments in self.segments.items()),
            *(f'"{stream}_dropped": {segments.dropped}' for stream, segments in self.segments.items()),
        ]
        write_exit("{" + ", ".join(fields) + "}\n")
        self.wake.now()


def write_exit(text: str) -> None:
    """Put the record into the reserved room, then name it. Tries until the disk takes it: the exit is never lost."""
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
            time.sleep(1)


def prctl(option: int, value: int) -> None:
    """Linux only: elsewhere nothing outlives the process group by promise of the agent's sweep alone."""
    if not sys.platform.startswith("linux"):
        return
    # Without `ctypes` itself, whose import is a third of the start.
    this_program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
    _ctypes.call_function(_ctypes.dlsym(this_program, "prctl"), (option, value, 0, 0, 0))


def descendants(root: int) -> list[int]:
    """Pids below ``root``, from ``/proc`` at this moment."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        fields = stat_fields(name) if name.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: with pid and boot id its identity."""
    fields = stat_fields(str(pid))
    return int(fields[19]) if fields else 0


def stat_fields(pid: str) -> list[bytes]:
    """The fields of ``/proc/<pid>/stat`` from the state on; empty if there is no such process (any more)."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def oom_kills() -> int:
    """How often the kernel's out-of-memory killer struck on this machine since boot."""
    try:
        with open("/proc/vmstat", "rb", 0) as file:
            content = file.read(1024 * 1024)
    except OSError:
        return 0
    _, found, rest = content.partition(b"\noom_kill ")
    return int(rest.split(b"\n", 1)[0]) if found else 0


def put(path: str, content: bytes) -> None:
    with open(path, "wb", 0) as file:
        file.write(content)


def quietly(function: Callable[..., object], *arguments: object) -> object:
    """Its result; None where the system refuses: for what is good to have and not needed."""
    try:
        return function(*arguments)
    except OSError:
        return None


def main(arguments: list[str]) -> int:
    container_id, lock, ready = arguments[0], int(arguments[1]), int(arguments[2])
    os.set_inheritable(lock, False)
    os.set_inheritable(ready, False)
    os.close(os.open("started", os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    Supervisor(container_id, ready).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
