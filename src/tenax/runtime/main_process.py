"""The main process of a container of the process runtime: how it is started, ended, and what it becomes.

Runs in the supervisor (`tenax.runtime.supervisor`) and, after the fork, in the process that becomes the task. Standard
library only.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import errno
import os
import select
import sys
import time

from tenax.runtime.procfs import GONE, call, descendants, is_below, prctl, put, quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    #: Becomes the program of a plan. An OSError is raised, and written to the pipe ``report_fd``, which is closed where
    #: none can come.
    Execute = Callable[["ExecPlan", int], None]

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
CLONE3 = 435
CLONE_INTO_CGROUP = 0x2_0000_0000
CLONE_NEWNS = 0x0002_0000
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
#: A fork that is not its program by then is killed: its user may have stopped it, or the program's disk hangs.
MAX_EXEC_S = 30.0


class ExecPlan:
    """``argv``, ``env``, ``group`` (repeated), ``cwd``, ``boot``, ``cap``; and where they apply ``uid``, ``gid``,
    ``names`` (files of these names stand in the directory), ``no_new_privileges``, ``cgroup``, ``loaded`` (see
    `tenax.runtime.forking.forkserver`), ``in_place`` (its program may start without exec)."""

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

    def linger_s(self, otherwise: float) -> float:
        """Seconds that what the task leaves in the background may go on writing."""
        try:
            return max(0.0, min(3600.0, float(self.env[b"DET_LOG_WAIT_TIME"])))
        except (KeyError, ValueError):
            return otherwise


class Main:
    """The main process and all that comes from it."""

    def __init__(self, plan: ExecPlan, execute: Execute) -> None:
        self.plan = plan
        self.execute = execute
        self.pid = 0
        #: Wait status; None while it runs.
        self.status: int | None = None
        #: Numbers of the signals that came while it was started.
        self.signalled = b""
        #: Some of what it left could not be seen or ended, and that was said.
        self.missed = False
        self.cgroup = os.fsdecode(plan.single.get("cgroup", b""))

    def start(self, outputs: list[int], signals: int) -> tuple[int, str]:
        """Fork and exec; returns (0, "") or the error's number and what failed.

        ``signals``: a pipe with the numbers of signals. Where SIGUSR1 is among them the fork is killed, whatever it is.
        """
        if self.cgroup:
            quietly(os.mkdir, self.cgroup)
            if not os.path.isdir(self.cgroup):
                self.cgroup = ""
        error_read, error_write = os.pipe()
        supervisor = os.getpid()
        # A program that starts here goes by what the C library and Python know of their process.
        pid, inside = (os.fork(), False) if "in_place" in self.plan.single else fork(self.cgroup)
        if pid == 0:
            become(self.plan, outputs, "" if inside else self.cgroup, supervisor, error_write, self.execute)
        os.close(error_write)
        self.pid = pid
        report = self._report(error_read, signals)
        os.close(error_read)
        if not report:
            return 0, ""
        number, _, text = report.partition(b" ")
        return int(number), text.decode(errors="replace")

    def _report(self, error_read: int, signals: int) -> bytes:
        """What the fork says until it is its program, or has ended: "" for nothing wrong.

        Between its change of user and its program it can be stopped by that user; then it is killed in time, or as soon
        as somebody asks for the end.
        """
        poll = select.poll()
        poll.register(error_read, select.POLLIN)
        poll.register(signals, select.POLLIN)
        until = time.monotonic() + MAX_EXEC_S
        report = late = b""
        killed = False
        while True:
            left = None if killed else max(0, int((until - time.monotonic()) * 1000) + 1)
            ready = [fd for fd, _ in poll.poll(left)]
            if signals in ready:
                self.signalled += os.read(signals, 4096)
            if error_read in ready:
                part = os.read(error_read, 4096)
                if not part:
                    return report or late
                report += part
            if not killed and time.monotonic() >= until:
                late = b"%d %s was not run within %d s" % (errno.ETIMEDOUT, self.plan.argv[0], MAX_EXEC_S)
            if not killed and (late or _signal.SIGUSR1 in self.signalled):
                os.kill(self.pid, _signal.SIGKILL)
                killed = True

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
            # 0 would be our own group.
            if self.pid > 0:
                quietly(os.killpg, self.pid, _signal.SIGKILL)
            return
        pids, missing = descendants(os.getpid())
        for pid in pids:
            try:
                kill_if_below(pid, os.getpid())
            except GONE:
                continue
            except OSError as error:
                missing = error
        if missing is not None and not self.missed:
            # Into the log beside its container, once: whoever was missed is met by the next pass.
            self.missed = True
            quietly(os.write, 2, f"cannot see or end all of it now, and goes on trying: {missing}\n".encode())


def kill_if_below(pid: int, root: int) -> None:
    """SIGKILL to a descendant; the number may be a stranger's by now, which is looked at once it cannot change.

    Raises OSError.
    """
    if not hasattr(os, "pidfd_open"):
        os.kill(pid, _signal.SIGKILL)
        return
    pidfd = os.pidfd_open(pid)
    try:
        if is_below(pid, root):
            _signal.pidfd_send_signal(pidfd, _signal.SIGKILL)
    finally:
        os.close(pidfd)


def fork(cgroup: str) -> tuple[int, bool]:
    """Fork, the child in ``cgroup`` from its first instant where the system can do that: (pid, whether it is).

    To move it there afterwards makes the kernel wait for all processors, some 10 ms.
    """
    if cgroup and sys.platform.startswith("linux"):
        folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fields = (CLONE_INTO_CGROUP, 0, 0, 0, int(_signal.SIGCHLD), 0, 0, 0, 0, 0, folder)
        arguments = b"".join(field.to_bytes(8, sys.byteorder) for field in fields)
        # Python's own fork does more for programs with threads; here there is one.
        pid = call("syscall", CLONE3, arguments, len(arguments))
        os.close(folder)
        if pid >= 0:
            return pid, True
    return os.fork(), False


def become(
    plan: ExecPlan, outputs: list[int], cgroup: str, supervisor: int, error_write: int, execute: Execute
) -> None:
    """In the forked child: turn into the main process. ``cgroup``: to move to. Never returns."""
    doing = ""
    try:
        os.setsid()
        _die_with(supervisor)
        # The kernel's out-of-memory killer should take the task, not the agent or this program.
        quietly(put, "/proc/self/oom_score_adj", b"300")
        if cgroup:
            quietly(put, cgroup + "/cgroup.procs", b"0")
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        # The lock among them: from the change of user on, that user can hold this process up.
        _signal.set_wakeup_fd(-1)
        os.closerange(3, error_write)
        os.closerange(error_write + 1, 65536)
        doing = "cannot run as that user"
        if "uid" in plan.single:
            if "names" in plan.single:
                _give_names()
            os.setgroups([int(group) for group in plan.groups])
            os.setgid(plan.number("gid", -1))
            os.setuid(plan.number("uid", -1))
            # The change of user has reset it.
            _die_with(supervisor)
        if "no_new_privileges" in plan.single and call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(errno.EPERM, "")
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


def _die_with(supervisor: int) -> None:
    """As soon as the supervisor is killed, by whomever."""
    prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(127)


def _give_names() -> None:
    """Show this process, and what it starts, the ``passwd`` and ``group`` of its container, where the system allows."""
    if call("unshare", CLONE_NEWNS) == 0 and call("mount", b"none", b"/", 0, MS_REC | MS_SLAVE, 0) == 0:
        for name in (b"passwd", b"group"):
            call("mount", name, b"/etc/" + name, 0, MS_BIND, 0)


def execute(plan: ExecPlan, report_fd: int) -> None:
    """Become the program, looked up in the PATH of its own environment unless it is a path. Raises OSError."""
    argv, env = plan.argv, plan.env
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)
    candidates = [folder + b"/" + argv[0] for folder in env.get(b"PATH", b"/usr/bin:/bin").split(b":")]
    for candidate in candidates:
        quietly(os.execve, candidate, argv, env)
    raise OSError(errno.EACCES if any(map(os.path.exists, candidates)) else errno.ENOENT, "")
