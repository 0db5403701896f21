"""Fixtures: one PostgreSQL per worker of the tests, and for each test a database of its own with the schema in it.

``database`` is a `Database`; ``database_url`` is for tests that start processes. Both are a copy of one migrated
template, made in some 50 ms. The server runs without fsync: a test is not about power cuts unless it makes its own.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import CHANNEL, Database, prepare
from tenax.master.store.database.migrate import migrate
from tenax.master.store.database.wakeups import Listener, Subscription
from tests.kits.temporary import PREFIX, remove_abandoned

#: It may lie in memory: what it keeps for recovery stays small.
FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
}


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """The server; its own database ``tenax`` is empty."""
    remove_abandoned()
    directory = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    server = EmbeddedPostgres(directory, settings=FAST)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def template(postgres: EmbeddedPostgres) -> str:
    """Name of a database with every migration applied and nothing in it."""
    name = "migrated"
    asyncio.run(make_template(postgres.dsn, name))
    return name


@pytest.fixture
async def database_url(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """Where a fresh database is."""
    name = f"t_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.dsn)
    try:
        await admin.execute(f"create database {name} template {template} strategy file_copy")
        yield database_in(postgres.dsn, name)
        await admin.execute(f"drop database {name} with (force)")
    finally:
        await admin.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool on a fresh database."""
    opened = await Database.open(database_url, max_connections=16)
    try:
        yield opened
    finally:
        await opened.close()


async def until_somebody_waits(database: Database) -> None:
    """Until a statement waits for a lock; raises TimeoutError after four minutes."""
    text = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.timeout(240), database.connection() as conn:
        while not await conn.fetchval(text):  # noqa: ASYNC110 - the database has no event for it
            await asyncio.sleep(0.01)


async def until_held(listener: Listener, kind: str, id: str, *held: asyncio.Future[object]) -> None:
    """Until all of ``held`` have looked at a thing and wait for news of it. Raises AssertionError if one ends first."""

    def waiting() -> int:
        subscriptions = listener._subscriptions.get((kind, id), set())
        return sum(isinstance(each, Subscription) and bool(each._event._waiters) for each in subscriptions)

    while waiting() < len(held):
        assert not any(each.done() for each in held), held
        await asyncio.sleep(0.001)


@asynccontextmanager
async def hearing(database: Database) -> AsyncIterator[Callable[[str], Awaitable[list[str]]]]:
    """``await until(payload)``: all wake-ups that were sent since, to this one; raises TimeoutError after 4 minutes."""
    queue: asyncio.Queue[str] = asyncio.Queue()

    def hear(*told: object) -> None:
        queue.put_nowait(str(told[3]))

    async def until(payload: str) -> list[str]:
        heard: list[str] = []
        async with asyncio.timeout(240):
            while payload not in heard:
                heard.append(await queue.get())
        return heard

    async with database.connection() as conn:
        await conn.add_listener(CHANNEL, hear)
        try:
            yield until
        finally:
            await conn.remove_listener(CHANNEL, hear)


def database_in(dsn: str, name: str) -> str:
    """The same server, another database."""
    head, _, query = dsn.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}"


async def make_template(dsn: str, name: str) -> None:
    """A database of that name, with every migration applied and nothing in it."""
    admin = await asyncpg.connect(dsn)
    await admin.execute(f"create database {name}")
    await admin.close()
    await migrated(database_in(dsn, name))


async def migrated(dsn: str) -> None:
    """Apply every migration to a database that is empty."""
    conn = await asyncpg.connect(dsn)
    await prepare(conn)
    await migrate(conn)
    await conn.close()
