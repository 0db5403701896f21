"""Rows of agents: sessions, and who may write."""

from __future__ import annotations

import asyncio

from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import containers
from tenax.master.store.database.connection import Database
from tenax.wire.agents import PROTOCOL, Hello
from tests.kits.database import until_somebody_waits
from tests.kits.rows import add_agent

HELLO = Hello(PROTOCOL, "test", "host", "process", [], [])


async def test_a_connection_that_is_being_replaced_is_not_the_newest(database: Database) -> None:
    """Whoever asks while the newer one is opened waits, and is told what came of it."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")

    async def say_something() -> bool:
        async with database.transaction() as conn:
            return await agents.heartbeat(conn, "a1", 1)

    async with database.transaction() as conn:
        assert (await agents.open_session(conn, "a1", HELLO, "10.0.0.1", [])).session == 2
        saying = asyncio.create_task(say_something())
        await until_somebody_waits(database)
    assert not await saying


async def test_a_report_and_a_new_connection_do_not_lock_each_other_out(database: Database) -> None:
    """The agent's row comes before its presence, for all: nobody has to be told to try again."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")

    async def connect() -> None:
        async with database.transaction() as conn:
            await agents.open_session(conn, "a1", HELLO, "10.0.0.1", [])

    async with database.transaction() as conn:
        assert await agents.heartbeat(conn, "a1", 1)
        connecting = asyncio.create_task(connect())
        await until_somebody_waits(database)
        await containers.desired_state_changed(conn, ["a1"])
    await connecting
