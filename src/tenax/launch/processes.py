"""``python3 -m tenax.launch.processes python3 train.py``: one process per slot, on all machines of this trial, whatever
they run. What `tenax.launch.torch_distributed` does, without PyTorch.

Each has ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE``, ``GROUP_RANK``, ``GROUP_WORLD_SIZE``,
``MASTER_ADDR`` and ``MASTER_PORT`` in its environment.
"""

from __future__ import annotations

import sys

from tenax.errors import InvalidInput
from tenax.launch.ranks import RanksHere, launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: python3 -m tenax.launch.processes [--nproc_per_node N --] COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as plain processes that know their rank:

    entrypoint: python3 -m tenax.launch.processes python3 train.py --epochs 10

A COMMAND that is a Python file (train.py), or -m MODULE, runs under this Python. Off a cluster there is one process, or
as many as are asked for: python3 -m tenax.launch.processes --nproc_per_node 2 -- train.py
"""


def spawned(job: RanksHere, options: Sequence[str], command: Sequence[str], port: int) -> list[str]:
    """The words that start the ranks of this machine. Raises InvalidInput."""
    count = job.processes or 1
    if options:
        number = options[1] if len(options) == 2 and options[0] in ("--nproc_per_node", "--nproc-per-node") else ""
        if not number.isdigit() or int(number) < 1 or not job.alone:
            raise InvalidInput(
                f"{' '.join(options)} is not understood: --nproc_per_node N, on one machine, is all that stands "
                "before --"
            )
        count = int(number)
    before, size = (0, count) if job.alone else (sum(job.slots[: job.member]), sum(job.slots))
    place = [before, count, size, job.member, len(job.addresses)]
    return [sys.executable, "-m", "tenax.launch.spawn", *map(str, place), f"{job.chief}:{port}", *command]


def main() -> int:
    """The exit code."""
    return launch(USAGE, spawned)


if __name__ == "__main__":
    sys.exit(main())
