"""The master of a test behind a real port: uvicorn and sockets, in the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenax.config.master import Role
from tenax.master.process import bind, serve_until_shutdown
from tests.kits.api import Api
from tests.kits.watchdog import watched


@asynccontextmanager
async def serving(api: Api) -> AsyncIterator[int]:
    """The port; its routes alone, without the loops. The master is asked to end afterwards."""
    master = api.master
    master.settings = master.settings.model_copy(update={"roles": (Role.API,)})
    listening = bind("127.0.0.1", 0)
    with watched("the server"):
        server = asyncio.create_task(serve_until_shutdown(master, api.app, listening, asyncio.Event()))
    try:
        port = int(listening.getsockname()[1])
        peer = await Peer.of(port)
        await peer.send(b"GET /info HTTP/1.1\r\nHost: master\r\nConnection: close\r\n\r\n")
        await peer.until_end()
        peer.close()
        yield port
    finally:
        master.shutdown.set()
        await server
        listening.close()


class Peer:
    """A peer that sends whatever it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def of(cls, port: int) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def until_end(self) -> bytes:
        """All that is answered until the master closes the connection; what it cuts off counts as its end."""
        answer = b""
        try:
            while part := await self._reader.read(65536):
                answer += part
        except ConnectionError:
            pass
        return answer

    async def answer(self) -> bytes:
        """The head of one answer."""
        return await self._reader.readuntil(b"\r\n\r\n")

    def close(self) -> None:
        self._writer.close()
