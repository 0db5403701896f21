"""``python3 -m tenax.launch.horovod python3 train.py``: one rank per slot, on all machines of this trial, for scripts
that call ``hvd.init()``.

Horovod's own launcher reaches other machines by ssh. Here the launcher of each machine starts its ranks
(`tenax.launch.horovod_ranks`) with what Horovod takes from the environment, and they meet at Horovod's own rendezvous
server, on the first machine: no keys, no sshd. It has never been run with Horovod itself.
"""

from __future__ import annotations

import os
import sys

from tenax.core.spool import say
from tenax.launch.ranks import RanksHere, launch
from tenax.launch.torch_distributed import torchrun
from tenax.wire.task_names import CLASS_TRAINER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: python3 -m tenax.launch.horovod [--autohorovod] [OPTIONS OF HOROVODRUN --] COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as ranks of one job of Horovod:

    entrypoint: python3 -m tenax.launch.horovod python3 train.py --epochs 10
    entrypoint: python3 -m tenax.launch.horovod --fusion-threshold-mb 64 -- python3 train.py

Options of horovodrun that set how Horovod works are taken; which ranks there are, and where, the cluster says. With
--autohorovod a trial of one slot runs COMMAND without Horovod. --trial model_def:MyTrial in place of COMMAND trains a
class in a module of your code, by torch.distributed. Off a cluster there is one rank, or as many as are asked for:
python3 -m tenax.launch.horovod -np 2 -- train.py
"""
#: Removed before options and the command are told apart.
_AUTO = "--autohorovod"


def horovod(job: RanksHere, options: Sequence[str], command: Sequence[str], port: int) -> list[str]:
    """The words that start the ranks of this machine."""
    if CLASS_TRAINER in command:
        if options:
            say(f"a class is trained by torch.distributed: {' '.join(options)} changes nothing")
        return torchrun(job, (), command, port)
    place = [str(job.member), ",".join(map(str, job.slots)), f"{job.chief}:{port}"]
    return [sys.executable, "-m", "tenax.launch.horovod_ranks", *place, *options, "--", *command]


def horovod_if_several(job: RanksHere, options: Sequence[str], command: Sequence[str], port: int) -> list[str]:
    """The same, and the command alone where there is one slot."""
    if job.alone and job.processes in (None, 1) and not options and CLASS_TRAINER not in command:
        return [sys.executable, "-m", "tenax.launch.wrap_rank", "0", "--", *command]
    return horovod(job, options, command, port)


def main() -> int:
    """The exit code."""
    os.environ["USE_HOROVOD"] = "1"
    if sys.argv[1:2] == [_AUTO]:
        del sys.argv[1]
        return launch(USAGE, horovod_if_several)
    return launch(USAGE, horovod)


if __name__ == "__main__":
    sys.exit(main())
