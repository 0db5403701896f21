"""Starts a prepared container's supervisor and learns from it whether the main process runs.

The lock is taken here, before the start, and inherited by the supervisor: from the first instant on either nobody
holds it (and nothing was started) or the supervisor does. So a killed agent never starts a container twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tenax.runtime.directory import Home
from tenax.runtime.forking import forkserver
from tenax.runtime.port import StartFailed
from tenax.runtime.processes import Identity, kill_with_descendants, send

_READY_WITHIN_S = 60.0
#: A request waits no longer for room in the socket.
_TAKEN_WITHIN_S = 1.0
#: A supervisor that is asked for the end before it says what it watches.
_HEEDS_WITHIN_S = 5.0
_POLL_S = 0.005
#: Errors of exec that are the request's: wrong program, wrong permissions, too many arguments.
_REQUESTS = frozenset(
    {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP, errno.E2BIG, errno.EISDIR}
)


class Forks(Protocol):
    """What can start a supervisor."""

    @property
    def answers_within_s(self) -> float:
        """How long a supervisor may take to say that its container runs."""

    def fork(self, home: Home, lock: int, ready: int) -> None:
        """Of a prepared container. Raises OSError."""

    def close(self) -> None:
        """End it; supervisors live on."""


class Forkserver:
    """The process that forks supervisors (`tenax.runtime.forking.forkserver`): made when it is needed, and
    again when it is gone.

    One event loop. ``library``: where its code is, and its ``programs`` (modules with a ``main``); a copy that does not
    change, so that an upgrade of the agent changes nothing beneath it.
    """

    def __init__(self, library: Path, programs: Sequence[str]) -> None:
        self._library = library
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    @property
    def answers_within_s(self) -> float:
        return _READY_WITHIN_S

    def fork(self, home: Home, lock: int, ready: int) -> None:
        """Start the supervisor of a prepared container. Raises OSError."""
        if self._door is not None:
            with contextlib.suppress(OSError):
                fork_through(self._door, home, lock, ready)
                return
            # It was killed, and has forked nothing: a request is read whole before that.
            self.close()
        fork_through(self._open(), home, lock, ready)

    def close(self) -> None:
        """End it; supervisors live on."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _open(self) -> socket.socket:
        program = self._library / "tenax" / "runtime" / "forking" / "forkserver.py"
        self._door, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", program, str(theirs.fileno()), self._library, *self._programs],
                env={},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return self._door


def fork_through(door: socket.socket, home: Home, lock: int, ready: int) -> None:
    """Ask the program at the other end for the supervisor of a prepared container. Raises OSError."""
    door.settimeout(_TAKEN_WITHIN_S)
    with (home.path / "supervisor.log").open("ab") as log:
        request = f"{home.container_id}\0{home.path}".encode().ljust(forkserver.FRAME, b"\0")
        if socket.send_fds(door, [request], [lock, ready, log.fileno()]) != len(request):
            raise BrokenPipeError(errno.EPIPE, "what forks containers takes no requests", str(home.path))


def is_locked(home: Home) -> bool:
    """Whether a supervisor lives."""
    try:
        fd = os.open(home.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


async def launch(home: Home, server: Forks) -> bool:
    """Start the supervisor and wait until the main process runs; False if one lives already. Raises StartFailed."""
    lock = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        ready, write = os.pipe()
        try:
            server.fork(home, lock, write)
        except BaseException:
            os.close(ready)
            raise
        finally:
            os.close(write)
    finally:
        os.close(lock)
    try:
        answer = await _read_all(ready, server.answers_within_s)
    except StartFailed:
        # Perhaps it is the forkserver that hangs: it goes, and with it what it was asked for and did not get to.
        server.close()
        raise
    if answer.startswith(b"running "):
        return True
    while is_locked(home):  # noqa: ASYNC110 - nobody tells of the end of a lock
        await asyncio.sleep(_POLL_S)
    if answer.startswith(b"failed "):
        _, number, text = answer.decode(errors="replace").split(" ", 2)
        raise StartFailed(f"could not start: {text}", platform=int(number) not in _REQUESTS)
    raise StartFailed(f"could not start: its supervisor failed: {_end_of_log(home)}", platform=True)


async def kill(home: Home) -> bool:
    """Have a supervisor that lives kill all of its container, and end; False where it cannot be named yet.

    One that hangs before it says what it watches is killed, and what it has forked: that may be out of its own reach.
    """
    supervision = home.supervision()
    supervisor = Identity(supervision.pid, supervision.start) if supervision is not None else home.begun()
    if supervisor is None:
        return False
    send(supervisor, signal.SIGUSR1)
    # One that somebody stopped would see to it only once it goes on.
    send(supervisor, signal.SIGCONT)
    if supervision is None:
        try:
            async with asyncio.timeout(_HEEDS_WITHIN_S):
                while is_locked(home) and home.supervision() is None:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            await asyncio.to_thread(kill_with_descendants, supervisor)
    return True


async def _read_all(fd: int, within_s: float) -> bytes:
    """Until the other end is closed; takes the descriptor over."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    parts: list[bytes] = []
    done = asyncio.Event()

    def readable() -> None:
        with contextlib.suppress(BlockingIOError):
            part = os.read(fd, 65536)
            if part:
                parts.append(part)
            else:
                loop.remove_reader(fd)
                done.set()

    loop.add_reader(fd, readable)
    try:
        async with asyncio.timeout(within_s):
            await done.wait()
    except TimeoutError:
        raise StartFailed(f"the supervisor did not answer within {within_s:.0f} s", platform=True) from None
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return b"".join(parts)


def _end_of_log(home: Home) -> str:
    try:
        lines = (home.path / "supervisor.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it left no message"
