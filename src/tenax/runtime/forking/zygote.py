"""An interpreter of a task's own environment that has loaded what its script imports, and forks supervisors as the
forkserver does: ``python zygote.py <socket> <pipe> <notes> <megabytes> <spaces>``. Standard library only, Python 3.9.

``notes``: modules to load, as `tenax.exec.learn_imports` notes them. The pipe gets one line of JSON: ``{"ready": true,
"path": [...]}``, or ``{"refused": "<why>", "at": <line of the notes, from 0>}``, after which this program ends. The
spaces make room for the command lines of scripts (`tenax.exec.in_place.show_as`), a variable for their environments.

Rules it keeps:

- Installed packages only: the standard library, site-packages, and tenax itself. Nothing of a user's is read, and
  nothing that was found elsewhere than when it was noted.
- A fork has everything, and shares nothing: what begins a thread that survives no fork, keeps a file or device open or
  prints while it is imported is refused, and left to the scripts; so is more memory than it may take.
- It ends with the agent: at the end of the socket, and amid imports after `MAX_IMPORT_S`.
"""

from __future__ import annotations

import os
import sys

#: Of a variable and of words that only make room.
ROOM = "TENAX_ROOM"
ROOM_BYTES = 100_000
ROOM_OF_WORDS = 8_000
MAX_IMPORT_S = 120
#: The first program of a trial, which becomes its script.
_PROGRAM = "tenax.exec.trial"


class Refused(Exception):
    """Scripts cannot be forked from what this module does when it is imported, or from here at all."""


class Loading:
    """Imports what was noted, and looks after each what it left behind."""

    def __init__(self, notes: list[tuple[str, str]], places: tuple[str, ...], megabytes: int) -> None:
        """``places``: directories of what is installed, each with a slash at its end."""
        self._notes = notes
        self._places = places
        self._megabytes = megabytes
        self._open = _descriptors()
        self.at = 0

    def load(self) -> None:
        """Raises Refused."""
        import importlib
        from importlib.util import find_spec

        for at, (name, origin) in enumerate(self._notes):
            self.at = at
            if name in sys.modules or not self._is_installed(origin):
                continue
            try:
                spec = find_spec(name)
                if spec is not None and spec.origin == origin:
                    importlib.import_module(name)
            except Exception:
                # In the script it may not fail: something else may have been imported before.
                continue
            self.check(name)

    def check(self, name: str) -> None:
        """Raises Refused."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if os.fstat(1).st_size or os.fstat(2).st_size:
            raise Refused(f"{name} prints when it is imported")
        if not _descriptors() <= self._open:
            raise Refused(f"{name} keeps something open")
        if _threads() > 1:
            # Those of linear algebra end before a fork, and begin again when they are needed.
            _fork_once()
            if _threads() > 1:
                raise Refused(f"{name} begins a thread")
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[1])
        if pages * os.sysconf("SC_PAGE_SIZE") > self._megabytes << 20:
            raise Refused(f"it would take more than {self._megabytes} MiB")

    def _is_installed(self, origin: str) -> bool:
        return origin in ("built-in", "frozen") or origin.startswith(self._places)


def _descriptors() -> set[str]:
    """What is open, and what it is."""
    opened = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            opened.add(f"{name} {os.readlink('/proc/self/fd/' + name)}")
        except OSError:  # the listing's own
            continue
    return opened


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _fork_once() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _notes_of(path: str) -> list[tuple[str, str]]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return [(words[0], words[1]) for words in lines if len(words) == 2]


def _renew_environment() -> None:
    """Out of the place that the program was given its variables in, which will show others."""
    environment = {name: value for name, value in os.environ.items() if name != ROOM}
    os.environ.clear()
    os.environ.update(environment)


def _installed() -> tuple[str, ...]:
    import site
    import sysconfig

    import tenax

    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.update(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        places.add(site.getusersitepackages())
    places.add(os.path.dirname(os.path.abspath(tenax.__file__)))
    return tuple(place + os.sep for place in places if place)


def main(arguments: list[str]) -> int:
    door, status, notes, megabytes, _ = arguments
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    import gc
    import json
    import signal
    import socket

    signal.alarm(MAX_IMPORT_S)
    _renew_environment()

    from tenax.exec import in_place, trial, warm_start  # noqa: F401 - the first program, loaded
    from tenax.runtime import main_process, supervisor
    from tenax.runtime.forking import forkserver

    before = dict(os.environ)
    temporary = os.environ["TMPDIR"]

    def say(**words: object) -> None:
        os.write(int(status), json.dumps(words).encode() + b"\n")
        os.close(int(status))

    loading = Loading(_notes_of(notes), _installed(), int(megabytes))
    try:
        in_place.show_as([sys.executable, os.path.abspath(__file__), notes], os.environ)
        forkserver.name_process(b"zygote")
        loading.load()
        import ctypes  # noqa: F401 - ends an interpreter

        loading.check("tenax")
    except (Refused, OSError) as error:
        say(refused=str(error), at=loading.at)
        return 1
    signal.alarm(0)
    names = frozenset(name.partition(".")[0] for name in sys.modules)
    made = warm_start.Zygote(list(sys.path), names)
    made.changes = {name: value for name, value in os.environ.items() if before.get(name) != value}
    made.temporary = temporary
    warm_start.zygote = made
    gc.collect()
    gc.freeze()
    # Supervisors live on without; a script begins with it.
    gc.disable()
    say(ready=True, path=made.installed)
    # Children are not waited for: their ends are on disk, and in a pidfd of the agent's.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    execute = forkserver.executing({_PROGRAM.encode(): _first_program}, main_process.execute)
    forkserver.serve(socket.socket(fileno=int(door)), lambda words: supervisor.main(words, execute))
    return 0


def _first_program() -> int:
    from tenax.exec import in_place, trial

    # From now on whoever looks for what belongs to the container finds it.
    in_place.show_as([sys.executable, "-m", _PROGRAM], os.environ)
    return trial.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
