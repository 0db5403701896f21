"""``python3 -m tenax.launch.torch_distributed python3 train.py``: one rank per slot, on all machines of this trial.

Each member of the allocation runs this program. It starts torchrun of the same Python with what the cluster knows (how
many members there are, which one this is, how many slots it has, where the chief is), every rank below
`tenax.launch.wrap_rank`. Rules it keeps:

- A rank that fails ends the trial, with its exit code. Its peers fail within moments, since it is gone: the launchers
  tell one another, and only the member whose rank failed first ends by itself (`tenax.launch.failures`).
- A signal is passed on.
- Ports are those that the agent chose; ``DTRAIN_SSH_PORT`` is the launchers' own, ``C10D_PORT`` torchrun's.
- What stands before a lone ``--`` are options of torchrun, which win over ours.
"""

from __future__ import annotations

import sys

from tenax.launch.ranks import RanksHere, launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: python3 -m tenax.launch.torch_distributed [OPTIONS OF TORCHRUN --] COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as ranks of one torch.distributed job:

    entrypoint: python3 -m tenax.launch.torch_distributed python3 train.py --epochs 10

A COMMAND that is a Python file (train.py), or -m MODULE, runs under this Python. Off a cluster there is one rank, or as
many as torchrun is told to start: python3 -m tenax.launch.torch_distributed --nproc_per_node 2 -- train.py
"""


def torchrun(job: RanksHere, options: Sequence[str], command: Sequence[str], port: int) -> list[str]:
    """The words that start the ranks of this machine; ``options`` of torchrun win over ours."""
    words = [sys.executable, "-m", "tenax.launch.torchrun", "--nnodes", str(len(job.addresses))]
    words += ["--node_rank", str(job.member), "--master_addr", job.chief, "--master_port", str(port)]
    words += ["--max_restarts", "0", "--monitor_interval", "0.2"]
    if job.processes is not None:
        words += ["--nproc_per_node", str(job.processes)]
    wrapped = [sys.executable, "-m", "tenax.launch.wrap_rank", "RANK", "--"]
    return [*words, *options, "--no_python", *wrapped, *command]


def main() -> int:
    """The exit code."""
    return launch(USAGE, torchrun)


if __name__ == "__main__":
    sys.exit(main())
