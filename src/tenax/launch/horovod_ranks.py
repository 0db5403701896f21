"""The ranks of one machine, as `tenax.launch.horovod` starts them. Python 3.9, and the user's Horovod.

``python3 -m tenax.launch.horovod_ranks MACHINE SLOTS,SLOTS... ADDRESS:PORT OPTIONS... -- COMMAND...``: options are read
by Horovod's own parser, ranks are counted by its own rules, and its own server, at ``ADDRESS:PORT`` of the first
machine, is where they meet. What would start ranks by itself, elsewhere or over ssh is refused.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.launch.spawn import run
from tenax.wire.task_names import LAUNCHER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Seconds that the server of the first machine may take to come up, and between two looks.
_SERVER_S, _LOOK_S = 60.0, 0.1
#: Where the ranks of one machine meet.
_THIS_MACHINE = "127.0.0.1"
#: Seconds that a rank waits for the others; Horovod's own are 30. The number is Determined's.
_GLOO_TIMEOUT_S = 240
#: Stands where a command is expected, so that an option that lacks its value is told from one that has it.
_NO_COMMAND = "tenax-no-command"
_CLUSTERS = "which ranks there are, and on which machines, is the cluster's affair (resources.slots_per_trial)"
_NO_SSH = "ranks on other machines are started without ssh"
_BY_GLOO = "ranks meet by Gloo here; MPI would start them over ssh, for which tasks have no keys"
#: What is read from options of horovodrun and cannot be had, each with its option and why.
_REFUSED = {
    "hosts": ("-H", _CLUSTERS),
    "hostfile": ("--hostfile", _CLUSTERS),
    "host_discovery_script": ("--host-discovery-script", _CLUSTERS),
    "min_num_proc": ("--min-np", _CLUSTERS),
    "max_num_proc": ("--max-np", _CLUSTERS),
    "ssh_port": ("-p", _NO_SSH),
    "ssh_identity_file": ("-i", _NO_SSH),
    "use_mpi": ("--mpi", _BY_GLOO),
    "use_jsrun": ("--jsrun", _BY_GLOO),
    "mpi_args": ("--mpi-args", _BY_GLOO),
    "binding_args": ("--binding-args", _BY_GLOO),
    "output_filename": ("--output-filename", "the trial's log has the lines of each rank (--rank-id)"),
}


def main() -> int:
    """The exit code: that of `tenax.launch.spawn.run`, 1 where nothing was started."""
    member, slots, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    end = sys.argv.index("--")
    address, _, port = place.rpartition(":")
    try:
        arguments = _parsed(sys.argv[4:end], [int(count) for count in slots.split(",") if count])
        ranks = _ranks(arguments.num_proc, slots or str(arguments.num_proc))
        environments = _environments(arguments, ranks, member, address, port)
        if member == 0:
            _serve(address if address == _THIS_MACHINE else "", int(port), ranks)
        else:
            _await_server(address, int(port))
    except (InvalidInput, OSError) as error:
        say(str(error))
        return 1
    return run(sys.argv[end + 1 :], environments)


def _parsed(options: Sequence[str], slots: Sequence[int]) -> Any:
    """What Horovod reads from options. Raises InvalidInput."""
    try:
        from horovod.runner.launch import parse_args
    except ImportError as error:
        raise InvalidInput(
            f"horovod cannot be imported by {sys.executable}: {error}. Install it there (pip install horovod), name a "
            "Python that has it (DET_PYTHON_EXECUTABLE in environment.environment_variables), or start a script that "
            f"uses torch.distributed with {LAUNCHER}"
        ) from None
    given = sys.argv
    sys.argv = ["horovodrun", "-np", str(sum(slots) or 1), *options, _NO_COMMAND]
    try:
        arguments = parse_args()
    except SystemExit as ended:
        if not ended.code:  # it was asked for its version, or what it was built with
            raise
        raise InvalidInput(f"Horovod does not take {' '.join(options)}: what it says stands above") from None
    finally:
        sys.argv = given
    if arguments.command != [_NO_COMMAND]:
        raise InvalidInput(f"{' '.join(options)} is not what horovodrun takes: options alone stand before --")
    for name, (option, why) in _REFUSED.items():
        if getattr(arguments, name, None):
            raise InvalidInput(f"{option} of horovodrun is not taken: {why}. Leave it out")
    if slots and arguments.num_proc != sum(slots):
        raise InvalidInput(f"-np {arguments.num_proc} for {sum(slots)} slots: {_CLUSTERS}. Leave it out")
    return arguments


def _ranks(count: int, slots: str) -> Sequence[Any]:
    """All ranks, as Horovod counts them, on machines that are named by their number: two may have one address."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts

    hosts = ",".join(f"{_machine(number)}:{each}" for number, each in enumerate(slots.split(",")))
    ranks: Sequence[Any] = get_host_assignments(parse_hosts(hosts), count)
    return ranks


def _machine(number: int) -> str:
    return f"machine-{number}"


def _environments(arguments: Any, ranks: Sequence[Any], member: int, address: str, port: str) -> list[dict[str, str]]:
    """Of each rank of this machine."""
    from horovod.runner.common.util import config_parser

    common: dict[str, str] = dict(os.environ)
    config_parser.set_env_from_args(common, arguments)
    common.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", str(_GLOO_TIMEOUT_S))
    common.update(
        HOROVOD_CONTROLLER="gloo",
        HOROVOD_CPU_OPERATIONS="gloo",
        HOROVOD_GLOO_RENDEZVOUS_ADDR=socket.gethostbyname(address),
        HOROVOD_GLOO_RENDEZVOUS_PORT=port,
        WORLD_SIZE=str(len(ranks)),
        GROUP_RANK=str(member),
        GROUP_WORLD_SIZE=str(len({rank.hostname for rank in ranks})),
    )
    chosen = sorted(arguments.nics or ())
    if chosen:
        common.update(HOROVOD_GLOO_IFACE=chosen[0], NCCL_SOCKET_IFNAME=",".join(chosen))
    elif address == _THIS_MACHINE:
        common.setdefault("HOROVOD_GLOO_IFACE", "lo")
    elif "GLOO_SOCKET_IFNAME" in common:
        common.setdefault("HOROVOD_GLOO_IFACE", common["GLOO_SOCKET_IFNAME"])
    return [{**common, **_place(rank)} for rank in ranks if rank.hostname == _machine(member)]


def _place(rank: Any) -> dict[str, str]:
    """Which one it is: for Horovod, and as other launchers say it."""
    return {
        "HOROVOD_HOSTNAME": rank.hostname,
        "HOROVOD_RANK": str(rank.rank),
        "HOROVOD_SIZE": str(rank.size),
        "HOROVOD_LOCAL_RANK": str(rank.local_rank),
        "HOROVOD_LOCAL_SIZE": str(rank.local_size),
        "HOROVOD_CROSS_RANK": str(rank.cross_rank),
        "HOROVOD_CROSS_SIZE": str(rank.cross_size),
        "RANK": str(rank.rank),
        "LOCAL_RANK": str(rank.local_rank),
        "LOCAL_WORLD_SIZE": str(rank.local_size),
    }


def _serve(address: str, port: int, ranks: Sequence[Any]) -> None:
    """Start the server at which the ranks meet; it ends with this process. Raises OSError."""
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer((address, port), RendezvousHandler, 0)
    server.init(ranks)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _await_server(address: str, port: int) -> None:
    """Until the first machine's server answers: Horovod itself gives up after a second. Raises InvalidInput."""
    deadline = time.monotonic() + _SERVER_S
    while True:
        try:
            socket.create_connection((address, port), timeout=_SERVER_S).close()
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise InvalidInput(
                    f"Horovod's rendezvous at port {port} of {address} does not answer from here: {error}. That port "
                    "must be open between the machines (docs/distributed.md names all of them)"
                ) from None
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
