"""What this machine knows of processes: identities, signals without races, and all that belongs to a container.

A process is named by (boot id, pid, start time): a pid alone may be another's by now. Linux; elsewhere psutil stands
in, pidfds do not exist and signals carry the race that they close (not tested there).
"""

from __future__ import annotations

import contextlib
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

LINUX = sys.platform.startswith("linux")
_POLL_S = 0.02
#: States of ``/proc/<pid>/stat`` in which nothing is left but an entry for the parent.
_ENDED = (b"Z", b"X", b"x")


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, for as long as this machine is up."""

    pid: int
    #: Clock ticks between boot and its start.
    start: int


@cache
def boot_id() -> str:
    """Another one after each boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil

        return str(int(psutil.boot_time()))


def start_ticks(pid: int) -> int:
    """When ``pid`` started; 0 if it does not run."""
    if LINUX:
        return procfs.start_ticks(pid)
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return 0


def identity_of(pid: int) -> Identity | None:
    """The process that has this number now; None if none has, and for 0 and below, which mean groups."""
    start = start_ticks(pid) if pid > 0 else 0
    return Identity(pid, start) if start else None


def is_running(identity: Identity) -> bool:
    """Whether this very process has not ended."""
    if identity.pid <= 0:
        return False
    if not LINUX:
        return start_ticks(identity.pid) == identity.start != 0
    fields = procfs.stat_fields(str(identity.pid))
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
    """A descriptor that names this very process and gets readable at its end; None if it has ended (or not Linux)."""
    if not LINUX or identity.pid <= 0:
        return None
    try:
        pidfd = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if start_ticks(identity.pid) == identity.start:
        return pidfd
    os.close(pidfd)
    return None


def send(identity: Identity, number: int) -> bool:
    """Send a signal to this very process; False if it has ended. Raises PermissionError."""
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


def belonging_to(container_id: str) -> list[int]:
    """Pids of processes whose environment names the container, as far as this user may read it."""
    if not LINUX:
        return _belonging_by_psutil(container_id)
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _names(pid, container_id)]


def _kill_if_belonging(pid: int, container_id: str) -> None:
    """SIGKILL; the number may be another process's by now, and whose it is is looked at again once it cannot change."""
    if not LINUX:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        return
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if _names(pid, container_id):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _names(pid: int, container_id: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"DET_CONTAINER_ID=" + container_id.encode() in file.read().split(b"\0")
    except OSError:
        return False


def _belonging_by_psutil(container_id: str) -> list[int]:
    import psutil

    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("DET_CONTAINER_ID") == container_id:
                pids.append(process.pid)
    return pids


def kill_belonging(container_id: str, cgroup: str) -> bool:
    """One pass of SIGKILL over all that belongs to a container; True when there was nothing left to kill."""
    left = False
    if cgroup:
        left = _kill_cgroup(Path(cgroup))
    for pid in belonging_to(container_id):
        left = True
        _kill_if_belonging(pid, container_id)
    if not left and cgroup:
        with contextlib.suppress(OSError):
            Path(cgroup).rmdir()
    return not left


def _kill_cgroup(cgroup: Path) -> bool:
    try:
        members = (cgroup / "cgroup.procs").read_text().split()
        if members:
            (cgroup / "cgroup.kill").write_text("1")
    except OSError:
        return False
    return bool(members)


def kill_with_descendants(root: Identity) -> None:
    """SIGKILL to all that came from a process and then to itself, which is stopped meanwhile and makes no more."""
    if not send(root, signal.SIGSTOP):
        return
    for pid in procfs.descendants(root.pid) if LINUX else []:
        with contextlib.suppress(OSError):
            kill_if_below(pid, root.pid)
    send(root, signal.SIGKILL)


@cache
def cgroup_parent() -> Path | None:
    """The cgroup (version 2) below which this process may make others; None where it may not."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return None
    for mount in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        place = mount / own.lstrip("/")
        if (mount / "cgroup.controllers").exists() and (place / "cgroup.kill").exists() | (own == "/"):
            return place if os.access(place, os.W_OK) else None
    return None
