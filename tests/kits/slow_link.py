"""A database that is far away: a relay to its socket that holds each byte back, and statements that are counted.

`slow_link` is the way there; `CountingDatabase` notes of each transaction how many statements it made and how long it
took, and of what is read outside of one, each statement.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import asyncpg
from asyncpg import Connection

from tenax.master.store.database.connection import Database
from tenax.master.store.database.identity import DatabaseIdentity
from tenax.master.store.database.lanes import REQUESTS, Lane


@asynccontextmanager
async def slow_link(dsn: str, round_trip_s: float) -> AsyncIterator[str]:
    """The same database, each round trip to which takes so much longer."""
    parts = urlsplit(dsn)
    directory = parse_qs(parts.query)["host"][0]
    name = f"{directory}/.s.PGSQL.{parse_qs(parts.query).get('port', ['5432'])[0]}"
    ways: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(name)
        for source, target in ((reader, there_writer), (there_reader, writer)):
            way = asyncio.create_task(_relay(source, target, round_trip_s / 2))
            ways.add(way)
            way.add_done_callback(ways.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}{parts.path}"
    finally:
        server.close()
        for way in list(ways):
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _relay(source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_s: float) -> None:
    held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await held.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not data:
                target.close()
                return
            target.write(data)
            await target.drain()

    delivery = asyncio.create_task(deliver())
    try:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(2**16):
                held.put_nowait((time.monotonic() + delay_s, data))
        held.put_nowait((0.0, b""))
        with contextlib.suppress(ConnectionError):
            await delivery
    finally:
        delivery.cancel()
        await asyncio.gather(delivery, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a transaction came to."""

    statements: int
    seconds: float


def _ours(query: str) -> list[str]:
    """The statement; none where it is the driver's own, which asks for types once on each connection."""
    return [] if any(word in query for word in ("typeinfo_tree", "'jit'")) else [query]


class CountingDatabase(Database):
    """Notes its transactions."""

    def __init__(
        self, pools: Mapping[Lane, asyncpg.Pool], identity: DatabaseIdentity, dsn: str, name: str, lane: Lane = REQUESTS
    ) -> None:
        super().__init__(pools, identity, dsn, name, lane)
        self.transactions: list[Transaction] = []
        #: Statements outside of transactions.
        self.reads: list[str] = []

    def on(self, lane: Lane) -> CountingDatabase:
        """Its transactions are noted with the others."""
        other = CountingDatabase(self._pools, self._identity, self._dsn, self._name, lane)
        other.transactions, other.reads = self.transactions, self.reads
        return other

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """As every other, and noted."""
        async with super().connection() as conn:
            with conn.query_logger(lambda logged: self.reads.extend(_ours(logged.query))):
                yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """As every other, and noted."""
        seen: list[str] = []
        began = time.perf_counter()
        async with super().transaction() as conn:
            with conn.query_logger(lambda logged: seen.extend(_ours(logged.query))):
                yield conn
        self.transactions.append(Transaction(len(seen), time.perf_counter() - began))
