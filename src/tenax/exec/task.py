"""The first program of other containers than trials': ``python -m tenax.exec.task``. Standard library only, Python 3.9.

In order: info files; the startup hooks (the cluster's, then ``startup-hook.sh`` of what came with the task), sourced by
a shell that comes back here; then the command line replaces this process. One word is a line for the shell, several are
a program and its arguments. What goes wrong on the way is said on standard error and ends as a shell's would: 126 for a
program that cannot be executed, 127 for one that is not there, else 1.
"""

from __future__ import annotations

import os
import sys

from tenax.client import quickjson
from tenax.core.info import DEFAULT_RUN_DIR, REQUIRED
from tenax.errors import InvalidInput, TenaxError
from tenax.exec import launch, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The command line as JSON, from the master; the program does not see it.
ENTRYPOINT = "TENAX_TASK_ENTRYPOINT"
#: As the first word: the interpreter of the place where this runs.
PYTHON = "{python}"
#: Tells the second pass of this program that the hooks have run.
_AFTER_HOOKS = "--after-hooks"


def main() -> int:
    try:
        missing = [name for name in (*REQUIRED, ENTRYPOINT) if name not in os.environ]
        if missing:
            raise InvalidInput(f"the environment lacks {', '.join(missing)}: this program is started by an agent")
        run_dir = os.environ.get("DET_RUN_DIR") or DEFAULT_RUN_DIR
        if _AFTER_HOOKS not in sys.argv:
            prepare.write_cluster(os.environ, run_dir)
            hooks = _hooks(run_dir)
            if hooks:
                again = [sys.executable, "-m", "tenax.exec.task", _AFTER_HOOKS]
                launch.replace_process(launch.sourcing(hooks, again), os.environ)
        env = launch.with_interpreter(os.environ, sys.executable)
        argv = argv_of(env.pop(ENTRYPOINT), env)
        launch.replace_process(argv, env)
    except launch.CannotLaunch as error:
        print(f"tenax: {error}", file=sys.stderr)
        return 127 if isinstance(error.__cause__, FileNotFoundError) else 126
    except (TenaxError, OSError) as error:
        print(f"tenax: this task cannot start: {error}", file=sys.stderr)
        return 1


def argv_of(encoded: str, env: Mapping[str, str]) -> list[str]:
    """The words to execute. Raises InvalidInput."""
    try:
        words = quickjson.loads(encoded)
    except ValueError as error:
        raise InvalidInput(f"{ENTRYPOINT} is not JSON: {error}") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise InvalidInput("entrypoint is missing: give a command, as a list of strings")
    argv = [sys.executable if word == PYTHON and not n else str(word) for n, word in enumerate(words)]
    if len(argv) > 1:
        return argv
    # Words without a colon: what looks like the name of a class is nothing special here.
    return launch.argv_of(argv[0], env.get("PATH", "")) if ":" not in argv[0] else ["/bin/sh", "-c", argv[0]]


def _hooks(run_dir: str) -> list[str]:
    """The cluster's hook, placed by the agent, and the one that came with the task."""
    candidates = (os.path.join(run_dir, "dynamic-tcd-startup-hook.sh"), os.path.abspath("startup-hook.sh"))
    return [path for path in candidates if os.path.isfile(path)]


if __name__ == "__main__":
    sys.exit(main())
