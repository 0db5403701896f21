"""Signs of life of many agents: what they take of the database, and whose word counts."""

from __future__ import annotations

import asyncio

from tenax.master.agents.hub import Hub
from tenax.master.agents.life import SignsOfLife
from tenax.master.agents.specs import PoolDefaults
from tenax.master.store.agents import rows as agents
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.wire.agents import PROTOCOL, Hello, Ping
from tests.kits.database import until_somebody_waits
from tests.kits.master.hub import Talk
from tests.kits.rows import add_agent
from tests.kits.slow_link import CountingDatabase

NAMES = [f"a{number}" for number in range(25)]
LONG_AGO = "update agent_presence set last_seen_at = now() - interval '1 hour'"
HEARD = "select agent_id from agent_presence where last_seen_at > now() - interval '1 minute'"


async def _fill(database: Database) -> None:
    async with database.transaction() as conn:
        for name in NAMES:
            await add_agent(conn, name)


async def _heard(database: Database) -> set[str]:
    async with database.connection() as conn:
        return {row["agent_id"] for row in await conn.fetch(HEARD)}


async def test_many_agents_that_are_heard_together_take_a_few_round_trips(
    database: Database, database_url: str
) -> None:
    """Not a transaction each: where a round trip takes 100 ms, those of fifty agents kept every connection busy."""
    await _fill(database)
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
    far = await CountingDatabase.open(database_url)
    assert isinstance(far, CountingDatabase)
    hub = Hub(far, Listener(database), identity, {"default": PoolDefaults()})
    talks = {name: Talk(identity) for name in NAMES}
    serving = [asyncio.create_task(hub.serve(talk, name, "127.0.0.1", asyncio.Event())) for name, talk in talks.items()]
    try:
        for name, talk in talks.items():
            talk.hello(agent_id=name)
            await talk.wants()
        async with database.transaction() as conn:
            await conn.execute(LONG_AGO)
        far.transactions.clear()
        far.reads.clear()
        for talk in talks.values():
            talk.say(Ping())
        async with asyncio.timeout(60):
            while await _heard(database) != set(NAMES):  # noqa: ASYNC110 - the database has no event for it
                await asyncio.sleep(0.01)
        said = [*far.reads, *far.transactions]
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await far.close()
    assert len(said) <= 3, said


async def test_an_agent_whose_row_is_held_waits_alone(database: Database) -> None:
    """The others are noted meanwhile; it is told what came of whoever held it."""
    await _fill(database)
    async with database.transaction() as conn:
        await conn.execute(LONG_AGO)
    life = SignsOfLife(database)
    async with database.transaction() as conn:
        await agents.open_session(conn, "a0", Hello(PROTOCOL, "test", "host", "process", [], []), "10.0.0.1", [])
        notes = {name: asyncio.create_task(life.note(name, 1)) for name in NAMES}
        assert all(await asyncio.gather(*(notes[name] for name in NAMES[1:])))
        assert await _heard(database) == set(NAMES[1:])
        await until_somebody_waits(database)
    assert not await notes["a0"]


async def test_a_replaced_connection_is_told_so_among_others(database: Database) -> None:
    """What it says is no sign of life of its agent, whether the newer one speaks at the same time or not."""
    await _fill(database)
    async with database.transaction() as conn:
        await conn.execute("update agent_presence set session = 2 where agent_id = 'a1'")
        await conn.execute(LONG_AGO)
    life = SignsOfLife(database)
    said = [("a1", 1), ("a2", 1), ("a1", 1), ("never", 1)]
    assert await asyncio.gather(*(life.note(*each) for each in said)) == [False, True, False, False]
    assert await _heard(database) == {"a2"}
    assert await asyncio.gather(*(life.note(*each) for each in [("a2", 1), ("a1", 1), ("a1", 2)])) == [
        True,
        False,
        True,
    ]
    assert await _heard(database) == {"a1", "a2"}


async def test_one_that_goes_costs_the_others_nothing(database: Database) -> None:
    """A connection may end while it notes what all of them said."""
    await _fill(database)
    async with database.transaction() as conn:
        await conn.execute(LONG_AGO)
    life = SignsOfLife(database)
    notes = [asyncio.create_task(life.note(name, 1)) for name in NAMES]
    await asyncio.sleep(0)
    notes[0].cancel()
    assert all(await asyncio.gather(*notes[1:]))
    assert await _heard(database) >= set(NAMES[1:])
