"""The ranks of a trial as a launcher starts them: on all of its machines, one a slot, watched, and ended as one.

A launcher (`tenax.launch.torch_distributed`, `tenax.launch.processes`) says with which program the ranks of its machine
are started. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tenax.core.hangs.settings import OFF, HangSettings
from tenax.core.info import ClusterInfo, get_cluster_info
from tenax.core.spool import say
from tenax.errors import InvalidInput, TenaxError
from tenax.launch.failures import connect
from tenax.launch.interfaces import interface_towards
from tenax.launch.shared_storage import warn_where_apart
from tenax.launch.signals import dying_with
from tenax.launch.watch import RankWatch
from tenax.wire.task_names import CLASS_TRAINER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Optional

    from tenax.storage.port import Storage

#: Ports off a cluster; on one the agent sets them.
_LAUNCHERS_PORT, _TORCHRUNS_PORT = 12350, 29400


class RanksHere:
    """The members of this trial and their ranks, seen from one of them."""

    def __init__(self, addresses: Sequence[str], member: int, slots: Sequence[int], env: Mapping[str, str]) -> None:
        #: By rank of the member.
        self.addresses = list(addresses)
        self.member = member
        #: Ranks of each member, where the cluster says it.
        self.slots = [max(1, count) for count in slots]
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

    @property
    def chief(self) -> str:
        """Where the first member is."""
        return "127.0.0.1" if self.alone else self.addresses[0]

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
    """Options before a lone ``--``, and the command. Raises InvalidInput."""
    options: list[str] = []
    command = list(words)
    if words and words[0].startswith("-") and words[0] != "-m" and "--" in words:
        at = command.index("--")
        options, command = command[:at], command[at + 1 :]
    if command[:1] == ["--trial"]:
        command = ["-m", CLASS_TRAINER, *command[1:]]
    if not command or (command[0].startswith("-") and command[0] != "-m"):
        if command:
            raise InvalidInput(
                f"there is no command to start: put -- between {command[0]} with what else is the launcher's, and the "
                "command"
            )
        raise InvalidInput("there is no command to start: name it behind the launcher")
    if command[0] == "-m" or command[0].endswith(".py"):
        command.insert(0, sys.executable)
    return options, command


def launch(usage: str, program: Callable[[RanksHere, Sequence[str], Sequence[str], int], list[str]]) -> int:
    """A launcher: the exit code, once all ranks have ended.

    ``program``: the words that start the ranks of a machine, from options, the command and a port of the chief's.
    """
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(usage)
        return 0
    try:
        options, command = parse(words)
        info = get_cluster_info()
        job = RanksHere.of(info, os.environ)
        launchers = None if job.alone else connect(job.member, job.addresses, job.launchers_port)
        if launchers is not None and info is not None:
            warn_where_apart(launchers, job.addresses, _storage(info))
        with RankWatch(job.addresses, launchers, _hang_settings(info)) as watch:
            port = job.torchruns_port if not job.alone or "C10D_PORT" in os.environ else _free_port()
            env = {**job.environment(os.environ), **watch.environment}
            words = program(job, options, command, port)
            # Asked, not killed: it ends the ranks that it has started.
            die_too = dying_with(os.getpid(), signal.SIGTERM)
            return watch.over(lambda: subprocess.Popen(words, env=env, preexec_fn=die_too))
    except (TenaxError, OSError) as error:
        if isinstance(error, InvalidInput):
            sys.stderr.write(usage)
        # Last: it is the reason that the trial failed for.
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


def _hang_settings(info: Optional[ClusterInfo]) -> Optional[HangSettings]:
    """None: nobody is to watch for hangs."""
    hang = HangSettings.of(info.trial._config) if info is not None and info.is_trial else HangSettings()
    return None if hang.policy == OFF else hang


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
