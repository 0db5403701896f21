"""What this machine knows of processes: identities, signals without races, and all that belongs to a container.

A process is named by (boot id, pid, start time): a pid alone may be another's by now. Linux; elsewhere psutil stands
in, pidfds do not exist and signals carry the race that they close (not tested there).

A process has ended only where the system says that there is none: any other error (no descriptor left, a disk that
fails) is raised, for whoever asks to try again, or taken for "it may run".
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tenax.runtime import procfs
from tenax.runtime.main_process import kill_if_below

log = logging.getLogger("tenax.local")

LINUX = sys.platform.startswith("linux")
_POLL_S = 0.02
#: How long a process may be amid the start of another program: longer, and it is taken as it shows itself.
_EXEC_S = 1.0
#: In ``/proc/<pid>/stat`` from the state on: 0 where no memory is left or ever was; and before a program is laid out.
_VSIZE, _ENV_END = 20, 48
#: States of ``/proc/<pid>/stat`` in which nothing is left but an entry for the parent.
_ENDED = (b"Z", b"X", b"x")
#: Errors of a cgroup's files: it was removed; or it does not say what is in it, and environments are gone by alone.
_CGROUP_GONE = (errno.ENOENT, errno.ENODEV)
_CGROUP_MUTE = (errno.EOPNOTSUPP, errno.EACCES, errno.EPERM)
#: Errors that were said, by number.
_unseen: set[int | None] = set()


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, for as long as this machine is up."""

    pid: int
    #: Clock ticks between boot and its start.
    start: int


@cache
def boot_id() -> str:
    """Another one after each boot of this machine. Raises OSError."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        import psutil

        return str(int(psutil.boot_time()))


def start_ticks(pid: int) -> int:
    """When ``pid`` started; 0 if it does not run. Raises OSError."""
    if LINUX:
        return procfs.start_ticks(pid)
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return 0


def identity_of(pid: int) -> Identity | None:
    """The process that has this number now; None if none has, and for 0 and below, which mean groups.

    Raises OSError.
    """
    start = start_ticks(pid) if pid > 0 else 0
    return Identity(pid, start) if start else None


def is_running(identity: Identity) -> bool:
    """Whether this very process has not ended, as far as the system says so: where it cannot, it may run."""
    if identity.pid <= 0:
        return False
    if not LINUX:
        return start_ticks(identity.pid) == identity.start != 0
    try:
        fields = procfs.stat_fields(str(identity.pid))
    except OSError as error:
        _say_unseen(error)
        return True
    return bool(fields) and int(fields[19]) == identity.start and fields[0] not in _ENDED


def wait_for_end(identities: Iterable[Identity], timeout_s: float) -> list[Identity]:
    """Those that still run after so many seconds, or none as soon as all have ended."""
    until = time.monotonic() + timeout_s
    left = [identity for identity in identities if is_running(identity)]
    while left and time.monotonic() < until:
        time.sleep(_POLL_S)
        left = [identity for identity in left if is_running(identity)]
    return left


def open_pidfd(identity: Identity) -> int | None:
    """A descriptor that names this very process and gets readable at its end; None if it has ended (or not Linux).

    Raises OSError.
    """
    if not LINUX or identity.pid <= 0:
        return None
    pidfd = _opened(identity.pid)
    if pidfd is None:
        return None
    try:
        if start_ticks(identity.pid) == identity.start:
            return pidfd
    except OSError:
        os.close(pidfd)
        raise
    os.close(pidfd)
    return None


def send(identity: Identity, number: int) -> bool:
    """Send a signal to this very process; False if it has ended. Raises OSError, where it may not have ended."""
    if identity.pid <= 0:
        return False
    if not LINUX:
        # Supervisors elsewhere than on Linux do not know their own start and write 0.
        if identity.start and start_ticks(identity.pid) != identity.start:
            return False
        os.kill(identity.pid, number)
        return True
    pidfd = open_pidfd(identity)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def _opened(pid: int) -> int | None:
    """A descriptor of the process with this number; None where there is none. Raises OSError."""
    try:
        return os.pidfd_open(pid)
    except procfs.GONE:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            # By now it is the number of a thread.
            return None
        raise


def _say_unseen(error: OSError) -> None:
    """Once for each kind: whoever asks goes on asking."""
    if error.errno not in _unseen:
        _unseen.add(error.errno)
        log.error("cannot see whether processes run, and takes it that they do: %s", error)


def belonging_to(container_id: str) -> list[int]:
    """Pids of processes whose environment names the container, as far as this user may read it. Raises OSError."""
    pids, missing = _belonging(container_id)
    if missing is not None:
        raise missing
    return pids


def _belonging(container_id: str) -> tuple[list[int], OSError | None]:
    """And why some may be missing."""
    if not LINUX:
        return _belonging_by_psutil(container_id), None
    pids = []
    missing: OSError | None = None
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != os.getpid() and _names(int(name), container_id):
                pids.append(int(name))
        except OSError as error:
            missing = error
    return pids, missing


def _kill_if_belonging(pid: int, container_id: str) -> None:
    """SIGKILL; the number may be another process's by now, and whose it is is looked at again once it cannot change."""
    if not LINUX:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        return
    pidfd = _opened(pid)
    if pidfd is None:
        return
    try:
        if _names(pid, container_id):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def _names(pid: int, container_id: str) -> bool:
    try:
        return b"DET_CONTAINER_ID=" + container_id.encode() in _environment(pid).split(b"\0")
    except (*procfs.GONE, PermissionError):
        return False


def _environment(pid: int) -> bytes:
    """What a process was started with. A process amid the start of another program is waited for: it has none to show
    until the kernel has laid it out, and who is taken for nobody's then is missed. Raises OSError."""
    until = time.monotonic() + _EXEC_S
    content = _read_environment(pid)
    while not content and time.monotonic() < until:
        fields = procfs.stat_fields(str(pid))
        if not fields or fields[_VSIZE] == b"0":
            return b""
        laid_out = fields[_ENV_END] != b"0"
        content = _read_environment(pid)
        if laid_out:
            break
        time.sleep(_POLL_S / 20)
    return content


def _read_environment(pid: int) -> bytes:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def _belonging_by_psutil(container_id: str) -> list[int]:
    import psutil

    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("DET_CONTAINER_ID") == container_id:
                pids.append(process.pid)
    return pids


def kill_belonging(container_id: str, cgroup: str) -> bool:
    """One pass of SIGKILL over all that belongs to a container; True when there was nothing left to kill.

    Raises OSError, where something may be left.
    """
    left = False
    missing: OSError | None = None
    try:
        left = bool(cgroup) and _kill_cgroup(Path(cgroup))
    except OSError as error:
        missing = error
    pids, unread = _belonging(container_id)
    for pid in pids:
        left = True
        try:
            _kill_if_belonging(pid, container_id)
        except OSError as error:
            missing = error
    missing = missing or unread
    if missing is not None:
        raise missing
    if not left and cgroup:
        with contextlib.suppress(OSError):
            Path(cgroup).rmdir()
    return not left


def _kill_cgroup(cgroup: Path) -> bool:
    try:
        members = (cgroup / "cgroup.procs").read_text().split()
        if members:
            (cgroup / "cgroup.kill").write_text("1")
    except OSError as error:
        if error.errno in _CGROUP_GONE or error.errno in _CGROUP_MUTE:
            return False
        raise
    return bool(members)


def kill_with_descendants(root: Identity) -> None:
    """SIGKILL to all that came from a process and then to itself, which is stopped meanwhile and makes no more.

    Raises OSError where some of it may be left: it stays stopped then.
    """
    if not send(root, signal.SIGSTOP):
        return
    pids, missing = procfs.descendants(root.pid) if LINUX else ([], None)
    for pid in pids:
        try:
            kill_if_below(pid, root.pid)
        except procfs.GONE:
            continue
        except OSError as error:
            missing = error
    if missing is not None:
        raise missing
    send(root, signal.SIGKILL)


@cache
def cgroup_parent() -> Path | None:
    """The cgroup (version 2) below which this process may make others; None where it may not. Raises OSError."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except FileNotFoundError:
        return None
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return None
    for mount in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        place = mount / own.lstrip("/")
        if (mount / "cgroup.controllers").exists() and (place / "cgroup.kill").exists() | (own == "/"):
            return place if os.access(place, os.W_OK) else None
    return None
