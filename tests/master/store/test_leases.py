"""Leases and their fencing."""

from __future__ import annotations

import asyncio

import pytest

from tenax.master.store.database.connection import Database
from tenax.master.store.database.leases import Lease, LeaseLost, acquire, renew
from tenax.master.store.database.wakeups import Listener


async def take(database: Database, holder: str, seconds: float = 60.0) -> Lease | None:
    async with database.transaction() as conn:
        return await acquire(conn, "searching", holder, seconds)


async def test_one_holder_at_a_time(database: Database) -> None:
    """While a lease is good nobody else gets it, and its holder gets it again with a new epoch."""
    assert await take(database, "a") == Lease("searching", 1, "a")
    assert await take(database, "b") is None
    assert await take(database, "a") == Lease("searching", 2, "a")


async def test_a_lease_that_ran_out_is_taken_over_with_the_next_epoch(database: Database) -> None:
    """The old holder can neither write nor renew after that."""
    old = await take(database, "a", 0.0)
    new = await take(database, "b")
    assert old is not None
    assert new == Lease("searching", 2, "b")
    for refused in (old.check, lambda conn: renew(conn, old, 60.0)):
        with pytest.raises(LeaseLost):
            async with database.transaction() as conn:
                await refused(conn)
    async with database.transaction() as conn:
        await new.check(conn)


async def test_many_that_ask_at_once_get_one_lease(database: Database) -> None:
    """Exactly one of ten gets it, from nothing and from a lease that ran out."""
    for _ in range(2):
        got = await asyncio.gather(*(take(database, f"h{n}") for n in range(10)))
        assert sum(lease is not None for lease in got) == 1
        async with database.transaction() as conn:
            await renew(conn, next(lease for lease in got if lease is not None), 0.0)


async def test_a_takeover_waits_for_a_transaction_that_has_checked(database: Database) -> None:
    """What was checked stays true until the transaction ends."""
    old = await take(database, "a", 0.0)
    assert old is not None
    async with database.transaction() as conn:
        await old.check(conn)
        other = asyncio.create_task(take(database, "b"))
        await wait_until_blocked(database)
        assert not other.done()
    assert await other == Lease("searching", 2, "b")


async def test_renewing_keeps_it(database: Database) -> None:
    """A renewed lease does not run out."""
    lease = await take(database, "a", 0.0)
    assert lease is not None
    async with database.transaction() as conn:
        await renew(conn, lease, 60.0)
    assert await take(database, "b") is None


async def test_a_holder_whose_connection_is_gone_is_replaced_at_once(database: Database) -> None:
    """Of a holder that listens, death is known by its connection, before its lease runs out."""
    listener = Listener(database)
    running = asyncio.create_task(listener.run())
    await listener.connected()
    assert await take(database, listener.holder) is not None
    assert await take(database, "b") is None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await take(database, "b") == Lease("searching", 2, "b")


async def wait_until_blocked(database: Database) -> None:
    """Until some session of this database waits for a lock."""
    async with database.connection() as conn:
        # PostgreSQL has no event for it: looked at until it is so.
        while not await conn.fetchval("select count(*) from pg_locks where not granted"):  # noqa: ASYNC110
            await asyncio.sleep(0)
