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

import os
import subprocess
import sys

from tenax.core.info import ClusterInfo, get_cluster_info
from tenax.core.spool import say
from tenax.errors import InvalidInput, TenaxError
from tenax.launch.failures import connect
from tenax.launch.interfaces import interface_towards
from tenax.launch.shared_storage import warn_where_apart
from tenax.launch.watch import RankWatch
from tenax.wire.task_names import CLASS_TRAINER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Optional

    from tenax.storage.port import Storage

USAGE = """\
usage: python3 -m tenax.launch.torch_distributed [OPTIONS OF TORCHRUN --] COMMAND...

Runs COMMAND once per slot of this trial, on all of its machines, as ranks of one torch.distributed job:

    entrypoint: python3 -m tenax.launch.torch_distributed python3 train.py --epochs 10

A COMMAND that is a Python file (train.py), or -m MODULE, runs under this Python. Off a cluster there is one rank, or as
many as torchrun is told to start: python3 -m tenax.launch.torch_distributed --nproc_per_node 2 -- train.py
"""
#: Ports off a cluster; on one the agent sets them.
_LAUNCHERS_PORT, _TORCHRUNS_PORT = 12350, 29400


class RanksHere:
    """The members of this trial and their ranks, seen from one of them."""

    def __init__(self, addresses: Sequence[str], member: int, slots: Sequence[int], env: Mapping[str, str]) -> None:
        #: By rank of the member.
        self.addresses = list(addresses)
        self.member = member
        #: How many ranks run here; None: torchrun decides.
        self.processes = max(1, slots[member]) if slots else None
        self.launchers_port = int(env.get("DTRAIN_SSH_PORT") or _LAUNCHERS_PORT)
        self.torchruns_port = int(env.get("C10D_PORT") or _TORCHRUNS_PORT)

    @classmethod
    def of(cls, info: Optional[ClusterInfo], env: Mapping[str, str]) -> RanksHere:
        """What the cluster says; off it, this machine."""
        if info is None:
            return cls(["127.0.0.1"], 0, [], env)
        if not info.is_trial:
            return cls(["127.0.0.1"], 0, [len(info.slot_ids)], env)
        return cls(info.container_addrs, info.container_rank, info.container_slot_counts, env)

    @property
    def alone(self) -> bool:
        """Whether there is one machine."""
        return len(self.addresses) == 1

    def torchrun(self, options: Sequence[str], command: Sequence[str], port: int) -> list[str]:
        """The words that start the ranks of this machine."""
        chief = "127.0.0.1" if self.alone else self.addresses[0]
        words = [sys.executable, "-m", "tenax.launch.torchrun", "--nnodes", str(len(self.addresses))]
        words += ["--node_rank", str(self.member), "--master_addr", chief, "--master_port", str(port)]
        words += ["--max_restarts", "0", "--monitor_interval", "0.2"]
        if self.processes is not None:
            words += ["--nproc_per_node", str(self.processes)]
        wrapped = [sys.executable, "-m", "tenax.launch.wrap_rank", "RANK", "--"]
        return [*words, *options, "--no_python", *wrapped, *command]

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """What the ranks need besides: the network interface that the machines see each other by."""
        result = dict(env)
        if self.processes != 1:
            # As torchrun does, with fewer words.
            result.setdefault("OMP_NUM_THREADS", "1")
        if self.alone:
            return result
        chosen = env.get("DET_INTER_NODE_NETWORK_INTERFACE") or ""
        if chosen:
            result.setdefault("NCCL_SOCKET_IFNAME", chosen)
        # Left alone, gloo takes that of the host's name, which is the loopback's on many machines.
        facing = chosen or interface_towards(self.addresses[0 if self.member else 1])
        if facing:
            result.setdefault("GLOO_SOCKET_IFNAME", facing)
        return result


def parse(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options of torchrun, and the command. Raises InvalidInput."""
    options: list[str] = []
    command = list(words)
    if words and words[0].startswith("-") and words[0] != "-m" and "--" in words:
        at = command.index("--")
        options, command = command[:at], command[at + 1 :]
    if command[:1] == ["--trial"]:
        command = ["-m", CLASS_TRAINER, *command[1:]]
    if not command or (command[0].startswith("-") and command[0] != "-m"):
        raise InvalidInput(f"there is no command to start\n\n{USAGE}")
    if command[0] == "-m" or command[0].endswith(".py"):
        command.insert(0, sys.executable)
    return options, command


def main() -> int:
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        options, command = parse(words)
        info = get_cluster_info()
        job = RanksHere.of(info, os.environ)
        launchers = None if job.alone else connect(job.member, job.addresses, job.launchers_port)
        if launchers is not None and info is not None:
            warn_where_apart(launchers, job.addresses, _storage(info))
        with RankWatch(job.addresses, launchers) as watch:
            port = job.torchruns_port if not job.alone or "C10D_PORT" in os.environ else _free_port()
            env = {**job.environment(os.environ), **watch.environment}
            return watch.over(lambda: subprocess.Popen(job.torchrun(options, command, port), env=env))
    except (TenaxError, OSError) as error:
        say(str(error))
        return 1


def _storage(info: ClusterInfo) -> Optional[Storage]:
    """Where checkpoints go, if that needs no package but ours."""
    section = info.trial._config.get("checkpoint_storage")
    if not isinstance(section, dict):
        return None
    from tenax.storage.registry import from_config, kind_of

    kind = kind_of(section)
    return from_config(section) if kind is not None and kind.standard_library_only else None


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
