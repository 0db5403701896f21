"""``python3 -m tenax.launch.deepspeed python3 train.py``: one rank per slot, on all machines of this trial, for scripts
that call ``deepspeed.init_distributed()`` or ``deepspeed.initialize()``.

DeepSpeed takes its place from the environment that torchrun sets: `tenax.launch.torch_distributed` starts the ranks,
without ssh, and without DeepSpeed's own launcher.
"""

from __future__ import annotations

import os
import sys

from tenax.core.spool import say
from tenax.launch.ranks import launch
from tenax.launch.torch_distributed import torchrun

USAGE = """\
usage: python3 -m tenax.launch.deepspeed COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as ranks of one job of DeepSpeed:

    entrypoint: python3 -m tenax.launch.deepspeed python3 train.py --deepspeed_config config.json
"""


def main() -> int:
    """The exit code."""
    if "--trial" in sys.argv[1:2]:
        say(
            "DeepSpeedTrial is not served here: it takes the package determined==0.38.1 in the task's environment, and "
            "that package's own launcher. A script of your own needs no Trial: name it in place of --trial"
        )
        return 1
    os.environ["USE_DEEPSPEED"] = "1"
    return launch(USAGE, torchrun)


if __name__ == "__main__":
    sys.exit(main())
