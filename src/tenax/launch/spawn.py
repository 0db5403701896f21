"""The ranks of one machine, as `tenax.launch.processes` starts them. Standard library only, Python 3.9.

``python3 -m tenax.launch.spawn FIRST COUNT SIZE MACHINE MACHINES ADDRESS:PORT COMMAND...``: ranks FIRST to
FIRST + COUNT - 1 of SIZE. When one fails the others are asked to end, and killed a little later.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time

from tenax.launch.failures import Failure, post
from tenax.launch.signals import dying_with, on_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Optional

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
#: Seconds that ranks have to end once one has failed; they are killed then.
GRACE_S = 30.0


def main() -> int:
    """The exit code: 0, 1 where a rank failed, 128 and the number of the signal that asked for the end."""
    first, count, size, machine, machines = map(int, sys.argv[1:6])
    address, _, port = sys.argv[6].rpartition(":")
    common = {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": str(machine),
        "GROUP_WORLD_SIZE": str(machines),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
    }
    environments = [
        {**os.environ, **common, "RANK": str(first + local), "LOCAL_RANK": str(local)} for local in range(count)
    ]
    return run(sys.argv[7:], environments)


def run(command: Sequence[str], environments: Sequence[Mapping[str, str]]) -> int:
    """The command once in each environment, to the end of all."""
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    die_too = dying_with(os.getpid())
    requested: list[int] = []
    started = threading.Event()
    ranks: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int) -> None:
        if number in _ENDS:
            requested.append(number)
        started.wait()
        _signal(ranks, number)

    on_signals(_PASSED_ON, pass_on)
    for environment in environments:
        words = [sys.executable, "-m", "tenax.launch.wrap_rank", environment["RANK"], "--", *command]
        ranks.append(subprocess.Popen(words, env=environment, preexec_fn=die_too))
        arguments = (ranks[-1], int(environment["RANK"]), ended)
        threading.Thread(target=_wait_for, args=arguments, daemon=True).start()
    started.set()
    failed, killed_at = False, None
    for _ in ranks:
        code = _next(ended, ranks, killed_at)
        if code and not failed and not requested:
            _signal(ranks, signal.SIGTERM)
        if code and killed_at is None:
            killed_at = time.monotonic() + GRACE_S
        failed = failed or code != 0
    if requested:
        return 128 + requested[0]
    return 1 if failed else 0


def _wait_for(wrapper: subprocess.Popen[bytes], rank: int, ended: queue.SimpleQueue[int]) -> None:
    code = wrapper.wait()
    if code < 0:
        # It says by itself how its command failed, unless it is killed: then the others would be blamed.
        post(Failure(rank, 128 - code, time.monotonic()))
    ended.put(code)


def _next(ended: queue.SimpleQueue[int], ranks: Sequence[subprocess.Popen[bytes]], until: Optional[float]) -> int:
    """The exit code of the rank that ends next; ``until``: all that are left are killed then."""
    if until is not None:
        try:
            return ended.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            for rank in ranks:
                rank.kill()
    return ended.get()


def _signal(ranks: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for rank in ranks:
        # One that has ended was waited for, or is a zombie of ours: its number is nobody else's.
        rank.send_signal(number)


if __name__ == "__main__":
    sys.exit(main())
