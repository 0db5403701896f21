"""The output of a container as raw bytes with offsets, from an engine that only knows "from the start" and "follow".

An offset is counted from the first byte that the engine kept, which is all of it: containers are made with a log driver
that drops nothing while they exist. After a restart of the agent the stream is read from the start again and the bytes
before the offset are skipped.

Two of the engine's faults are made good. Follow may lose the last unterminated line, so after its end the rest is read
once more without follow. And the log driver that keeps bytes as they are forgets the newline after a line that it had
to cut (progress bars are such lines): a frame that neither is full nor ends with a newline was the end of a line. Lines
of an exact multiple of 16 KiB stay joined to the next: nothing tells them apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

import aiohttp

from tenax.runtime.docker.engine import Engine, EngineRefused
from tenax.runtime.port import RuntimeAway

#: Kept in memory per stream at most; reading pauses until the agent has taken some.
_BUFFER_BYTES = 2 * 1024 * 1024
#: Docker's log copier cuts lines into entries of this size.
_CUT_BYTES = 16 * 1024
_HEADER = struct.Struct(">BxxxL")


class Tail:
    """One stream of one container, read from ``offset`` on. ``news`` is called when there is more."""

    def __init__(self, engine: Engine, container: str, stream: str, offset: int, news: Callable[[], object]) -> None:
        self._engine = engine
        self._container = container
        self._stream = stream
        self._news = news
        #: Raw offset of the first byte that is not taken yet.
        self.offset = offset
        self._buffer = bytearray()
        self._room = asyncio.Event()
        self._more = asyncio.Event()
        self._failed: Exception | None = None
        self._over = False
        self._task = asyncio.create_task(self._run())

    async def take(self, limit: int, *, to_the_end: bool) -> bytes:
        """What is there; with ``to_the_end`` (the container has ended) empty only when there is nothing more."""
        while not self._buffer and not self._over:
            if self._failed is not None:
                raise self._failed
            if not to_the_end:
                break
            self._more.clear()
            await self._more.wait()
        data = bytes(self._buffer[:limit])
        del self._buffer[:limit]
        self.offset += len(data)
        self._room.set()
        return data

    @property
    def broken(self) -> bool:
        return self._failed is not None

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            for follow in (True, False):
                async for data in self._read(self.offset + len(self._buffer), follow):
                    await self._put(data)
            self._over = True
        except (RuntimeAway, EngineRefused, asyncio.IncompleteReadError) as error:
            self._failed = RuntimeAway(f"the output of {self._container} cannot be read: {error}")
        self._more.set()
        self._news()

    async def _put(self, data: bytes) -> None:
        while len(self._buffer) >= _BUFFER_BYTES:
            self._room.clear()
            await self._room.wait()
        self._buffer += data
        self._more.set()
        self._news()

    async def _read(self, skip: int, follow: bool) -> AsyncIterator[bytes]:
        """Bytes of the stream after the first ``skip``, to the end of the engine's answer."""
        query = {"follow": str(int(follow)), "stdout": "0", "stderr": "0", self._stream: "1"}
        async with self._engine.stream("GET", f"/containers/{quote(self._container)}/logs", query=query) as reply:
            async for data in _frames(reply.content, mend=not self._engine.is_podman):
                if skip >= len(data):
                    skip -= len(data)
                    continue
                yield data[skip:]
                skip = 0


async def _frames(content: aiohttp.StreamReader, *, mend: bool) -> AsyncIterator[bytes]:
    """The payloads of the engine's multiplexed stream: 8 bytes of header, then as many bytes as it says."""
    while True:
        try:
            _, length = _HEADER.unpack(await content.readexactly(_HEADER.size))
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return
        left, data = length, b""
        while left:
            data = await content.read(min(left, 1024 * 1024))
            if not data:
                return
            left -= len(data)
            yield data
        if mend and length != _CUT_BYTES and not data.endswith(b"\n"):
            yield b"\n"


class Tails:
    """The tails of all containers of a runtime."""

    def __init__(self, engine: Engine, news: Callable[[str], object]) -> None:
        self._engine = engine
        self._news = news
        self._open: dict[tuple[str, str], Tail] = {}

    async def read(self, key: tuple[str, str], name: str, offset: int, limit: int, *, ended: bool) -> bytes:
        """Raises RuntimeAway."""
        tail = self._open.get(key)
        if tail is None or tail.offset != offset or tail.broken:
            if tail is not None:
                await tail.close()
            tail = Tail(self._engine, name, key[1], offset, lambda: self._news(key[0]))
            self._open[key] = tail
        return await tail.take(limit, to_the_end=ended)

    async def forget(self, container_id: str) -> None:
        for key in [key for key in self._open if key[0] == container_id]:
            await self._open.pop(key).close()

    async def close(self) -> None:
        for tail in self._open.values():
            with contextlib.suppress(asyncio.CancelledError):
                await tail.close()
        self._open.clear()
