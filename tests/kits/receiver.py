"""A receiver of webhooks: a real HTTP server on this machine that answers as it is told, and remembers what came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Received:
    """One request."""

    headers: dict[str, str]
    body: bytes
    #: What was answered.
    status: int

    @property
    def event(self) -> JsonObject:
        """The body as an event."""
        found: JsonObject = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """Answers with ``answers`` in turn, then 200; a status of 0 breaks the connection off."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    requests: list[Received] = field(default_factory=list)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def taken(self) -> list[Received]:
        """Those that were answered with 200."""
        return [one for one in self.requests if one.status == 200]

    async def wait_for(self, requests: int) -> None:
        """Until so many have come; four minutes at most."""
        async with asyncio.timeout(240), self._came:
            await self._came.wait_for(lambda: len(self.requests) >= requests)

    async def _answer(self, request: web.Request) -> web.Response:
        status = self.answers.pop(0) if self.answers else 200
        received = Received(dict(request.headers), await request.read(), status)
        async with self._came:
            self.requests.append(received)
            self._came.notify_all()
        if status == 0:
            assert request.transport is not None
            request.transport.close()
        return web.Response(status=status or 500, headers={"Location": "/elsewhere"} if status == 302 else None)


@asynccontextmanager
async def receiving(*answers: int, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """A receiver, for as long as the block lasts."""
    receiver = Receiver(answers=list(answers))
    app = web.Application()
    app.router.add_post("/{rest:.*}", receiver._answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0)
        await site.start()
        port = runner.addresses[0][1]
        receiver.url = f"http://{host}:{port}/hook/s3cr3t-path"
        yield receiver
    finally:
        await runner.cleanup()
