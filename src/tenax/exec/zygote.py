"""An interpreter of a task's own environment that has loaded what its script imports, and forks supervisors as the
forkserver does: ``python zygote.py <socket> <pipe> <pipe of output> <notes> <megabytes> <spaces>``. Standard library
only, Python 3.9.

``notes``: modules to load, as `tenax.exec.learn_imports` notes them. The pipe gets one line of JSON: ``{"ready": true,
"stamps": {<path>: [<modified at, ns>, <bytes>]}}`` of all that it has read, or ``{"refused": "<why>", "at": <line of
the notes, from 0>}``, after which this program ends. The spaces make room for the command lines of scripts
(`tenax.exec.in_place.show_as`), a variable for their environments.

Rules it keeps:

- Installed packages only: the standard library, site-packages, and tenax itself. Nothing of a user's is read, nothing
  that is installed in place, and nothing that was found elsewhere than when it was noted.
- Each script has everything, and shares nothing: what an import leaves behind that a fork has not, or that two forks
  would have in common, is refused, and left to the scripts (`Loading.check`); so is more memory than it may take.
- It is ready once a fork of it has forked. It ends with the agent: at the end of the socket, or killed as the agent is;
  and amid imports after `MAX_IMPORT_S`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import PurePath
    from random import Random

    from tenax.exec.warm_start import Preloaded

MAX_IMPORT_S = 120
#: How long a fork of a fork may take before nothing is forked from here.
_FORKS_WITHIN_MS = 4_000
_MADV_COLLAPSE = 25
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HUGE = 2 << 20
#: So much at a time, between two looks for requests: some milliseconds.
_PIECE = 8 << 20
#: The first program of a trial, which becomes its script.
_PROGRAM = "tenax.exec.trial"


class NotForScripts(Exception):
    """Scripts cannot be forked from what this module does when it is imported, or from here at all."""

    def __init__(self, why: str, at: int = -1) -> None:
        """``at``: line of the notes with that module, from 0; below that: of none."""
        super().__init__(why)
        self.at = at


class Loading:
    """Imports what was noted, and looks after each what it left behind."""

    def __init__(self, notes: list[tuple[str, str]], output: int, megabytes: int) -> None:
        """``output``: what is printed here can be read there."""
        self._notes = notes
        self._origins = dict(notes)
        self._places = _places()
        self._output = output
        self._megabytes = megabytes
        self.unseeded: list[Random] = []
        self._note_unseeded()
        self._known = set(sys.modules)
        self._open = _descriptors()
        self._state = _state()
        self._environment = dict(os.environ)
        self.temporary = os.environ["TMPDIR"]
        if _handlers() != _usual_handlers():
            raise NotForScripts("its environment handles signals")

    def load(self) -> None:
        """Raises NotForScripts."""
        import importlib
        from importlib.util import find_spec

        for at, (name, origin) in enumerate(self._notes):
            if name in sys.modules or not (self._is_installed(origin) or _is_tenax(name)):
                continue
            try:
                spec = find_spec(name)
                if spec is not None and (spec.origin == origin or _is_tenax(name)):
                    importlib.import_module(name)
                self.check(name)
            except NotForScripts as refused:
                refused.at = at
                raise
            except Exception as error:
                # In the script it may not fail: something else may have been imported before.
                raise NotForScripts(f"{name} cannot be imported here: {error}", at) from None

    def check(self, name: str) -> None:
        """Raises NotForScripts for what was imported since the last one."""
        self._check_modules(name)
        self._check_process(name)
        if any(self._environment[variable] != os.environ.get(variable) for variable in self._environment):
            raise NotForScripts(f"{name} changes a variable of the environment")
        # Folders are made again where they are not.
        if any(files for _, _, files in os.walk(self.temporary)):
            raise NotForScripts(f"{name} makes temporary files")
        if _resident() > self._megabytes << 20:
            raise NotForScripts(f"it would take more than {self._megabytes} MiB")

    def _check_modules(self, name: str) -> None:
        for other in set(sys.modules) - self._known:
            spec = getattr(sys.modules[other], "__spec__", None)
            origin = getattr(spec, "origin", None)
            # What comes from no file was made by a module.
            if origin is not None and os.path.isfile(origin) and not self._is_installed(origin):
                raise NotForScripts(f"{name} imports {other}, which is not installed")
            if self._origins.get(other, origin) != origin and not _is_tenax(other):
                raise NotForScripts(f"{name} imports another {other} than the script")
        self._known = set(sys.modules)

    def _check_process(self, name: str) -> None:
        import select

        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        if poll.poll(0):
            raise NotForScripts(f"{name} prints when it is imported")
        if not _descriptors() <= self._open:
            raise NotForScripts(f"{name} keeps something open")
        if _has_children():
            raise NotForScripts(f"{name} starts a process")
        if _threads() > 1:
            # Those of linear algebra end before a fork, and begin again when they are needed.
            _check_forks()
            if _threads() > 1:
                raise NotForScripts(f"{name} begins a thread")
        if _handlers() != _usual_handlers():
            raise NotForScripts(f"{name} handles signals")
        if _state() != self._state:
            raise NotForScripts(f"{name} changes what a process begins with")
        with open("/proc/self/maps", "rb") as file:
            if b" rw-s " in file.read():
                raise NotForScripts(f"{name} has memory that forks would share")

    def check_values(self) -> None:
        """What modules keep that would be the same in each script. Raises NotForScripts."""
        from tempfile import TemporaryDirectory

        numpy = sys.modules.get("numpy.random")
        generators = [getattr(numpy, kind) for kind in ("Generator", "RandomState") if numpy is not None]
        own = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
        for name, module in list(sys.modules.items()):
            for value in list(getattr(module, "__dict__", {}).values()):
                kind = type(value)
                if kind is TemporaryDirectory:
                    raise self._refused_for(name, "makes a temporary directory")
                if kind in generators and value is not own:
                    raise self._refused_for(name, "has random numbers of its own")

    def _note_unseeded(self) -> None:
        """Generators that are made from now on without a seed: a script's process seeds them again."""
        from random import Random

        original = self._seed = Random.seed
        unseeded = self.unseeded

        def seed(self: Random, a: object = None, version: int = 2) -> None:
            if a is None:
                unseeded.append(self)
            original(self, a, version)  # type: ignore[arg-type]

        Random.seed = seed  # type: ignore[method-assign]

    def end(self) -> None:
        """Leave Python's library as it was."""
        from random import Random

        Random.seed = self._seed  # type: ignore[method-assign]

    def constants(self) -> list[tuple[dict[str, object], str, str | PurePath]]:
        """What modules keep that names the directory of temporary files: each script has another one."""
        from pathlib import PurePath

        return [
            (vars(module), name, value)
            for module in list(sys.modules.values())
            for name, value in list(getattr(module, "__dict__", {}).items())
            if isinstance(value, (str, PurePath)) and self.temporary in str(value)
        ]

    def _refused_for(self, name: str, why: str) -> NotForScripts:
        package = name.partition(".")[0]
        first = (at for at, (noted, _) in enumerate(self._notes) if noted.partition(".")[0] == package)
        return NotForScripts(f"{name} {why}", next(first, -1))

    def stamps(self) -> dict[str, tuple[int, int]]:
        """When what was read was last changed, of this Python's own library the directories alone."""
        from tenax.host.disk import stamp

        packages = tuple(place for place in self._places if "-packages" in place)
        files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
        return {path: stamp(path) for path in {*sys.path, *(file for file in files if file.startswith(packages))}}

    def _is_installed(self, origin: str) -> bool:
        return origin in ("built-in", "frozen") or os.path.realpath(origin).startswith(self._places)


def _is_tenax(name: str) -> bool:
    """Of tenax there is one here, whatever was noted: the library that this program is from."""
    return name.partition(".")[0] == "tenax"


def _places() -> tuple[str, ...]:
    """Directories of what is installed, and of tenax."""
    import site
    import sysconfig

    import tenax

    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.update(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        places.add(site.getusersitepackages())
    places.add(os.path.dirname(os.path.abspath(tenax.__file__)))
    return tuple({path + os.sep for place in places if place for path in (place, os.path.realpath(place))})


def _resident() -> int:
    """Bytes of memory that are in use."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _handlers() -> list[object]:
    import signal

    return [signal.getsignal(number) for number in sorted(signal.valid_signals())]


def _usual_handlers() -> list[object]:
    """Those that Python itself has."""
    import signal

    usual: dict[int, object] = dict.fromkeys((signal.SIGPIPE, signal.SIGXFSZ), signal.SIG_IGN)
    usual[signal.SIGINT] = signal.default_int_handler
    return [usual.get(number, signal.SIG_DFL) for number in sorted(signal.valid_signals())]


def _state() -> tuple[object, ...]:
    """What a process begins with and hands on: masks, limits, priority, directory, processors."""
    import resource
    import signal

    mask = os.umask(0o022)
    os.umask(mask)
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    limits = [resource.getrlimit(getattr(resource, name)) for name in names]
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return mask, signals, limits, os.getpriority(os.PRIO_PROCESS, 0), os.getcwd(), os.sched_getaffinity(0)


def _check_forks() -> None:
    """A fork of a fork, as a supervisor and its task are. Raises NotForScripts."""
    import select
    import signal

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            inner = os.fork()
            if inner == 0:
                os._exit(0)
            os.waitpid(inner, 0)
            os.write(write, b"1")
        finally:
            os._exit(0)
    os.close(write)
    poll = select.poll()
    poll.register(read, select.POLLIN)
    has_forked = bool(poll.poll(_FORKS_WITHIN_MS)) and os.read(read, 1) == b"1"
    os.close(read)
    if not has_forked:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not has_forked:
        raise NotForScripts("what is imported keeps it from forking")


def _notes_of(path: str) -> list[tuple[str, str]]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return [(words[0], words[1]) for words in lines if len(words) == 2]


def _renew_environment(room: str) -> None:
    """Out of the place that the program was given its variables in, which will show others."""
    environment = {name: value for name, value in os.environ.items() if name != room}
    os.environ.clear()
    os.environ.update(environment)


def main(arguments: list[str]) -> int:
    door, status, output, notes, megabytes, _ = arguments
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    sys.argv = [""]
    import json
    import signal

    from tenax.runtime import procfs

    # As soon as the agent is killed, also where somebody has stopped it; what it forks does not inherit that.
    procfs.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Whatever keeps an import from ending.
    signal.alarm(MAX_IMPORT_S)
    # What a module starts and lets go of is a child of this program's, and seen.
    procfs.prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def say(**words: object) -> None:
        with open(int(status), "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(words) + "\n")

    try:
        loaded, stamps = _preload(notes, int(output), int(megabytes))
    except Exception as error:
        # Before the agent hears of it, and ends this program.
        for pid in procfs.descendants(os.getpid())[0]:
            procfs.quietly(os.kill, pid, signal.SIGKILL)
        refused = isinstance(error, (NotForScripts, OSError))
        say(refused=str(error) if refused else repr(error), at=getattr(error, "at", -1))
        return 1
    signal.alarm(0)
    procfs.prctl(_PR_SET_CHILD_SUBREAPER, 0)
    os.close(int(output))
    say(ready=True, stamps=stamps)
    _serve(int(door), loaded, int(megabytes))
    return 0


def _preload(notes: str, output: int, megabytes: int) -> tuple[Preloaded, dict[str, tuple[int, int]]]:
    """Raises NotForScripts and OSError."""
    from tenax.exec import in_place, trial, warm_start  # noqa: F401 - what is forked, loaded
    from tenax.runtime import supervisor  # noqa: F401 - as well
    from tenax.runtime.forking import forkserver
    from tenax.wire.imports import ROOM

    _renew_environment(ROOM)
    in_place.show_as([sys.executable, os.path.abspath(__file__), notes], os.environ)
    forkserver.name_process(b"zygote")
    library = sys.path[0]
    before = dict(os.environ)
    loading = Loading(_notes_of(notes), output, megabytes)
    try:
        loading.load()
        import ctypes  # noqa: F401 - ends an interpreter

        loading.check("tenax")
        loading.check_values()
    finally:
        loading.end()
    _check_forks()
    loaded = warm_start.Preloaded(
        library,
        [path for path in sys.path if path != library],
        frozenset(name.partition(".")[0] for name in sys.modules),
        {name: value for name, value in os.environ.items() if name not in before},
        loading.temporary,
        loading.constants(),
        loading.unseeded,
    )
    return loaded, loading.stamps()


def _serve(door: int, loaded: Preloaded, megabytes: int) -> None:
    """Fork for each request, until the other end is closed."""
    import gc
    import select
    import signal
    import socket

    from tenax.exec import warm_start
    from tenax.runtime import main_process, procfs, supervisor
    from tenax.runtime.forking import forkserver

    warm_start.preloaded = loaded
    execute = forkserver.executing({_PROGRAM.encode(): _first_program}, main_process.execute)

    def supervise(words: list[str]) -> int:
        # The system's killer for want of memory takes an interpreter that forks, or a task, before a supervisor.
        procfs.quietly(procfs.put, "/proc/self/oom_score_adj", b"0")
        return supervisor.main(words, execute)

    procfs.quietly(procfs.put, "/proc/self/oom_score_adj", b"300")
    # Children are not waited for: their ends are on disk, and in a pidfd of the agent's.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    # Supervisors live on without; a script begins with it.
    gc.disable()
    requests = socket.socket(fileno=door)
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    for start, size in _ranges():
        while waiting.poll(0):
            if not forkserver.serve_one(requests, supervise):
                return
        if _resident() < megabytes << 20:
            _collapse(start, size)
    forkserver.serve(requests, supervise)


def _ranges() -> list[tuple[int, int]]:
    """Anonymous memory that is in use and that whole huge pages lie in, piece by piece: address, bytes."""
    ranges: list[tuple[int, int]] = []
    start = end = 0
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                is_anonymous = words[1] == "rw-p" and (len(words) < 6 or words[5] == "[heap]")
                start, end = (int(number, 16) for number in words[0].split("-")) if is_anonymous else (0, 0)
            elif words[0] == "Rss:" and end and int(words[1]) * 1024 * 4 > (end - start) * 3:
                first, last = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
                ranges += [(at, min(_PIECE, last - at)) for at in range(first, last, _PIECE)]
    return ranges


def _collapse(start: int, size: int) -> None:
    """Into huge pages, where the system can: a fork copies what tells of each page."""
    import ctypes

    ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_COLLAPSE)


def _first_program() -> int:
    from tenax.exec import in_place, trial

    # From now on whoever looks for what belongs to the container finds it.
    in_place.show_as([sys.executable, "-m", _PROGRAM], os.environ)
    return trial.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
