"""How the process runtime hears of news without asking for it: a datagram socket and the ends of supervisors.

Supervisors send their container's id to the socket; a supervisor that is killed cannot, so its pidfd is watched too.
Both are hints only. One event loop, one consumer.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from tenax.runtime.processes import Identity, open_pidfd

log = structlog.get_logger("tenax.runtime")


class News:
    """A set of container ids to look at; each is given once, however often it was named since it was taken."""

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._ready = asyncio.Event()

    def wake(self, container_id: str) -> None:
        self._pending[container_id] = None
        self._ready.set()

    async def changed(self) -> AsyncIterator[str]:
        """For ever; for one consumer."""
        while True:
            await self._ready.wait()
            while self._pending:
                container_id = next(iter(self._pending))
                del self._pending[container_id]
                yield container_id
            self._ready.clear()


class Wakes(News):
    """News from supervisors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._socket: socket.socket | None = None
        self._pidfds: dict[str, int] = {}
        #: One could not be watched, and that was said.
        self._unwatched = False

    def listen(self) -> None:
        """Begin to listen, on the running loop; nothing if it does already."""
        if self._socket is not None:
            return
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.setblocking(False)
        bind_in(self._path, listener)
        self._socket = listener
        asyncio.get_running_loop().add_reader(listener, self._received)

    def watch(self, container_id: str, supervisor: Identity) -> None:
        """Hear of the end of a supervisor; nothing if it is watched already."""
        if container_id in self._pidfds:
            return
        try:
            pidfd = open_pidfd(supervisor)
        except OSError as error:
            # Only a hint: it is tried again with each look at the container.
            if not self._unwatched:
                log.warning("ends of supervisors are heard of late", reason=str(error))
            self._unwatched = True
            return
        if pidfd is None:
            return
        self._pidfds[container_id] = pidfd
        asyncio.get_running_loop().add_reader(pidfd, self._ended, container_id)

    async def changed(self) -> AsyncIterator[str]:
        self.listen()
        async for container_id in super().changed():
            yield container_id

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for pidfd in self._pidfds.values():
            loop.remove_reader(pidfd)
            os.close(pidfd)
        self._pidfds.clear()
        if self._socket is not None:
            loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)

    def _received(self) -> None:
        assert self._socket is not None
        while True:
            try:
                message = self._socket.recv(256)
            except BlockingIOError:
                return
            self.wake(message.decode(errors="replace"))

    def _ended(self, container_id: str) -> None:
        pidfd = self._pidfds.pop(container_id)
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        self.wake(container_id)


def bind_in(path: Path, listener: socket.socket) -> None:
    """Bind to a path of any length: the system takes 107 bytes, so the folder is named by a descriptor where it can
    be."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        short = f"/proc/self/fd/{folder}/{path.name}"
        listener.bind(short if os.path.isdir("/proc/self/fd") else str(path))
    finally:
        os.close(folder)
