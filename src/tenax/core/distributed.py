"""``context.distributed``: which rank of a job this is, and small objects between ranks. Standard library only, 3.9.

For coordination (who saves what, whether to stop), not for tensors: those belong to the training framework. All ranks
call a collective in step. Making a context of several ranks waits until all of them are there
(``DET_RENDEZVOUS_TIMEOUT`` seconds, 600).
"""

from __future__ import annotations

import os

from tenax.core.hangs import beats
from tenax.core.info import get_cluster_info
from tenax.errors import InvalidInput
from tenax.wire.task_names import LAUNCHER, PROCESSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

    from tenax.core.collectives import Address, Star
    from tenax.core.info import ClusterInfo

#: Ports of a job's own talk; the agent sets INTER_TRAIN_PROCESS_COMM_PORT_1 and _2 where others may be in use.
PUB_PORT = 12360
PULL_PORT = 12365


class DistributedContext:
    """Rank ``rank`` of ``size``, ``local_rank`` of ``local_size`` on machine ``cross_rank`` of ``cross_size``.

    ``chief_ip``: address of rank 0's machine, needed on more than one machine. ``pub_port`` (all ranks) and
    ``pull_port`` (ranks of one machine, only with ``force_tcp``) are moved by ``port_offset``. Raises InvalidInput for
    numbers that do not fit together, PeerLost naming the ranks that did not come.
    """

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        local_rank: int,
        local_size: int,
        cross_rank: int,
        cross_size: int,
        chief_ip: Optional[str] = None,
        pub_port: int = PUB_PORT,
        pull_port: int = PULL_PORT,
        port_offset: int = 0,
        force_tcp: bool = False,
    ) -> None:
        for name, index, count in (
            ("", rank, size),
            ("local_", local_rank, local_size),
            ("cross_", cross_rank, cross_size),
        ):
            if not 0 <= index < count:
                raise InvalidInput(f"{name}rank must be from 0 to {name}size - 1, not {index} of {count}")
        if cross_size > 1 and not chief_ip:
            raise InvalidInput("on more than one machine chief_ip is needed: the address of the machine of rank 0")
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self.cross_rank = cross_rank
        self.cross_size = cross_size
        self._all: Optional[Star] = None
        self._local: Optional[Star] = None
        if size > 1:
            ports = (_port("1", pub_port, PUB_PORT) + port_offset, _port("2", pull_port, PULL_PORT) + port_offset)
            beats.OWN.open(rank, size, beats.JOIN)
            self._connect(chief_ip or "127.0.0.1", ports, force_tcp)
            beats.OWN.change_phase(beats.TRAIN)

    @classmethod
    def from_torch_distributed(cls, chief_ip: Optional[str] = None) -> DistributedContext:
        """From what torchrun sets in the environment, else from the process group that is initialized already.

        ``chief_ip``: else DET_CHIEF_IP, else MASTER_ADDR. The process group itself is not used.
        """
        env = os.environ
        address = chief_ip or env.get("DET_CHIEF_IP") or env.get("MASTER_ADDR")
        if all(name in env for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")):
            rank, size = int(env["RANK"]), int(env["WORLD_SIZE"])
            local_size = int(env["LOCAL_WORLD_SIZE"])
            return cls(
                rank=rank,
                size=size,
                local_rank=int(env["LOCAL_RANK"]),
                local_size=local_size,
                cross_rank=int(env.get("GROUP_RANK", rank // local_size)),
                cross_size=int(env.get("GROUP_WORLD_SIZE", max(1, size // local_size))),
                chief_ip=address,
            )
        return cls._from_process_group(address)

    @classmethod
    def from_deepspeed(cls, chief_ip: Optional[str] = None) -> DistributedContext:
        """From ``deepspeed.init_distributed()``, whose ranks are those of ``torch.distributed``."""
        return cls.from_torch_distributed(chief_ip)

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: Optional[str] = None) -> DistributedContext:
        """From ``horovod.torch`` or another module of its, once ``hvd.init()`` was called.

        ``chief_ip``: else DET_CHIEF_IP, needed on more than one machine. Raises InvalidInput.
        """
        env = os.environ
        # Horovod counts, for each local rank, the machines that have one; launchers say which machine it is.
        machine, machines = env.get("GROUP_RANK", hvd.cross_rank()), env.get("GROUP_WORLD_SIZE", hvd.cross_size())
        return cls(
            rank=hvd.rank(),
            size=hvd.size(),
            local_rank=hvd.local_rank(),
            local_size=hvd.local_size(),
            cross_rank=int(machine),
            cross_size=int(machines),
            chief_ip=chief_ip or os.environ.get("DET_CHIEF_IP"),
        )

    @classmethod
    def from_tf_config(cls) -> Tuple[DistributedContext, Any]:
        """From ``TF_CONFIG``, with TensorFlow's strategy for it: one worker a machine, which has all its GPUs.

        Raises InvalidInput for tasks that are no workers, ImportError where there is no TensorFlow.
        """
        import json

        import tensorflow

        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config.get("task", {"type": "worker", "index": 0})
        workers = config.get("cluster", {}).get("worker", [])
        if task.get("type") != "worker":
            raise InvalidInput(
                f"TF_CONFIG makes this task a {task.get('type')!r}: workers alone are served, those of "
                "MultiWorkerMirroredStrategy"
            )
        if len(workers) > 1:
            context = cls(
                rank=int(task["index"]),
                size=len(workers),
                local_rank=0,
                local_size=1,
                cross_rank=int(task["index"]),
                cross_size=len(workers),
                chief_ip=str(workers[0]).rpartition(":")[0],
            )
            return context, tensorflow.distribute.MultiWorkerMirroredStrategy()
        gpus = len(tensorflow.config.list_physical_devices("GPU"))
        distribute = tensorflow.distribute
        return DummyDistributedContext(), distribute.MirroredStrategy() if gpus > 1 else distribute.get_strategy()

    @classmethod
    def _from_process_group(cls, chief_ip: Optional[str]) -> DistributedContext:
        try:
            import torch.distributed as group
        except ImportError:
            raise InvalidInput(f"no launcher has started this process: {how_to_launch(get_cluster_info())}") from None

        if not group.is_available() or not group.is_initialized():
            raise InvalidInput(
                f"no launcher has started this process: {how_to_launch(get_cluster_info())}, or call "
                "torch.distributed.init_process_group() first"
            )
        rank, size = group.get_rank(), group.get_world_size()
        machines: list[Optional[str]] = [None] * size
        group.all_gather_object(machines, os.uname().nodename)
        order = list(dict.fromkeys(machines))
        mine = [peer for peer in range(size) if machines[peer] == machines[rank]]
        return cls(
            rank=rank,
            size=size,
            local_rank=mine.index(rank),
            local_size=len(mine),
            cross_rank=order.index(machines[rank]),
            cross_size=len(order),
            chief_ip=chief_ip or machines[0],
        )

    def get_rank(self) -> int:
        return self.rank

    def get_local_rank(self) -> int:
        return self.local_rank

    def get_size(self) -> int:
        return self.size

    def get_num_agents(self) -> int:
        """Number of machines."""
        return self.cross_size

    def gather(self, stuff: object) -> Optional[list[object]]:
        """On the chief: what each rank gave, by rank. Elsewhere None."""
        return [stuff] if self._all is None else self._all.gather(stuff)

    def gather_local(self, stuff: object) -> Optional[list[object]]:
        """On the local chief: what each rank of this machine gave, by local rank. Elsewhere None."""
        return [stuff] if self._local is None else self._local.gather(stuff)

    def allgather(self, stuff: object) -> list[object]:
        """What each rank gave, by rank, on all ranks."""
        return [stuff] if self._all is None else self._all.allgather(stuff)

    def allgather_local(self, stuff: object) -> list[object]:
        """What each rank of this machine gave, by local rank, on all of them."""
        return [stuff] if self._local is None else self._local.allgather(stuff)

    def broadcast(self, stuff: object) -> object:
        """What the chief gave, on all ranks."""
        return stuff if self._all is None else self._all.broadcast(stuff)

    def broadcast_local(self, stuff: object = None) -> object:
        """What the local chief gave, on all ranks of this machine."""
        return stuff if self._local is None else self._local.broadcast(stuff)

    def close(self) -> None:
        """Leave the job; ranks that still wait for this one get an error that names it."""
        for star in (self._local, self._all):
            if star is not None:
                star.close()

    def _connect(self, chief_ip: str, ports: tuple[int, int], force_tcp: bool) -> None:
        on_single_machine = self.cross_size == 1
        everyone: Address = (chief_ip if not on_single_machine else "127.0.0.1", ports[0])
        if on_single_machine and not force_tcp:
            everyone = _socket_path(f"{ports[0]}")
        self._all = _star(everyone, self.rank, self.size, "rank")
        if on_single_machine:
            self._local = self._all
        elif self.local_size > 1:
            here: Address = _socket_path(f"{ports[0]}-machine-{self.cross_rank}")
            if force_tcp:
                here = ("127.0.0.1", ports[1])
            self._local = _star(here, self.local_rank, self.local_size, "local rank")


def how_to_launch(info: Optional[ClusterInfo]) -> str:
    """What to write instead of the entrypoint of this trial, or of a line by hand, to have one rank for each slot."""
    from importlib.util import find_spec

    launcher = LAUNCHER if find_spec("torch") else PROCESSES
    own = info.trial._config.get("entrypoint") if info is not None and info.is_trial else None
    words = " ".join(map(str, own)) if isinstance(own, list) else str(own or "")
    # What a shell would divide has no single line behind a launcher.
    plain = words.startswith(("python ", "python3 ")) and not set(words) & set("\"'\\$`;&|<>(){}*?~#\n")
    line = f"python3 -m {launcher} {words if plain else 'python3 train.py'}"
    return f"start it with {line}" if info is None else f"write entrypoint: {line}"


class DummyDistributedContext(DistributedContext):
    """The only rank of a job."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)


def _star(address: Address, rank: int, size: int, name: str) -> Star:
    from tenax.core.collectives import join_hub, make_hub

    seconds = float(os.environ.get("DET_RENDEZVOUS_TIMEOUT") or 600.0)
    if rank == 0:
        return make_hub(address, size, _secret(), seconds, name)
    return join_hub(address, rank, _secret(), seconds, name)


def _port(number: str, given: int, default: int) -> int:
    """The port that was given, else the agent's, else the default."""
    return given if given != default else int(os.environ.get(f"INTER_TRAIN_PROCESS_COMM_PORT_{number}") or default)


def _job() -> str:
    """What all ranks of a job have in common, and other jobs of this user have not."""
    names = ("DET_ALLOCATION_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "HOROVOD_GLOO_RENDEZVOUS_PORT")
    return "|".join(os.environ.get(name, "") for name in names)


def _secret() -> bytes:
    """On a cluster, the allocation's credential; elsewhere the job's name, against mix-ups only."""
    return (os.environ.get("DET_SESSION_TOKEN") or _job()).encode()


def _socket_path(purpose: str) -> str:
    import hashlib

    from tenax.core.collectives import private_directory

    name = hashlib.sha256(f"{_job()}|{purpose}".encode()).hexdigest()[:24]
    return os.path.join(private_directory(), name + ".sock")
