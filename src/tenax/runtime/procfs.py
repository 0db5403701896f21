"""What ``/proc`` and a few system calls tell, for programs that start in a millisecond. Standard library only.

Nothing here raises `OSError`: what the system does not tell is empty, 0 or None.
"""

from __future__ import annotations

import _ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


#: Of processes that come from one another; more take another round.
_MAX_DEPTH = 10_000


def call(name: str, *arguments: int | bytes) -> int:
    """A function of the C library; its result. Without `ctypes` itself, whose import is a third of a start."""
    this_program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
    return int(_ctypes.call_function(_ctypes.dlsym(this_program, name), arguments))


def prctl(option: int, value: int) -> None:
    """Linux only: elsewhere nothing outlives the process group by promise of the agent's sweep alone."""
    if sys.platform.startswith("linux"):
        call("prctl", option, value, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Pids below ``root``, from ``/proc`` at this moment."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        fields = stat_fields(name) if name.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    pids: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        pids += below
        ahead += below
    return pids


def is_below(pid: int, root: int) -> bool:
    """Whether ``pid`` comes from ``root`` at this moment."""
    for _ in range(_MAX_DEPTH):
        fields = stat_fields(str(pid))
        if not fields or pid <= 1:
            return False
        pid = int(fields[1])
        if pid == root:
            return True
    return False


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
    _, label, rest = content.partition(b"\noom_kill ")
    return int(rest.split(b"\n", 1)[0]) if label else 0


def put(path: str, content: bytes) -> None:
    with open(path, "wb", 0) as file:
        file.write(content)


def quietly(function: Callable[..., object], *arguments: object) -> object:
    """Its result; None where the system refuses: for what is good to have and not needed."""
    try:
        return function(*arguments)
    except OSError:
        return None
