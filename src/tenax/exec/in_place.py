"""Becomes a Python script in this very process, where that is the interpreter which would be started for it. Standard
library only, Python 3.9.

For an interpreter that has loaded what such scripts import (`tenax.exec.zygote`), and for one that notes
what they import (`tenax.exec.learn_imports`). From inside nothing tells it from ``python3 train.py``: arguments, paths,
``__main__``, signals, tracebacks, exit code and command line are those of a process of its own.
"""

from __future__ import annotations

import os
import sys

from tenax.exec import launch
from tenax.wire.task_names import LAUNCHER_NAMES, WITH_HPARAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import CodeType, TracebackType
    from typing import NoReturn, Optional

    from tenax.jsonvalue import JsonObject

#: What only an interpreter that starts looks for.
_AT_START = ("sitecustomize", "usercustomize")
#: In ``/proc/self/stat`` from the state on.
_ARG_START, _ARG_END, _ENV_START, _ENV_END = 45, 46, 47, 48
#: How much of the name of a process the system keeps.
_COMM = 15
_INTERRUPTED = 130


class Script:
    """``python3 train.py --lr 0.1``, or ``python3 -m package.train --lr 0.1``."""

    def __init__(self, program: str, argv: list[str], name: str, arguments: list[str], *, is_module: bool) -> None:
        """``program``: the interpreter's path; ``argv``: all words of the command line."""
        self.program = program
        self.argv = argv
        self.name = name
        self.arguments = arguments
        self.is_module = is_module

    @property
    def directory(self) -> str:
        """Where it looks first for what it imports."""
        return os.getcwd() if self.is_module else os.path.dirname(os.path.realpath(self.name))


def script_of(argv: list[str], env: Mapping[str, str], hparams: JsonObject) -> Optional[Script]:
    """What this interpreter would be started for; None for another program, for options, and for a launcher."""
    program = launch.find_program(argv[0], env.get("PATH") or os.defpath)
    if not program or not _is_this_interpreter(program):
        return None
    words = argv[1:]
    if words[:2] == ["-m", WITH_HPARAMS]:
        from tenax.core.hparams_in_words import command_line

        argv = command_line(words[2:], hparams, program)
        words = argv[1:]
        if argv[0] != program:
            return None
    if words[:1] == ["-u"] and os.environ.get("PYTHONUNBUFFERED"):
        words = words[1:]
    if words[:1] == ["-m"]:
        known = len(words) > 1 and words[1] not in LAUNCHER_NAMES and not words[1].startswith("tenax.")
        return Script(program, argv, words[1], words[2:], is_module=True) if known else None
    if not words or words[0].startswith("-") or not words[0].endswith(".py") or not os.path.isfile(words[0]):
        return None
    return Script(program, argv, words[0], words[1:], is_module=False)


def _is_this_interpreter(program: str) -> bool:
    """By another of its names at most: in another folder it may be that of another environment.

    A virtual environment may have copies instead of links.
    """
    here = os.path.dirname(os.path.abspath(sys.executable))
    if os.path.dirname(os.path.abspath(program)) != here:
        return False
    if os.path.samefile(program, sys.executable):
        return True
    names = ("python", "python3", f"python3.{sys.version_info[1]}")
    alike = os.path.getsize(program) == os.path.getsize(sys.executable)
    in_venv = os.path.exists(os.path.join(os.path.dirname(here), "pyvenv.cfg"))
    return alike and in_venv and os.path.basename(program) in names


def module_path(env: Mapping[str, str], installed: Iterable[str]) -> list[str]:
    """``sys.path`` of an interpreter that is started with this environment, without the script's own directory.

    ``installed``: what follows PYTHONPATH there.
    """
    named = env.get("PYTHONPATH", "")
    entries = [os.path.abspath(entry) for entry in named.split(os.pathsep)] if named else []
    return list(dict.fromkeys([*entries, *installed]))


def is_shadowed(directories: Iterable[str], loaded: Iterable[str]) -> str:
    """A module of these names that one of the directories has, too, and that is found there first; "" for none.

    Of what is no directory that can be read (an archive) itself.
    """
    names = {name for name in loaded if name not in sys.builtin_module_names}.union(_AT_START)
    for directory in directories:
        try:
            entries = os.listdir(directory)
        except OSError:
            if os.path.exists(directory):
                return directory
            continue
        for entry in entries:
            name, dot, suffix = entry.partition(".")
            if name not in names:
                continue
            if dot and suffix.endswith(("py", "pyc", "so", "pyd")):
                return name
            if not dot and _is_package(os.path.join(directory, name), name):
                return name
    return ""


def _is_package(path: str, name: str) -> bool:
    """Of a folder without ``__init__`` only what is one elsewhere, too, is found in both."""
    if not os.path.isdir(path):
        return False
    known = sys.modules.get(name)
    is_folder = known is not None and getattr(known, "__file__", None) is None
    return is_folder or any(entry.startswith("__init__.") for entry in os.listdir(path))


def set_up(script: Script) -> None:
    """Have all but ``__main__`` as its interpreter has it. ``sys.path`` is that of an interpreter already."""
    sys.executable = script.program
    if "orig_argv" in vars(sys):
        vars(sys)["orig_argv"] = list(script.argv)
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, script.directory)
    _reset_signals()


def become(script: Script) -> NoReturn:
    """Run what was set up and end as its interpreter would."""
    import types

    main = types.ModuleType("__main__")
    namespace = vars(main)
    namespace["__builtins__"] = sys.modules["builtins"]
    if sys.version_info < (3, 14):
        namespace["__annotations__"] = {}
    sys.modules["__main__"] = main
    status = 0
    try:
        if script.is_module:
            import runpy

            sys.argv = ["-m", *script.arguments]
            runpy._run_module_as_main(script.name)  # type: ignore[attr-defined]
        else:
            sys.argv = [script.name, *script.arguments]
            exec(_code(script.name, namespace), namespace)
    except SystemExit as error:
        status = _status_of(error)
    except BaseException as error:
        status = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        _show(error)
    _end(status)


def _code(name: str, namespace: dict[str, object]) -> CodeType:
    """Compiled, with what an interpreter says about it to the script."""
    from importlib.machinery import SourceFileLoader

    path = os.path.join(os.getcwd(), name)
    namespace.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _reset_signals() -> None:
    """As Python has them at its start."""
    import signal

    for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _status_of(error: SystemExit) -> int:
    code = error.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _show(error: BaseException) -> None:
    """What an interpreter says of an exception that nobody caught: nothing of this file is in it."""
    trace: Optional[TracebackType] = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        vars(sys)["last_exc"] = error
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())


def _end(status: int) -> NoReturn:
    """End the interpreter, wherever this was called: threads are waited for, exit functions run, files are written."""
    if status != _INTERRUPTED:
        try:
            import ctypes

            ctypes.pythonapi.Py_Exit(status)
        except ImportError:  # this Python has none
            pass
    _end_by_hand(status)


def _end_by_hand(status: int) -> NoReturn:
    """Whoever waits for this process sees what ended it."""
    import atexit
    import signal
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if status == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def show_as(argv: list[str], env: Optional[Mapping[str, str]] = None) -> None:
    """Have the system show this command line and this environment for the process, as far as there is room for them.

    The room is that of the words and variables with which the program was started; where ``env`` is given, nothing may
    point into those variables any more. By its environment an agent finds what belongs to a container. Raises OSError
    where the system does not allow it; Linux only.
    """
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    arg_start, arg_end, env_start, env_end = (int(fields[n]) for n in (_ARG_START, _ARG_END, _ENV_START, _ENV_END))
    words = b" ".join(os.fsencode(word) for word in argv)
    # The last byte says that this is one text, whose end is the first NUL.
    shown = words[: arg_end - arg_start - 2].ljust(arg_end - arg_start - 1, b"\0") + b" "
    rooms = [(arg_start, arg_end, shown)]
    if env is not None:
        variables = sorted(env.items(), key=lambda item: item[0] != "DET_CONTAINER_ID")
        content = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables)
        rooms.append((env_start, env_end, content))
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for start, end, data in rooms:
            memory.seek(start)
            memory.write(data[: end - start].ljust(end - start, b"\0"))
    with open("/proc/self/comm", "wb", buffering=0) as file:
        file.write(os.fsencode(os.path.basename(argv[0]))[:_COMM])
