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
import py_compile
import subprocess
import sys
from pathlib import Path

from tenax.runtime import supervisor
from tenax.runtime.directory import Home
from tenax.runtime.port import StartFailed

_READY_WITHIN_S = 60.0
#: Errors of exec that are the request's: wrong program, wrong permissions, too many arguments.
_REQUESTS = frozenset(
    {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP, errno.E2BIG, errno.EISDIR}
)


def compiled_supervisor(folder: Path) -> bytes:
    """The supervisor as this interpreter loads it, without its parse of some milliseconds at each start."""
    target = folder / f"supervisor-{os.getpid()}.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(supervisor.__file__, str(target), doraise=True, invalidation_mode=mode)
    content = target.read_bytes()
    target.unlink()
    return content


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


async def launch(home: Home, code: bytes) -> subprocess.Popen[bytes] | None:
    """Start the supervisor and wait until the main process runs; None if one lives already. Raises StartFailed."""
    (home.path / "supervisor.pyc").write_bytes(code)
    lock = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    ready, write = os.pipe()
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        process = _spawn(home, lock, write)
    except BaseException:
        os.close(ready)
        raise
    finally:
        os.close(lock)
        os.close(write)
    answer = await _read_all(ready)
    if answer.startswith(b"running "):
        return process
    await asyncio.to_thread(process.wait)
    if answer.startswith(b"failed "):
        _, number, text = answer.decode(errors="replace").split(" ", 2)
        raise StartFailed(f"could not start: {text}", platform=int(number) not in _REQUESTS)
    raise StartFailed(f"could not start: its supervisor failed: {_last_words(home)}", platform=True)


def _spawn(home: Home, lock: int, ready: int) -> subprocess.Popen[bytes]:
    with (home.path / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "supervisor.pyc", home.container_id, str(lock), str(ready)],
            cwd=home.path,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock, ready),
            start_new_session=True,
        )


async def _read_all(fd: int) -> bytes:
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
        async with asyncio.timeout(_READY_WITHIN_S):
            await done.wait()
    except TimeoutError:
        raise StartFailed(f"the supervisor did not answer within {_READY_WITHIN_S:.0f} s", platform=True) from None
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return b"".join(parts)


def _last_words(home: Home) -> str:
    try:
        lines = (home.path / "supervisor.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it left no message"
