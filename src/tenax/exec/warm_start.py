"""What a trial's first program does about imports before it becomes the script. Standard library only, Python 3.9.

Each of these returns where the script is to start in an interpreter of its own, as it does where there is nothing to
gain or something would differ.
"""

from __future__ import annotations

import os
import sys

from tenax.exec import in_place, launch
from tenax.exec.private_view import SWITCH
from tenax.wire.task_names import LEARN_IMPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.jsonvalue import JsonObject


class Zygote:
    """What this process has of the interpreter that it was forked from."""

    def __init__(self, installed: list[str], loaded: frozenset[str]) -> None:
        """``installed``: its `sys.path` behind PYTHONPATH; ``loaded``: names of modules, without those below them."""
        self.installed = installed
        self.loaded = loaded
        #: By directory, when it last changed.
        self.stamps = {path: _changed_at(path) for path in installed}
        #: What imports have changed in the environment, and the directory for temporary files at that time.
        self.changes: dict[str, str] = {}
        self.temporary = ""

    def is_current(self) -> bool:
        """Whether nothing was installed or removed since."""
        return all(_changed_at(path) == stamp for path, stamp in self.stamps.items())


#: Set in a process that was forked from one.
zygote: Zygote | None = None


def start_script(argv: list[str], env: dict[str, str], hparams: JsonObject) -> None:
    """Become the script that ``argv`` names, if this process can; ``env``: its environment. Raises InvalidInput."""
    notes = env.pop(LEARN_IMPORTS, "")
    if launch.AFTER_HOOKS in sys.argv or env.get(SWITCH) == "here" or not (notes or zygote):
        return
    script = in_place.script_of(argv, env, hparams)
    if script is None:
        return
    if zygote is not None:
        _continue_from(zygote, script, env)
    elif notes:
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "learn_imports.py")
        launch.replace_process([script.argv[0], program, *script.argv[1:]], {**env, LEARN_IMPORTS: notes})


def _continue_from(zygote: Zygote, script: in_place.Script, env: dict[str, str]) -> None:
    path = in_place.module_path(env, zygote.installed)
    own = [script.directory, *(entry for entry in path if entry not in zygote.stamps)]
    if in_place.is_shadowed(own, zygote.loaded) or not zygote.is_current():
        return
    for name, value in zygote.changes.items():
        env.setdefault(name, value.replace(zygote.temporary, env.get("TMPDIR", zygote.temporary)))
    os.environ.clear()
    os.environ.update(env)
    _renew_state()
    in_place.show_as(script.argv, env)
    sys.path[:] = path
    in_place.become(script)


def _renew_state() -> None:
    """What is another in each process that imports these modules."""
    import gc

    gc.enable()
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # type: ignore[attr-defined]
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    logging = sys.modules.get("logging")
    if logging is not None:
        import time

        now = time.time_ns() if sys.version_info >= (3, 13) else time.time()
        logging._startTime = now  # type: ignore[attr-defined]


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
