"""NOTIFY and LISTEN."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, notify


@pytest.fixture
async def listener(database: Database) -> AsyncIterator[Listener]:
    """One that listens."""
    made = Listener(database)
    running = asyncio.create_task(made.run())
    await made.connected()
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def tell(database: Database, kind: str, *ids: int) -> None:
    async with database.transaction() as conn:
        for id in ids:
            await notify(conn, kind, id)


async def test_the_first_look_is_at_everything(listener: Listener) -> None:
    """Who begins to listen makes a full pass first."""
    with listener.subscribe("experiment") as ear:
        assert (await ear.wait()).full


async def test_what_is_committed_is_heard_by_kind_and_by_id(database: Database, listener: Listener) -> None:
    """A subscriber hears its kind, or its one thing, and nothing else."""
    with listener.subscribe("experiment") as every, listener.subscribe("experiment", 2) as two:
        await every.wait()
        await two.wait()
        await tell(database, "allocation", 2)
        await tell(database, "experiment", 1)
        assert (await every.wait()).ids == {"1"}
        await tell(database, "experiment", 2)
        assert (await every.wait()).ids == {"2"}
        woken = await two.wait()
        assert woken.ids == {"2"}
        assert not woken.full


async def test_what_is_rolled_back_is_not_heard(database: Database, listener: Listener) -> None:
    """A wake-up belongs to its transaction."""

    async def fail() -> None:
        async with database.transaction() as conn:
            await notify(conn, "experiment", 1)
            raise RuntimeError("no")

    with listener.subscribe("experiment") as ear:
        await ear.wait()
        with pytest.raises(RuntimeError, match="no"):
            await fail()
        await tell(database, "experiment", 5)
        assert (await ear.wait()).ids == {"5"}


async def test_any_words_are_heard(database: Database, listener: Listener) -> None:
    """Also those that could not stand in a statement as they are."""
    odd = "it's\\ a; commit; -- \u00e9"
    with listener.subscribe("experiment") as ear:
        await ear.wait()
        async with database.transaction() as conn:
            await notify(conn, "experiment", 1)
            await notify(conn, "experiment", odd)
        ids = (await ear.wait()).ids
        while ids != {"1", odd}:
            ids |= (await ear.wait()).ids


async def test_wakeups_are_no_statements_of_their_own(database: Database) -> None:
    """However many, they go with the commit; a statement outside of a transaction says them at once."""
    statements: list[str] = []
    async with database.transaction() as conn:
        with conn.query_logger(lambda record: statements.append(record.query)):
            await notify(conn, "experiment", 1)
            await notify(conn, "search", 1)
    assert statements == []
    async with database.connection() as conn:
        with conn.query_logger(lambda record: statements.append(record.query)):
            await notify(conn, "experiment", 1)
    assert len(statements) == 1


async def test_a_commit_that_fails_says_nothing(database: Database, listener: Listener) -> None:
    """What a constraint refuses at the very end was not announced, and the connection is as good as before."""

    async def fail() -> None:
        async with database.transaction() as conn:
            await conn.execute(
                "create temporary table once (a int unique deferrable initially deferred) on commit drop"
            )
            await conn.execute("insert into once values (1), (1)")
            await notify(conn, "experiment", 1)

    with listener.subscribe("experiment") as ear:
        await ear.wait()
        with pytest.raises(asyncpg.UniqueViolationError):
            await fail()
        await tell(database, "experiment", 5)
        assert (await ear.wait()).ids == {"5"}


async def test_nothing_said_is_nothing_heard(listener: Listener) -> None:
    """A wait ends at its deadline, with nothing to look at."""
    with listener.subscribe("experiment") as ear:
        await ear.wait()
        assert not await ear.wait(0.01)


async def test_a_lost_connection_is_made_again_and_all_is_looked_at(database: Database, listener: Listener) -> None:
    """After the listening connection was cut, every subscriber makes a full pass and hears again."""
    with listener.subscribe("experiment") as ear:
        await ear.wait()
        async with database.connection() as conn:
            # Of this database alone: others on the same server have masters that listen as well.
            cut = (
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where application_name like '%listener' and datname = current_database()"
            )
            assert await conn.fetchval(cut) == 1
        # On a busy machine the new connection comes later than a wait without news ends.
        while not (woken := await ear.wait()):
            pass
        assert woken.full
        await tell(database, "experiment", 7)
        assert (await ear.wait()).ids == {"7"}
