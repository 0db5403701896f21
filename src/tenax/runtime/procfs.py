"""What ``/proc`` and a few system calls tell, for programs that start in a millisecond. Standard library only.

Of a process that is not there (any more) the answer is empty, 0 or False. Where the system cannot say whether it is
(no descriptor left, a disk that fails) `OSError` is raised: nobody may take that for the end of a process.
"""

from __future__ import annotations

import _ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


#: What says that a process is not there: no such entry, or it ended between opening and reading.
GONE = (FileNotFoundError, ProcessLookupError)
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


def descendants(root: int) -> tuple[list[int], OSError | None]:
    """Pids below ``root``, from ``/proc`` at this moment; and why some may be missing, None where none is.

    Processes that this user may not look at are nobody's here.
    """
    children: dict[int, list[int]] = {}
    missing: OSError | None = None
    try:
        names = os.listdir("/proc")
    except OSError as error:
        return [], error
    for name in names:
        try:
            fields = stat_fields(name) if name.isdigit() else []
        except PermissionError:
            continue
        except OSError as error:
            missing = error
            continue
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    pids: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        pids += below
        ahead += below
    return pids, missing


def is_below(pid: int, root: int) -> bool:
    """Whether ``pid`` comes from ``root`` at this moment. Raises OSError."""
    for _ in range(_MAX_DEPTH):
        fields = stat_fields(str(pid))
        if not fields or pid <= 1:
            return False
        pid = int(fields[1])
        if pid == root:
            return True
    return False


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: with pid and boot id its identity; 0: it is not there.

    Raises OSError.
    """
    fields = stat_fields(str(pid))
    return int(fields[19]) if fields else 0


def stat_fields(pid: str) -> list[bytes]:
    """The fields of ``/proc/<pid>/stat`` from the state on; empty if there is no such process (any more).

    Raises OSError.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            return file.read().rpartition(b")")[2].split()
    except GONE:
        return []


def oom_kills() -> int | None:
    """How often the kernel's out-of-memory killer struck on this machine since boot; None where it does not say."""
    try:
        with open("/proc/vmstat", "rb", 0) as file:
            content = file.read(1024 * 1024)
    except OSError:
        return None
    _, label, rest = content.partition(b"\noom_kill ")
    return int(rest.split(b"\n", 1)[0]) if label else None


def put(path: str, content: bytes) -> None:
    with open(path, "wb", 0) as file:
        file.write(content)


def quietly(function: Callable[..., object], *arguments: object) -> object:
    """Its result; None where the system refuses: for what is good to have and not needed."""
    try:
        return function(*arguments)
    except OSError:
        return None
