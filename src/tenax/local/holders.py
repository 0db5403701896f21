"""Which processes hold a lock file: the kernel's word, where a file that we wrote may be old, lost or never written.

The file may have been removed, or its directory moved, since the lock was taken. Linux only: elsewhere there is none
(untested). Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tenax.runtime.processes import LINUX, Identity, identity_of
from tenax.runtime.procfs import GONE

#: What the process that supervises a cluster calls itself, so that it is told from one that only prepares a start.
SUPERVISOR = "tenax-local"


def holders(lock: Path) -> list[Identity]:
    """The processes, except this one, that hold an exclusive lock on this file, or on one removed from its place.

    As far as this user may look at them. Raises OSError.
    """
    if not LINUX:
        return []
    place = os.path.join(os.path.realpath(lock.parent), lock.name)
    holding = []
    for name in os.listdir("/proc"):
        # Named first, looked at afterwards: if it is another process by then, it does not hold the lock.
        identity = _looked_at(int(name)) if name.isdigit() and int(name) != os.getpid() else None
        if identity is not None and _holds(identity.pid, place, lock):
            holding.append(identity)
    return holding


def supervisors(lock: Path) -> list[Identity]:
    """Those of the holders that supervise a cluster."""
    return [identity for identity in holders(lock) if _supervises(identity.pid)]


def call_this_process_supervisor() -> None:
    """From now on `supervisors` finds it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(SUPERVISOR)


def _looked_at(pid: int) -> Identity | None:
    with contextlib.suppress(PermissionError):
        return identity_of(pid)
    return None


def _holds(pid: int, place: str, lock: Path) -> bool:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except (*GONE, PermissionError):
        return False
    for number in numbers:
        # Of files of all kinds, on disks that may not answer.
        with contextlib.suppress(OSError):
            if _means(pid, number, place, lock) and _is_locked_by(pid, number):
                return True
    return False


def _means(pid: int, number: str, place: str, lock: Path) -> bool:
    descriptor = f"/proc/{pid}/fd/{number}"
    target = os.readlink(descriptor)
    if target == f"{place} (deleted)":
        # A path of a container says nothing about ours.
        return os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    return target.endswith(f"/{lock.name}") and os.path.samestat(os.stat(descriptor), lock.stat())


def _is_locked_by(pid: int, number: str) -> bool:
    lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
    return any(line.startswith("lock:") and "FLOCK" in line and "WRITE" in line for line in lines)


def _supervises(pid: int) -> bool:
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/comm").read_text().rstrip("\n") == SUPERVISOR:
            return True
        # Before it has said so; and one of an older release.
        return b"tenax.local" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False
