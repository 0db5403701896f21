"""A proxy before PostgreSQL that fails as networks do: it stalls, drops, or loses the answer to one COMMIT.

    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url)
        proxy.stall()

What stalls keeps acknowledging, so that no end of a connection notices anything; what was swallowed is gone for good.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit


class Proxy:
    """Passes on what comes, until it is told otherwise. For one event loop."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[0]}@127.0.0.1:{{}}{parts.path}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stalls = False
        self._refuses = False
        self._loses_commit = False
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

    def restore(self) -> None:
        """New connections work again."""
        self._stalls = self._refuses = False

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
        try:
            if not self._refuses:
                await _Link(self, reader, writer).run(self._socket)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
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
        while data := await reader.read(65536):
            self._stalled = self._stalled or self._proxy._stalls
            if self._stalled:
                continue
            if from_client and self._proxy._loses_commit and b"COMMIT" in data:
                self._proxy._loses_commit, self._loses_answer = False, True
            if self._loses_answer and not from_client:
                self._proxy.lost.set()
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
