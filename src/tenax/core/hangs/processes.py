"""What Linux says of processes: who is below a rank, whether it is stopped, what it computes and moves.

Standard library only, Python 3.9. What has ended, or may not be seen, is nothing.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Optional

#: In ``/proc/<pid>/stat``, from the state on.
_START = 19
_GPU_DRIVERS = (b"libcuda.so", b"libamdhip64", b"libhsa-runtime64")


@dataclass(frozen=True)
class Activity:
    """Of a process and all below it, since they began."""

    #: That it computed, or would have, had other processes left it a core: on a busy machine that is no hang.
    cpu_s: float = 0.0
    #: Bytes that were read and written.
    moved: int = 0

    def since(self, before: Activity) -> Activity:
        """The difference; what has ended meanwhile does not count against it."""
        return Activity(max(0.0, self.cpu_s - before.cpu_s), max(0, self.moved - before.moved))


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, a debugger or a freezer that shows it so."""
    fields = _stat(pid)
    return fields is not None and fields[0] in (b"T", b"t")


def waits_for_disk(pid: int) -> bool:
    """Whether it cannot be interrupted: a disk, or a network file system."""
    fields = _stat(pid)
    return fields is not None and fields[0] == b"D"


def below(pid: int) -> dict[int, int]:
    """Its descendants, by number: when each started."""
    children: dict[int, list[int]] = {}
    starts: dict[int, int] = {}
    for name in _numbers():
        fields = _stat(int(name))
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(name))
            starts[int(name)] = int(fields[_START])
    reached, at = [pid], 0
    while at < len(reached):
        reached += sorted(children.get(reached[at], []))
        at += 1
    return {number: starts[number] for number in reached[1:]}


def send(pid: int, start: int, number: int, *, if_caught: bool = False) -> bool:
    """A signal to the process that started then, and to no later one of its number; whether it was sent.

    ``if_caught``: only if it has a handler.
    """
    handle = -1
    try:
        if hasattr(os, "pidfd_open"):
            handle = os.pidfd_open(pid)
        fields = _stat(pid)
        if fields is None or int(fields[_START]) != start or (if_caught and not _catches(pid, number)):
            return False
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def activity(pids: Iterable[int]) -> Activity:
    """Of these together."""
    ticks, moved, delayed_s = 0, 0, 0.0
    for pid in pids:
        fields = _stat(pid)
        if fields is not None:
            ticks += int(fields[11]) + int(fields[12])
            moved += _moved(pid)
            delayed_s += _delayed_s(pid)
    return Activity(ticks / os.sysconf("SC_CLK_TCK") + delayed_s, moved)


def has_gpu(pid: int) -> bool:
    """Whether it has a GPU's driver loaded: then it may compute while it waits."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return False
    return any(driver in maps for driver in _GPU_DRIVERS)


def _numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> Optional[list[bytes]]:
    """From the state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _moved(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            fields = dict(line.split(b": ") for line in file.read().splitlines())
        return int(fields[b"rchar"]) + int(fields[b"wchar"])
    except (OSError, ValueError, KeyError):
        return 0


def _delayed_s(pid: int) -> float:
    """How long its threads that are there waited for a core."""
    nanoseconds = 0
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            # A thread may end meanwhile, and a kernel may keep no such figures.
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                nanoseconds += int(file.read().split()[1])
    return nanoseconds / 1e9


def _catches(pid: int, number: int) -> bool:
    """Whether it has a handler for a signal, which ends it otherwise."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except (OSError, ValueError, IndexError):
        pass
    return False
