"""The stack of a process: from py-spy where the task has it and may use it, else from the process itself.

py-spy sees any process of Python. Where it is not installed, or the machine does not let a process look into another
(``kernel.yama.ptrace_scope``), a process that has `tenax.core` prints its stacks at a signal, as does what it forks.
Both run as the task's user. A signal goes only to a process that has a handler for it. Standard library only, 3.9.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time

from tenax.client.connection import fast_json
from tenax.core.hangs.beats import STACKS
from tenax.core.hangs.places import Frame
from tenax.core.hangs.processes import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from tenax.core.hangs.beats import BeatRecord
    from tenax.jsonvalue import Json

    #: Innermost call first.
    Stack = Tuple[Frame, ...]

#: Seconds that one process has to print its stacks, and that py-spy has to read them.
_PRINT_S, _PY_SPY_S = 2.0, 20.0
#: Seconds without more of it after which a print is whole.
_QUIET_S = 0.03
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)$')
_STARTS_SCRIPTS = "/tenax/exec/in_place.py"
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)")


class StackReader:
    """Not thread-safe."""

    def __init__(self) -> None:
        self._py_spy = _find_py_spy()

    def main_thread(self, record: BeatRecord, pid: int, start: int) -> Stack:
        """Of the main thread of ``pid``, the rank's own process or one below it; empty: it cannot be known."""
        stack = self._by_py_spy(pid) if self._py_spy else None
        if stack is None and record.signal:
            stack = _by_signal(record, pid, start)
        return of_script(stack or ())

    def _by_py_spy(self, pid: int) -> Optional[Stack]:
        command = [self._py_spy, "dump", "--nonblocking", "--json", "--pid", str(pid)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PY_SPY_S, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode:
            if b"ermission" in done.stderr or b"not permitted" in done.stderr:
                # It will not be allowed later, either.
                self._py_spy = ""
            return None
        try:
            return from_py_spy(fast_json.loads(done.stdout.decode()), pid)
        except ValueError:
            return None


def of_script(stack: Stack) -> Stack:
    """Without what has started the script in its process (`tenax.exec.in_place`)."""
    for place, frame in enumerate(stack):
        if frame.function == "become" and frame.file.endswith(_STARTS_SCRIPTS):
            return stack[:place]
    return stack


def from_py_spy(threads: Json, pid: int) -> Optional[Stack]:
    """The main thread in what ``py-spy dump --json`` prints. Raises ValueError for what is something else."""
    if not isinstance(threads, list):
        raise ValueError("a list of threads is expected")
    for thread in threads:
        if isinstance(thread, dict) and (
            thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread"
        ):
            frames = thread.get("frames")
            return tuple(_frame(each) for each in frames if isinstance(each, dict)) if isinstance(frames, list) else ()
    return None


def _frame(fields: dict[str, Json]) -> Frame:
    line = fields.get("line")
    # Without its class, which it has from Python 3.11 on only.
    name = str(fields.get("name", "")).rpartition(".")[2]
    return Frame(str(fields.get("filename", "")), line if isinstance(line, int) else 0, name)


def from_faulthandler(text: str, thread: int) -> Stack:
    """The stack of a thread, by its identity, in what `faulthandler` prints; without it that of the oldest."""
    stacks: dict[int, list[Frame]] = {}
    current = 0
    for line in text.splitlines():
        begins, frame = _THREAD.match(line), _FRAME.match(line)
        if begins:
            current = int(begins[1], 16)
            stacks[current] = []
        elif frame and current:
            stacks[current].append(Frame(frame[1], int(frame[2]), frame[3]))
    if thread not in stacks and stacks:
        thread = list(stacks)[-1]
    return tuple(stacks.get(thread, ()))


def _by_signal(record: BeatRecord, pid: int, start: int) -> Optional[Stack]:
    path = record.path + STACKS
    try:
        before = os.path.getsize(path)
        if not send(pid, start, record.signal, if_caught=True):
            return None
        size, grown, until = before, 0.0, time.monotonic() + _PRINT_S
        while time.monotonic() < until:
            time.sleep(_QUIET_S / 3)
            now = os.path.getsize(path)
            if now != size:
                size, grown = now, time.monotonic()
            elif size > before and time.monotonic() - grown > _QUIET_S:
                break
        with open(path, "rb") as file:
            file.seek(before)
            text = file.read().decode(errors="replace")
        if size > before:
            os.truncate(path, 0)
    except OSError:
        return None
    return from_faulthandler(text, record.thread) if text else None


def _find_py_spy() -> str:
    """On the search path, or beside this interpreter."""
    home = os.path.dirname(sys.executable or "")
    return shutil.which("py-spy") or (shutil.which("py-spy", path=home) if home else None) or ""
