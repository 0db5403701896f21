"""A light client of the live stream: what a page's worker is to a master.

async with serving(api) as port, following(port, bearer(api.user), "experiments") as page:
    hello = await page.hello()
    change = await page.change("experiment", 7)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tenax.jsonvalue import JsonObject

#: More than any test waits for what comes at once on a quiet machine.
_AT_MOST_S = 60.0


@dataclass(frozen=True)
class Sent:
    """One event."""

    name: str
    data: JsonObject
    #: The position that came with it; empty: none.
    cursor: str


@dataclass
class Page:
    """One stream, as it comes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    #: Of the answer.
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    #: The newest position.
    cursor: str = ""
    comments: int = 0
    _rest: bytes = b""

    async def event(self) -> Sent | None:
        """The next event; None: the stream has ended."""
        async with asyncio.timeout(_AT_MOST_S):
            while True:
                block = await self._block()
                if block is None:
                    return None
                # By line feeds alone: a name may hold what else Python takes for the end of a line.
                lines = [line.partition(": ") for line in block.split("\n")]
                fields = {name: value for name, _, value in lines}
                self.comments += block.startswith(":")
                self.cursor = fields.get("id", self.cursor)
                if "data" in fields:
                    return Sent(fields["event"], json.loads(fields["data"]), fields.get("id", ""))

    async def until(self, name: str) -> JsonObject:
        """The next event of that name; others before it are passed over."""
        while True:
            sent = await self.event()
            assert sent is not None, f"the stream ended before {name}"
            if sent.name == name:
                return sent.data

    async def change(self, kind: str, id: object, **fields: object) -> JsonObject:
        """The next change of this thing that says so; others before it are passed over."""
        while True:
            data = await self.until("change")
            if (data["kind"], data["id"]) == (kind, id) and all(data.get(key) == fields[key] for key in fields):
                return data

    async def hello(self) -> JsonObject:
        """What the stream begins with."""
        sent = await self.event()
        assert sent is not None
        assert sent.name == "hello"
        return sent.data

    async def comment(self) -> None:
        """The next block is a comment."""
        async with asyncio.timeout(_AT_MOST_S):
            block = await self._block()
        assert block is not None
        assert block.startswith(":")
        self.comments += 1

    async def rest(self) -> list[Sent]:
        """All that comes until the stream ends."""
        events = []
        while (sent := await self.event()) is not None:
            events.append(sent)
        return events

    async def _block(self) -> str | None:
        """Lines up to an empty one, out of the parts of a chunked answer."""
        while b"\n\n" not in self._rest:
            size = await self.reader.readline()
            if not size or int(size, 16) == 0:
                return None
            self._rest += await self.reader.readexactly(int(size, 16))
            await self.reader.readexactly(2)
        block, _, self._rest = self._rest.partition(b"\n\n")
        return block.decode()

    async def begin(self, request: str) -> None:
        """Ask, and read the head of the answer."""
        self.writer.write(request.encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        self.status = int(head[0].split()[1])
        pairs = [line.partition(": ") for line in head[1:] if line]
        self.headers = {name.lower(): value for name, _, value in pairs}


def request(token: str, *topics: str, cursor: str = "", last_event_id: str = "") -> str:
    """The request of a stream."""
    query = urlencode([("topic", name) for name in topics] + ([("cursor", cursor)] if cursor else []))
    position = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
    return f"GET /api/v1/events?{query} HTTP/1.1\r\nHost: master\r\nAuthorization: Bearer {token}\r\n{position}\r\n"


@asynccontextmanager
async def following(
    port: int, token: str, *topics: str, cursor: str = "", last_event_id: str = ""
) -> AsyncIterator[Page]:
    """A stream of these topics, until the block ends."""
    page = Page(*await asyncio.open_connection("127.0.0.1", port))
    try:
        await page.begin(request(token, *topics, cursor=cursor, last_event_id=last_event_id))
        yield page
    finally:
        page.writer.close()
