"""The first program of other containers than trials': ``python -m tenax.exec.task``. Standard library only, Python 3.9.

In order: info files; a private view of the file system where one is needed; the startup hooks (the cluster's, then
``startup-hook.sh`` of what came with the task), sourced by a shell that comes back here; then the command line replaces
this process. One word is a line for the shell, several are a program and its arguments. What goes wrong on the way is
said on standard error and ends as a shell's would: 126 for a program that cannot be executed, 127 for one that is not
there, else 1.
"""

from __future__ import annotations

import os
import sys

from tenax.client.connection import fast_json
from tenax.core.info import REQUIRED
from tenax.errors import InvalidInput, TenaxError
from tenax.exec import launch, needs, prepare, private_view
from tenax.wire.task_names import ENTRYPOINT, PYTHON, RUN_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json


def main() -> int:
    try:
        missing = [name for name in (*REQUIRED, ENTRYPOINT) if name not in os.environ]
        if missing:
            raise InvalidInput(f"the environment lacks {', '.join(missing)}: this program is started by an agent")
        launch.settle_account(os.environ)
        run_dir = os.environ.get("DET_RUN_DIR") or RUN_DIRECTORY
        command = command_of(os.environ[ENTRYPOINT])
        if launch.AFTER_HOOKS not in sys.argv:
            prepare.write_cluster(os.environ, run_dir)
            private_view.give_if_needed(os.environ, run_dir, command)
            hooks = launch.hooks(run_dir)
            if hooks:
                again = [sys.executable, "-m", "tenax.exec.task", launch.AFTER_HOOKS]
                launch.replace_process(launch.sourcing(hooks, again), os.environ)
        else:
            # The hooks may have installed what needs one, or chosen another environment.
            private_view.give_if_needed(os.environ, run_dir, command)
        env = launch.with_imports(launch.with_interpreter(os.environ, sys.executable), needs.imports())
        del env[ENTRYPOINT]
        argv = argv_of(command, env)
        launch.replace_process(argv, env)
    except launch.CannotLaunch as error:
        print(f"tenax: {error}", file=sys.stderr)
        return 127 if isinstance(error.__cause__, FileNotFoundError) else 126
    except (TenaxError, OSError) as error:
        print(f"tenax: this task cannot start: {error}", file=sys.stderr)
        return 1


def command_of(encoded: str) -> list[Json]:
    """The words of the command line. Raises InvalidInput."""
    try:
        command = fast_json.loads(encoded)
    except ValueError as error:
        raise InvalidInput(f"{ENTRYPOINT} is not JSON: {error}") from None
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise InvalidInput("entrypoint is missing: give a command, as a list of strings")
    return [sys.executable if word == PYTHON and not n else word for n, word in enumerate(command)]


def argv_of(command: list[Json], env: Mapping[str, str]) -> list[str]:
    """What is executed for these words."""
    argv = [str(word) for word in command]
    if not argv:
        return ["/bin/sh", "-c", ":"]
    if len(argv) > 1:
        return argv
    # Words without a colon: what looks like the name of a class is nothing special here.
    return launch.argv_of(argv[0], env.get("PATH", "")) if ":" not in argv[0] else ["/bin/sh", "-c", argv[0]]


if __name__ == "__main__":
    sys.exit(main())
