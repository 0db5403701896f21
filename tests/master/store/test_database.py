"""The pool, its transactions, and what its errors become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest
from asyncpg import Connection

from tenax.errors import TryAgain
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import Database, NotifyingConnection, now


async def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    """What was written in a block that raises is not there."""

    async def fail() -> None:
        async with database.transaction() as conn:
            await conn.execute("insert into contexts (hash, archive, size_bytes) values ($1, $2, 0)", "a" * 64, b"")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await fail()
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from contexts") == 0


async def test_json_goes_in_and_comes_out_as_values(database: Database) -> None:
    """A document of every JSON type is the same after the round trip."""
    document = {"a": [1, 2.5, None, True, "é\u2028"], "b": {"c": {}}, "big": 2**60}
    async with database.connection() as conn:
        assert await conn.fetchval("select $1::jsonb", document) == document
        assert await conn.fetchval("select $1::json", document) == document


async def test_a_number_that_json_lacks_is_refused(database: Database) -> None:
    """NaN does not silently become null."""
    async with database.connection() as conn:
        with pytest.raises(asyncpg.DataError, match="JSON compliant"):
            await conn.fetchval("select $1::jsonb", {"a": float("nan")})


async def test_a_value_that_does_not_fit_leaves_nothing_behind(database_url: str) -> None:
    """Whoever has the connection next begins anew, also where the statement was seen for the first time."""
    database = await Database.open(database_url, max_connections=1)
    try:
        with pytest.raises(asyncpg.DataError, match="int64"):
            async with database.connection() as conn:
                await conn.fetchval("select max_size from (select 1 as max_size) a where max_size = $1::bigint", 10**20)
        async with database.snapshot() as conn:
            assert await conn.fetchval("select 1") == 1
    finally:
        await database.close()


@pytest.mark.parametrize("why", [asyncio.CancelledError, TimeoutError])
async def test_a_statement_that_was_called_off_before_it_ran_leaves_nothing_behind(
    database_url: str, monkeypatch: pytest.MonkeyPatch, why: type[BaseException]
) -> None:
    """The server has parsed it and waits for what is next: that is no part of it, and has a time of its own."""
    database = await Database.open(database_url, max_connections=1)
    parse = NotifyingConnection._get_statement

    async def parsed(self: NotifyingConnection, query: str, *arguments: object, **named: object) -> object:
        statement = await parse(self, query, *arguments, **named)
        if query == "select 'called off'":
            raise why
        return statement

    monkeypatch.setattr(NotifyingConnection, "_get_statement", parsed)
    try:
        with pytest.raises((why, TryAgain)):
            async with database.connection() as conn:
                await conn.fetchval("select 'called off'")
        async with database.snapshot() as conn:
            assert await conn.fetchval("select 1") == 1
    finally:
        await database.close()


async def test_time_stands_still_inside_a_transaction(database: Database) -> None:
    """``now`` is one value per transaction."""
    async with database.transaction() as conn:
        first = await now(conn)
        await conn.execute("select pg_sleep(0.002)")
        assert await now(conn) == first


async def test_no_server_is_try_again(tmp_path: Path) -> None:
    """A server that is not there is a passing trouble, not an error of the caller."""
    with pytest.raises(TryAgain, match="cannot be reached"):
        await Database.open(f"postgresql://x@/x?host={tmp_path}&port=5432")


@pytest.mark.parametrize("noticed", [False, True])
@pytest.mark.parametrize("use", [Database.transaction, Database.snapshot, Database.connection])
async def test_a_connection_cut_under_its_use_is_try_again(
    database: Database,
    database_url: str,
    use: Callable[[Database], AbstractAsyncContextManager[Connection]],
    noticed: bool,
) -> None:
    """A killed backend is TryAgain, whether that was noticed before the next statement or not; the pool works on."""

    async def use_a_cut_connection() -> None:
        async with use(database) as conn:
            other = await asyncpg.connect(database_url)
            await other.execute("select pg_terminate_backend($1)", conn.get_server_pid())
            await other.close()
            while noticed and conn._con is not None:  # noqa: ASYNC110  # the pool tells nobody
                await asyncio.sleep(0)
            await conn.execute("select 1")

    with pytest.raises(TryAgain):
        await use_a_cut_connection()
    async with database.connection() as conn:
        assert await conn.fetchval("select 1") == 1


async def test_a_deadlock_is_try_again(database: Database) -> None:
    """Of two transactions that wait for each other, one is told to try again and the other goes on."""
    async with database.transaction() as conn:
        for loop in ("a", "b"):
            await conn.execute("insert into leases values ($1, 1, 'x', now())", loop)
    barrier = asyncio.Barrier(2)

    async def both(first: str, second: str) -> str:
        try:
            async with database.transaction() as conn:
                await conn.execute("select 1 from leases where loop = $1 for update", first)
                await barrier.wait()
                await conn.execute("select 1 from leases where loop = $1 for update", second)
        except TryAgain:
            return "again"
        return "done"

    assert sorted(await asyncio.gather(both("a", "b"), both("b", "a"))) == ["again", "done"]


async def test_a_mistake_in_a_statement_stays_an_error(database: Database) -> None:
    """Our own mistakes are not hidden as passing troubles."""
    with pytest.raises(asyncpg.PostgresSyntaxError):
        async with database.connection() as conn:
            await conn.execute("selec 1")


def test_the_session_has_one_server(postgres: EmbeddedPostgres) -> None:
    """The server of the fixtures runs."""
    assert postgres.pid is not None


@pytest.mark.parametrize("parent", ["metric_tail", "metric_blocks", "metric_chunks", "log_chunks"])
async def test_a_new_month_waits_for_no_reader(database: Database, parent: str) -> None:
    """The partition of a month is made while others read and write its parent, and is like the parent in all."""
    months = "select relname from pg_class where relname = $1"
    async with database.connection() as reader, database.connection() as other:
        async with reader.transaction():
            await reader.execute(f"lock table {parent} in row exclusive mode")
            await other.execute("set lock_timeout = '200ms'")
            try:
                await other.execute("select tenax_add_month($1, 203002)", parent)
            finally:
                await other.execute("reset lock_timeout")
            assert await reader.fetchval(months, f"{parent}_203002") == f"{parent}_203002"
        columns = """
            select array_agg((attname, atttypid, attnotnull, attstorage) order by attnum) from pg_attribute
            where attrelid = $1::text::regclass and attnum > 0"""
        part = f"{parent}_203002"
        assert await reader.fetchval(columns, part) == await reader.fetchval(columns, parent)
        indices = "select count(*) from pg_index where indrelid = $1::text::regclass"
        children = f"{indices} and exists (select 1 from pg_inherits where inhrelid = indexrelid)"
        assert await reader.fetchval(children, part) == await reader.fetchval(indices, part)
        assert await reader.fetchval(indices, part) == await reader.fetchval(indices, parent)
