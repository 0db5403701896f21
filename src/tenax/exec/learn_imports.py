"""``python3 learn_imports.py train.py ...``: the script, in an interpreter that notes what it imports. Standard library
only, Python 3.9.

Of the second trial of the same code; those that follow start in an interpreter that has it loaded already
(`tenax.exec.zygote`). A line per module, in the order of their imports, is appended to the file that the variable
`LEARN_IMPORTS` names: its name, a tab, the file it came from; a last line at the end of the script
(`tenax.wire.imports`).

Rules it keeps:

- What the script imports after it has set something is not noted, as it may depend on that: a variable
  (``KERAS_BACKEND`` before ``import keras``), `sys.path`, directory, processors, handlers of signals
  and logs. What a module sets while it is imported it sets there, too.
- A file that cannot be written ends the notes, and nothing else.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
    from typing import Optional

#: The level of logs that nobody has set.
_WARNING = 30


class ImportNotes:
    """Stands first among the finders, finds nothing, and notes what it is to find."""

    def __init__(self, path: str, ending: str) -> None:
        """``ending``: the last line of notes to which nothing more is to come."""
        self._ending = ending
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._identity = _identity(self._file)
        except OSError:
            self._file = -1
        self._pending: list[str] = []
        self._state = _state()
        own = (os.getcwd(), os.environ.get("DET_RUN_DIR") or os.getcwd())
        self._places = tuple(place + os.sep for place in sys.path if place and not place.startswith(own))

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if self._file >= 0:
            self._write()
            state = _state()
            if state != self._state and not self._is_amid_import():
                self.end(complete=True)
            self._state = state
            self._pending.append(name)
        return None

    def end(self, *, complete: bool) -> None:
        """Note nothing more. ``complete``: nobody need wait for more."""
        if self._file >= 0:
            self._write()
            if complete:
                self._put(self._ending + "\n")
        self._close()

    def _close(self) -> None:
        if self._is_open():
            os.close(self._file)
        self._file = -1

    def _is_open(self) -> bool:
        """Whether the descriptor is that of the notes: a script may close all, and open files of its own."""
        try:
            return self._file >= 0 and _identity(self._file) == self._identity
        except OSError:
            return False

    def _write(self) -> None:
        """What has been imported meanwhile of what was to be found; what is amid its import stays."""
        pending, self._pending = self._pending, []
        for name in pending:
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if getattr(spec, "_initializing", False):
                self._pending.append(name)
            elif spec is not None and spec.origin and "\n" not in spec.origin:
                self._put(f"{name}\t{spec.origin}\n")

    def _put(self, line: str) -> None:
        try:
            if self._is_open():
                os.write(self._file, line.encode("utf-8", "surrogateescape"))
            else:
                self._file = -1
        except OSError:
            self._close()

    def _is_amid_import(self) -> bool:
        """Whether a module that is installed is being imported, here and now."""
        frame: Optional[FrameType] = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            is_own = code.co_filename == __file__
            if code.co_name == "<module>" and code.co_filename.startswith(self._places) and not is_own:
                return True
            frame = frame.f_back
        return False


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _state() -> tuple[object, ...]:
    """What a script may set for the imports that follow."""
    handlers = tuple(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1))
    root = getattr(sys.modules.get("logging"), "root", None)
    logs = (tuple(root.handlers), root.level) if root is not None else ((), _WARNING)
    contexts = sys.modules.get("multiprocessing.context")
    method = getattr(getattr(contexts, "_default_context", None), "_actual_context", None)
    return os.environb.copy(), tuple(sys.path), os.getcwd(), os.sched_getaffinity(0), handlers, logs, method


def main() -> None:
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    import atexit
    import contextlib

    # The library that this program is from, as that of the interpreter which will load the imports.
    library = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, library)
    from tenax.exec import in_place
    from tenax.wire.imports import COMPLETE
    from tenax.wire.task_names import LEARN_IMPORTS

    del sys.path[0]
    path = os.environ.pop(LEARN_IMPORTS)
    argv = [*getattr(sys, "orig_argv", ["python3"])[:1], *sys.argv[1:]]
    script = in_place.script_of(argv, os.environ, {})
    if script is None:
        raise SystemExit(f"tenax: {' '.join(argv)} is no script of this Python")
    with contextlib.suppress(OSError):  # then it shows this program
        in_place.show_as(argv)
    in_place.set_up(script)
    notes = ImportNotes(path, COMPLETE)
    atexit.register(notes.end, complete=True)
    sys.meta_path.insert(0, notes)
    in_place.become(script)


if __name__ == "__main__":
    main()
