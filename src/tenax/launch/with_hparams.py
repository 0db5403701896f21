"""``python3 -m tenax.launch.with_hparams train.py --lr {lr}``: a command with the hyperparameters of its trial in it.

How they are written there: `tenax.core.hparams_in_words`.

This process is replaced by the command: signals, output and exit code are its own. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import sys

from tenax.core.hparams_in_words import command_line
from tenax.core.info import get_cluster_info
from tenax.errors import InvalidInput, TenaxError
from tenax.wire.task_names import CANNOT_START, WITH_HPARAMS

USAGE = f"""\
usage: python3 -m {WITH_HPARAMS} COMMAND...

Becomes COMMAND, with the hyperparameters of this trial in the place of their names in braces:

    entrypoint: [python3, -m, {WITH_HPARAMS}, train.py, --lr, "{{lr}}", "{{amp:+--amp}}"]

A COMMAND that is a Python file (train.py), or -m MODULE, runs under this Python. {{amp:+--amp}} is --amp where amp is
true, and nothing where it is false. {{{{lr}}}} is {{lr}} as it stands.
"""


def main() -> int:
    command = sys.argv[1:]
    if command[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        if not command or (command[0].startswith("-") and command[0] != "-m"):
            raise InvalidInput(f"there is no command to start\n\n{USAGE}")
        info = get_cluster_info()
        if info is None or not info.is_trial:
            raise InvalidInput(f"{WITH_HPARAMS} is for trials of a cluster: anywhere else start the script itself")
        argv = command_line(command, info.trial.hparams, sys.executable)
        os.execvp(argv[0], argv)
    except InvalidInput as error:
        sys.stderr.write(f"{CANNOT_START}{error}\n")
        return 1
    except (TenaxError, OSError, ValueError) as error:
        sys.stderr.write(f"tenax: {' '.join(command)} cannot be started: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
