"""``python3 -m tenax.launch.deepspeed python3 train.py``: one rank per slot, on all machines of this trial, for scripts
that call ``deepspeed.init_distributed()`` or ``deepspeed.initialize()``.

DeepSpeed takes its place from the environment that torchrun sets: `tenax.launch.torch_distributed` starts the ranks,
without ssh, and without DeepSpeed's own launcher.
"""

from __future__ import annotations

import os
import sys

from tenax.launch.ranks import launch
from tenax.launch.torch_distributed import torchrun

USAGE = """\
usage: python3 -m tenax.launch.deepspeed COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as ranks of one job of DeepSpeed:

    entrypoint: python3 -m tenax.launch.deepspeed python3 train.py --deepspeed_config config.json

or trains a DeepSpeedTrial, a class in a module of your code:

    entrypoint: python3 -m tenax.launch.deepspeed --trial model_def:MyTrial
"""


def main() -> int:
    """The exit code."""
    os.environ["USE_DEEPSPEED"] = "1"
    return launch(USAGE, torchrun)


if __name__ == "__main__":
    sys.exit(main())
