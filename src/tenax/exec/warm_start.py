"""What a trial's first program does about imports before it becomes the script. Standard library only, Python 3.9.

Each of these returns where the script is to start in an interpreter of its own, as it does where there is nothing to
gain or something would differ.
"""

from __future__ import annotations

import os
import sys

from tenax.exec import in_place, launch
from tenax.exec.private_view import HERE, SWITCH
from tenax.host.disk import stamp
from tenax.wire.task_names import LEARN_IMPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePath
    from random import Random

    from tenax.jsonvalue import JsonObject

#: Of matplotlib, numba and python-dotenv.
_SETTINGS = ("matplotlibrc", ".numba_config.yaml", ".env")


class Preloaded:
    """What this process has of the interpreter that it was forked from."""

    def __init__(
        self,
        library: str,
        installed: list[str],
        loaded: frozenset[str],
        changes: dict[str, str],
        temporary: str,
        constants: list[tuple[dict[str, object], str, str | PurePath]],
        unseeded: list[Random],
    ) -> None:
        """``library``: where its tenax is; ``installed``: its `sys.path` behind that; ``loaded``: names of modules,
        without those below them; ``changes``: variables that imports have set, while ``temporary`` was the directory
        for temporary files; ``constants``: what modules keep that names it; ``unseeded``: generators without a seed."""
        self.constants = constants
        self.unseeded = unseeded
        self.installed = installed
        self.loaded = loaded
        self.changes = changes
        self.temporary = temporary
        self.stamps = {path: stamp(path) for path in (library, *installed)}

    def is_current(self) -> bool:
        """Whether nothing was installed or removed since."""
        return all(stamp(path) == known for path, known in self.stamps.items())


#: Set in a process that was forked from one.
preloaded: Preloaded | None = None


def start_script(argv: list[str], env: dict[str, str], hparams: JsonObject) -> None:
    """Become the script that ``argv`` names, if this process can; ``env``: its environment. Raises InvalidInput."""
    notes = env.pop(LEARN_IMPORTS, "")
    if launch.AFTER_HOOKS in sys.argv or env.get(SWITCH) == HERE or not (notes or preloaded):
        return
    script = in_place.script_of(argv, env, hparams)
    if script is None:
        return
    own = [script.directory, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    if in_place.is_shadowed(own, _standard_modules()):
        return
    if preloaded is not None:
        _start_here(preloaded, script, env)
    elif notes:
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "learn_imports.py")
        launch.replace_process([script.argv[0], program, *script.argv[1:]], {**env, LEARN_IMPORTS: notes})


def _start_here(loaded: Preloaded, script: in_place.Script, env: dict[str, str]) -> None:
    path = in_place.module_path(env, loaded.installed)
    own = [script.directory, *(entry for entry in path if entry not in loaded.stamps)]
    if in_place.is_shadowed(own, loaded.loaded) or _has_settings(own) or not loaded.is_current():
        return
    try:
        in_place.show_as(script.argv, env)
    except OSError:
        return
    temporary = env.get("TMPDIR", loaded.temporary)
    for name, value in loaded.changes.items():
        env.setdefault(name, value.replace(loaded.temporary, temporary))
    for namespace, name, place in loaded.constants:
        namespace[name] = type(place)(str(place).replace(loaded.temporary, temporary))
    os.environ.clear()
    os.environ.update(env)
    _renew_state(loaded)
    sys.path[:] = path
    in_place.set_up(script)
    in_place.become(script)


def _standard_modules() -> frozenset[str]:
    """Names of Python's own library, some of which are loaded before a script here."""
    known: frozenset[str] | None = vars(sys).get("stdlib_module_names")
    if known is not None:
        return known
    names = os.listdir(os.path.dirname(os.__file__))
    return frozenset(name.partition(".")[0] for name in names) - {"test"}


def _has_settings(directories: Iterable[str]) -> bool:
    """Whether there is a file that packages read from the current directory when they are imported."""
    return any(os.path.exists(os.path.join(place, name)) for place in [os.curdir, *directories] for name in _SETTINGS)


def _renew_state(loaded: Preloaded) -> None:
    """What is another in each process that imports these modules."""
    import gc

    gc.enable()
    if "faulthandler" in sys.modules or os.environ.get("PYTHONFAULTHANDLER"):
        import faulthandler

        if faulthandler.is_enabled():
            faulthandler.disable()
            faulthandler.enable()
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
        processes.current_process().authkey = os.urandom(32)
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # type: ignore[attr-defined]
    for generator in loaded.unseeded:
        generator.seed()
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    logging = sys.modules.get("logging")
    if logging is not None:
        import time

        now = time.time_ns() if sys.version_info >= (3, 13) else time.time()
        logging._startTime = now  # type: ignore[attr-defined]
