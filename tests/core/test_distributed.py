"""Objects between ranks; ranks are threads here, as processes they are in the last test."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import tenax
from tenax.core import collectives
from tenax.core.collectives import OutOfStep, PeerLost
from tenax.core.distributed import DistributedContext, DummyDistributedContext
from tenax.errors import InvalidInput, TenaxError
from tests.kits.ports import free_port
from tests.kits.ranks import on_ranks


@pytest.mark.parametrize("force_tcp", [False, True])
def test_one_machine(force_tcp: bool) -> None:
    """Gather, allgather and broadcast carry any object, in the order of ranks; local is the same as global."""

    def work(context: DistributedContext) -> object:
        return (
            context.gather({"rank": context.rank}),
            context.allgather(context.rank * 10),
            context.broadcast(f"from {context.rank}"),
            context.gather_local(context.local_rank),
            context.allgather_local(context.local_rank),
            context.broadcast_local(context.rank),
        )

    for rank, result in enumerate(on_ranks(work, 3, force_tcp=force_tcp)):
        chief = rank == 0
        assert result == (
            [{"rank": 0}, {"rank": 1}, {"rank": 2}] if chief else None,
            [0, 10, 20],
            "from 0",
            [0, 1, 2] if chief else None,
            [0, 1, 2],
            0,
        )


def test_two_machines() -> None:
    """On several machines the local collectives stay on the machine."""

    def work(context: DistributedContext) -> object:
        return (
            context.allgather(context.rank),
            context.allgather_local(context.rank),
            context.broadcast_local(context.rank),
        )

    assert on_ranks(work, 4, machines=2) == [
        ([0, 1, 2, 3], [0, 1], 0),
        ([0, 1, 2, 3], [0, 1], 0),
        ([0, 1, 2, 3], [2, 3], 2),
        ([0, 1, 2, 3], [2, 3], 2),
    ]


def test_large_objects() -> None:
    """An object larger than any buffer of a socket passes whole."""
    blob = os.urandom(20_000_000)
    results = on_ranks(lambda context: context.broadcast(blob if context.rank == 0 else None) == blob, 3)
    assert results == [True, True, True]


def test_a_rank_that_leaves() -> None:
    """A rank that dies ends the collectives of the others with an error that names it."""

    def work(context: DistributedContext) -> object:
        if context.rank == 1:
            raise ValueError("died")
        return context.allgather(1)

    results = on_ranks(work, 3)
    assert isinstance(results[0], PeerLost)
    assert "rank 1 has left while rank 0 waits" in str(results[0])
    assert isinstance(results[2], PeerLost)


def test_out_of_step() -> None:
    """Ranks that call different collectives are told which, instead of mixing up their objects."""

    both_done = threading.Barrier(2)

    def work(context: DistributedContext) -> object:
        try:
            if context.rank == 1:
                context.gather("upload")
                return context.broadcast(None)
            context.broadcast("should_preempt")
            return context.gather(None)
        finally:
            both_done.wait(60)

    results = on_ranks(work, 2)
    assert all(isinstance(result, OutOfStep) for result in results)
    assert "rank 0 is in gather (call 2) while rank 1 is in gather (call 1)" in str(results[0])
    assert "rank 1 is in broadcast (call 2) while rank 0 is in broadcast (call 1)" in str(results[1])


def test_missing_ranks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that do not come are named after the time-out, on both sides."""
    monkeypatch.setenv("DET_RENDEZVOUS_TIMEOUT", "0.1")
    sizes = {"rank": 0, "size": 3, "local_rank": 0, "local_size": 3, "cross_rank": 0, "cross_size": 1}
    with pytest.raises(PeerLost, match="rank 1, 2 did not join rank 0"):
        DistributedContext(**sizes, pub_port=free_port())  # type: ignore[arg-type]
    with pytest.raises(PeerLost, match="rank 2 could not reach rank 0"):
        DistributedContext(**{**sizes, "rank": 2, "local_rank": 2}, pub_port=free_port())  # type: ignore[arg-type]


def stranger(address: tuple[str, int]) -> socket.socket:
    """A connection to a hub, once it listens."""
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(address)


def test_strangers_are_kept_out() -> None:
    """Who does not know the job's secret is not let in, and does not keep the others from meeting."""
    port = free_port()
    address = ("127.0.0.1", port)
    stars: list[object] = []
    hub = threading.Thread(target=lambda: stars.append(collectives.make_hub(address, 2, b"secret", 120)), daemon=True)
    hub.start()
    # From here on it listens, so that it is the secret which does not fit.
    stranger(address).close()
    with pytest.raises(PeerLost, match=r"could not reach .*: the connection was closed"):
        collectives.join_hub(address, 1, b"wrong", 0.3)
    with stranger(address) as noise:
        noise.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    star = collectives.join_hub(address, 1, b"secret", 120)
    hub.join(120)
    assert len(stars) == 1
    star.close()


@pytest.mark.parametrize("said", [b"", b"x", bytes(68), None])
def test_strangers_who_say_nothing_hold_nobody_up(said: bytes | None) -> None:
    """More of them than the hub would have time for, one after another; also more than it listens to. None: they go."""
    address = ("127.0.0.1", free_port())
    stars: list[collectives.Star] = []
    hub = threading.Thread(target=lambda: stars.append(collectives.make_hub(address, 2, b"secret", 120)), daemon=True)
    hub.start()
    strangers = []
    for _ in range(300):
        strangers.append(stranger(address))
        if said is None:
            strangers.pop().close()
        else:
            strangers[-1].sendall(said)
    star = collectives.join_hub(address, 1, b"secret", 120)
    hub.join(120)
    assert star.size == 1
    assert [hub_star.size for hub_star in stars] == [2]
    for sock in strangers:
        sock.close()
    star.close()
    stars[0].close()


def test_a_hub_that_is_a_stranger() -> None:
    """A rank does not take orders from a listener that does not know the secret."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as rank:
                    rank.sendall(bytes(32))
                    rank.recv(68, socket.MSG_WAITALL)
                    rank.sendall(bytes(32))

    hub = threading.Thread(target=pretend, daemon=True)
    hub.start()
    with listener:
        with pytest.raises(PeerLost, match="what listens there is not this job"):
            collectives.join_hub(listener.getsockname(), 1, b"secret", 0.3)
        listener.shutdown(socket.SHUT_RDWR)
    hub.join(120)


def test_socket_directory_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets lie where only this user can enter; a directory that others can enter is refused."""
    import tempfile

    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path)[:40])
    (Path(str(tmp_path)[:40])).mkdir(exist_ok=True)
    path = collectives.private_directory()
    assert os.stat(path).st_mode & 0o777 == 0o700
    os.chmod(path, 0o755)
    with pytest.raises(TenaxError, match="must be a directory of this user alone"):
        collectives.private_directory()
    os.chmod(path, 0o700)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 3, 0, 1, 0, 1), "rank must be from 0 to size - 1, not 3 of 3"),
        ((0, 2, 2, 2, 0, 1), "local_rank must be"),
        ((0, 2, 0, 1, -1, 2), "cross_rank must be"),
        ((0, 2, 0, 1, 0, 2), "chief_ip is needed"),
    ],
)
def test_bad_numbers(numbers: tuple[int, ...], message: str) -> None:
    """Ranks that do not fit together are refused before anything is opened."""
    names = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    with pytest.raises(InvalidInput, match=message):
        DistributedContext(**dict(zip(names, numbers)))  # type: ignore[arg-type]


def test_alone() -> None:
    """The only rank of a job gets back what it gives."""
    context = DummyDistributedContext()
    assert (context.get_rank(), context.get_size(), context.get_local_rank(), context.get_num_agents()) == (0, 1, 0, 1)
    assert context.gather(1) == context.allgather_local(1) == [1]
    assert context.broadcast(2) == context.broadcast_local(2) == 2
    context.close()


def test_from_horovod(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its module says; on several machines the chief's address is needed. It has not run with Horovod itself."""
    monkeypatch.delenv("DET_CHIEF_IP", raising=False)
    numbers = {"rank": 0, "size": 1, "local_rank": 0, "local_size": 1, "cross_rank": 0, "cross_size": 1}
    horovod = SimpleNamespace(**{name: lambda number=number: number for name, number in numbers.items()})
    context = DistributedContext.from_horovod(horovod)
    assert {name: getattr(context, name) for name in numbers} == numbers
    horovod.size = horovod.cross_size = lambda: 2
    with pytest.raises(InvalidInput, match="chief_ip is needed"):
        DistributedContext.from_horovod(horovod)


def test_from_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker a machine, and the strategy for it. It has not run with TensorFlow itself."""
    several = SimpleNamespace(MultiWorkerMirroredStrategy=lambda: "all", MirroredStrategy=lambda: "gpus")
    several.get_strategy = lambda: "one"
    gpus: list[str] = []
    config = SimpleNamespace(list_physical_devices=lambda kind: gpus)
    stand_in = SimpleNamespace(distribute=several, config=config)
    monkeypatch.setitem(sys.modules, "tensorflow", stand_in)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    context, strategy = DistributedContext.from_tf_config()
    assert (context.size, strategy) == (1, "one")
    gpus += ["GPU:0", "GPU:1"]
    assert DistributedContext.from_tf_config()[1] == "gpus"
    port = free_port()
    monkeypatch.setattr(DistributedContext, "_connect", lambda self, chief, ports, force: setattr(self, "met", chief))
    cluster = {"worker": [f"10.0.0.1:{port}", f"10.0.0.2:{port}"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    context, strategy = DistributedContext.from_tf_config()
    assert (context.rank, context.size, context.local_size, context.cross_rank, strategy) == (1, 2, 1, 1, "all")
    assert context.met == "10.0.0.1"  # type: ignore[attr-defined]
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "ps", "index": 0}}))
    with pytest.raises(InvalidInput, match="workers alone are served"):
        DistributedContext.from_tf_config()


SCRIPT = """
import sys
from tenax.core import DistributedContext
if "group" in sys.argv:
    import os, torch.distributed
    rank = int(sys.argv[-1])
    torch.distributed.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
context = DistributedContext.from_torch_distributed()
print(context.rank, context.local_rank, context.cross_size, context.allgather(context.rank))
context.close()
"""


def test_torchrun_variables(tmp_path: Path) -> None:
    """Processes with the variables of torchrun find each other."""
    (tmp_path / "script.py").write_text(SCRIPT)
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1"}
    shared |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": str(tmp_path)}
    assert _outputs(tmp_path, [{**shared, "RANK": str(i), "LOCAL_RANK": str(i)} for i in (0, 1)], []) == [
        "0 0 1 [0, 1]\n",
        "1 1 1 [0, 1]\n",
    ]


def test_process_group(tmp_path: Path) -> None:
    """Without those variables an initialized process group says who is who."""
    (tmp_path / "script.py").write_text(SCRIPT)
    envs = [{"TORCHELASTIC_RUN_ID": str(tmp_path)}] * 2
    assert _outputs(tmp_path, envs, ["group", f"file://{tmp_path}/meet"]) == ["0 0 1 [0, 1]\n", "1 1 1 [0, 1]\n"]


def _outputs(directory: Path, envs: list[dict[str, str]], args: list[str]) -> list[str]:
    source = str(Path(tenax.__file__).parents[1])
    processes = [
        subprocess.Popen(
            [sys.executable, str(directory / "script.py"), *args, str(rank)],
            env={**os.environ, "PYTHONPATH": source, **env},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, env in enumerate(envs)
    ]
    return [process.communicate(timeout=240)[0] for process in processes]
