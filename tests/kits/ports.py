"""Ports for servers that a test starts: nobody else's, whatever else runs on this machine.

A port that was free when it was asked for may be taken when the server comes to listen: by another worker or run of the
tests, or by the system, which gives ports of its own range (from 32768 on) to whoever connects to something. These are
below that range, between the two families that agents give to tasks (12350 and 29400 on), and each process has a block
of them to itself for as long as it lives: it holds the lock on the block's file.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_FIRST, _LAST, _SIZE = 16000, 29300, 100
_blocks: list[Iterator[int]] = []
#: Never closed: their locks are what keeps others out.
_locks: list[int] = []


def free_port() -> int:
    """A port of this process on which nobody listens; all others come before it comes again."""
    if not _blocks:
        _blocks.append(itertools.cycle(_own_block()))
    # Rather one that no connection was at lately; who sets SO_REUSEADDR, as servers do, can have the others.
    for reuse in (False, True):
        for port in itertools.islice(_blocks[0], _SIZE):
            if _is_free(port, reuse):
                return port
    raise AssertionError("all ports of this process are in use")


def _own_block() -> range:
    """The first that nobody has. Raises AssertionError where there is none."""
    # Not where TMPDIR points: runs that keep their files elsewhere use the same ports.
    directory = Path("/tmp") / f"tenax-test-ports-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    for first in range(_FIRST, _LAST, _SIZE):
        lock = os.open(directory / str(first), os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _locks.append(lock)
        return range(first, first + _SIZE)
    raise AssertionError(f"all ports of tests are taken: see {directory}")


def _is_free(port: int, reuse: bool) -> bool:
    """Whether a server could listen there now, on any address; ``reuse``: one that sets SO_REUSEADDR."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
