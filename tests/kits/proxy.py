"""A proxy before PostgreSQL that fails as networks do: it stalls, drops, or loses the answer to one COMMIT.

    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url)
        proxy.stall()

What stalls keeps acknowledging, so that no end of a connection notices anything; what was swallowed is gone for good.
What is a black hole acknowledges nothing: packets are thrown away before TCP sees them, and sent again by it later on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

T = TypeVar("T")
#: Of <asm/socket.h>; a filter of one instruction: keep nothing of any packet.
_ATTACH_FILTER, _DETACH_FILTER = 26, 27
_KEEP_NOTHING = struct.pack("HBBI", 6, 0, 0, 0)


class Proxy:
    """Passes on what comes, until it is told otherwise. For one event loop."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[0]}@127.0.0.1:{{}}{parts.path}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: Of connections that are open.
        self._sockets: set[socket.socket] = set()
        self._dark = False
        #: Half of what each round trip takes longer than it does.
        self.delay_s = 0.0
        #: How much is taken from each client; None: as much as comes.
        self.bytes_per_s: int | None = None
        self._stalls = False
        self._refuses = False
        self._loses_commit = False
        #: Set when something was swallowed by a stall.
        self.swallowed = asyncio.Event()
        #: Set when an answer to a COMMIT was lost.
        self.lost = asyncio.Event()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def close(self) -> None:
        """Stop listening, end what is connected."""
        assert self._server is not None
        self._server.close()
        await self._end_all()

    @property
    def url(self) -> str:
        """The database as it is reached through this proxy."""
        assert self._server is not None
        return self._address.format(self._server.sockets[0].getsockname()[1]) + "?sslmode=disable"

    def stall(self) -> None:
        """From here on nothing is passed on, nor will be on connections that are open now."""
        self._stalls = True

    async def drop(self) -> None:
        """End all connections, and refuse new ones."""
        self._refuses = True
        await self._end_all()

    async def reset(self) -> None:
        """The same, as a machine that knows of no connection: without an end in good order."""
        for connected in self._sockets:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.drop()

    def go_dark(self) -> None:
        """From here on what clients send is neither acknowledged nor answered; nobody can connect."""
        self._dark = True
        self._darken(dark=True)

    def restore(self) -> None:
        """New connections work again; where it was dark, those that were not given up do, too."""
        self._stalls = self._refuses = False
        if self._dark:
            self._dark = False
            self._darken(dark=False)

    def _darken(self, *, dark: bool) -> None:
        assert self._server is not None
        for connected in self._sockets:
            _filter(connected, dark=dark)
        for socket_of_server in self._server.sockets:
            with _own(socket_of_server) as listening:
                _filter(listening, dark=dark)

    def lose_next_commit(self) -> None:
        """The next COMMIT is passed on, and done; its answer is not, and its connection ends."""
        self.lost.clear()
        self._loses_commit = True

    async def _end_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connected = _own(writer.get_extra_info("socket"))
        self._sockets.add(connected)
        try:
            if not self._refuses:
                await _Link(self, reader, writer).run(self._socket)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._sockets.discard(connected)
            connected.close()
            writer.close()
            self._tasks.discard(task)


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        #: Once anything was swallowed, nothing of the rest would make sense.
        self._stalled = False
        self._loses_answer = False

    async def run(self, socket: str) -> None:
        """Until either end has ended."""
        reader, writer = await asyncio.open_unix_connection(socket)
        ways = [
            asyncio.create_task(self._pass_on(self._reader, writer, from_client=True)),
            asyncio.create_task(self._pass_on(reader, self._writer, from_client=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_client: bool) -> None:
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivery = asyncio.create_task(_deliver(held, writer))
        try:
            while data := await reader.read(65536):
                self._stalled = self._stalled or self._proxy._stalls
                if self._stalled:
                    self._proxy.swallowed.set()
                    continue
                if from_client and self._proxy._loses_commit and b"COMMIT" in data:
                    self._proxy._loses_commit, self._loses_answer = False, True
                if self._loses_answer and not from_client:
                    self._proxy.lost.set()
                    return
                held.put_nowait((time.monotonic() + self._proxy.delay_s, data))
                if from_client and self._proxy.bytes_per_s is not None:
                    await asyncio.sleep(len(data) / self._proxy.bytes_per_s)
            held.put_nowait((0.0, b""))
            await delivery
        finally:
            delivery.cancel()
            await asyncio.gather(delivery, return_exceptions=True)


async def _deliver(held: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    """Each at its time, until nothing comes."""
    while True:
        due, data = await held.get()
        if due > time.monotonic():
            await asyncio.sleep(due - time.monotonic())
        if not data:
            return
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await writer.drain()


@asynccontextmanager
async def proxied(target: str) -> AsyncIterator[Proxy]:
    """A proxy before the database at ``target``, which listens on a Unix socket."""
    proxy = Proxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


@contextmanager
def proxy_thread(target: str) -> Iterator[ProxyThread]:
    """A proxy for whoever has no event loop."""
    thread = ProxyThread(target)
    try:
        yield thread
    finally:
        thread.close()


class ProxyThread:
    """A `Proxy` in a thread of its own."""

    def __init__(self, target: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._proxy = Proxy(target)
        asyncio.run_coroutine_threadsafe(self._proxy.start(), self._loop).result()

    @property
    def url(self) -> str:
        return self._proxy.url

    def stall(self) -> None:
        self._call(self._proxy.stall)

    def go_dark(self) -> None:
        self._call(self._proxy.go_dark)

    def restore(self) -> None:
        self._call(self._proxy.restore)

    def drop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.drop(), self._loop).result()

    def reset(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.reset(), self._loop).result()

    def slow(self, round_trip_s: float) -> None:
        """From here on a round trip takes so much longer."""
        self._proxy.delay_s = round_trip_s / 2

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, what: Callable[[], T]) -> T:
        async def call() -> T:
            return what()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


def _own(connected: socket.socket) -> socket.socket:
    """A socket that an event loop holds, with all that can be asked of it."""
    return socket.socket(fileno=os.dup(connected.fileno()))


def _filter(connected: socket.socket, *, dark: bool) -> None:
    if not dark:
        connected.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)
        return
    code = ctypes.create_string_buffer(_KEEP_NOTHING)
    connected.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(code)))
