"""Leases and their fencing, and the names of the loops that hold them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.deletion import Deletion
from tenax.master.loops.reconcile_experiments import ReconcileExperiments
from tenax.master.loops.reconcile_tasks import ReconcileTasks
from tenax.master.loops.retention import Retention
from tenax.master.loops.scheduling import Scheduling
from tenax.master.loops.searching import Searching
from tenax.master.loops.timeouts import Timeouts
from tenax.master.loops.webhook_delivery import WebhookDelivery
from tenax.master.store.database.connection import Database
from tenax.master.store.database.leases import Lease, LeaseLost, acquire, acquire_all, end_late, give_up, renew
from tenax.master.store.database.migrate import shipped
from tenax.master.store.database.wakeups import Listener


async def take(database: Database, holder: str, seconds: float = 60.0) -> Lease | None:
    async with database.transaction() as conn:
        return await acquire(conn, "searching", holder, seconds)


async def take_all(database: Database, holder: str, seconds: float = 60.0) -> list[Lease]:
    async with database.transaction() as conn:
        taken = await acquire_all(conn, ["searching", "scheduling"], holder, seconds)
    return sorted(taken, key=lambda lease: lease.loop, reverse=True)


@asynccontextmanager
async def listening(database: Database) -> AsyncIterator[Listener]:
    """A listener that listens; gone in the end."""
    listener = Listener(database)
    running = asyncio.create_task(listener.run())
    try:
        await listener.connected()
        yield listener
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


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
    with pytest.raises(LeaseLost):
        async with database.transaction() as conn:
            await old.check(conn)
    async with database.transaction() as conn:
        assert await renew(conn, [old], "a", 60.0) == {"searching"}
        await new.check(conn)


async def test_many_that_ask_at_once_get_one_lease(database: Database) -> None:
    """Exactly one of ten gets it, from nothing and from a lease that ran out."""
    for _ in range(2):
        got = await asyncio.gather(*(take(database, f"h{n}") for n in range(10)))
        assert sum(lease is not None for lease in got) == 1
        async with database.transaction() as conn:
            await renew(conn, [lease for lease in got if lease is not None], "h0", 0.0)


async def test_nobody_takes_over_before_a_transaction_that_has_checked_ends(database: Database) -> None:
    """What was checked stays true until then; who applies meanwhile gets the others, and waits for none."""
    old, other = await take_all(database, "a", 0.0)
    async with database.transaction() as conn:
        await old.check(conn)
        assert await take_all(database, "b") == [Lease(other.loop, 2, "b")]
        await old.check(conn)
    assert await take(database, "b") == Lease("searching", 2, "b")


async def test_whoever_was_stopped_in_the_middle_of_a_word_holds_nobody_up(
    database: Database, database_url: str
) -> None:
    """No time-out of PostgreSQL's ends a backend that waits for the rest of what was said: who takes over does."""
    stopped = await asyncpg.connect(database_url)
    lease = await take(database, "a", 60.0)
    assert lease is not None
    ended = asyncio.Event()
    stopped.add_termination_listener(lambda _: ended.set())
    await stopped.execute("begin")
    await lease.check(stopped)
    begun = b"name\0select 1\0" + struct.pack("!h", 0)
    # Parse and Flush, but no Sync: the statement goes on when the rest arrives.
    stopped._transport.write(b"P" + struct.pack("!i", len(begun) + 4) + begun + b"H" + struct.pack("!i", 4))
    async with database.connection() as conn:
        assert await end_late(conn, ["searching"]) == 0
        await conn.execute("update leases set expires_at = now()")
        assert await take(database, "b") is None
        assert await end_late(conn, ["searching"]) == 1
    await ended.wait()
    while await take(database, "b") is None:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_renewing_waits_for_no_pass(database: Database) -> None:
    """However long a transaction takes that has checked its lease, the lease is renewed meanwhile."""
    lease = await take(database, "a")
    assert lease is not None
    async with database.transaction() as conn, database.transaction() as another:
        await lease.check(conn)
        await another.execute("set local lock_timeout = 1")
        assert not await renew(another, [lease], "a", 60.0)


async def test_survivors_do_not_hinder_each_other(database: Database) -> None:
    """While one asks whether a holder is dead, the others get the same answer: all its loops move at once."""
    async with listening(database) as listener:
        held = await take_all(database, listener.holder)
        dead = listener.holder
    async with database.transaction() as conn:
        # One that has found out, and has not ended its transaction yet.
        await until_free(database, dead)
        assert await conn.fetchval("select pg_try_advisory_xact_lock_shared(hashtextextended($1, 0))", dead)
        assert len(await take_all(database, "b")) == len(held) == 2


async def test_a_holder_goes_on_under_its_new_name(database: Database) -> None:
    """After a new connection of the listener, leases get its name: the old one is that of a dead process."""
    async with listening(database) as listener:
        lease = await take(database, "session:gone")
        assert lease is not None
        async with database.transaction() as conn:
            assert not await renew(conn, [lease], listener.holder, 60.0)
        assert await take(database, "b") is None


async def test_what_is_given_up_is_free_at_once(database: Database) -> None:
    """Whoever has lost it by then gives nothing up."""
    lease = await take(database, "a")
    assert lease is not None
    async with database.transaction() as conn:
        await give_up(conn, lease)
    assert await take(database, "b") == Lease("searching", 2, "b")
    async with database.transaction() as conn:
        await give_up(conn, lease)
    assert await take(database, "c") is None


async def test_renewing_keeps_it(database: Database) -> None:
    """A renewed lease does not run out."""
    lease = await take(database, "a", 0.0)
    assert lease is not None
    async with database.transaction() as conn:
        assert not await renew(conn, [lease], "a", 60.0)
    assert await take(database, "b") is None


async def test_a_holder_whose_connection_is_gone_is_replaced_at_once(database: Database) -> None:
    """Of a holder that listens, death is known by its connection, before its lease runs out."""
    async with listening(database) as listener:
        assert await take(database, listener.holder) is not None
        assert await take(database, "b") is None
    await until_free(database, listener.holder)
    assert await take(database, "b") == Lease("searching", 2, "b")


async def until_free(database: Database, holder: str) -> None:
    """Until the server has noticed that the session of ``holder`` is gone."""
    async with database.connection() as conn:
        free = "select pg_try_advisory_lock_shared(hashtextextended($1, 0))"
        # PostgreSQL has no event for it: looked at until it is so.
        while not await conn.fetchval(free, holder):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await conn.execute("select pg_advisory_unlock_all()")


async def test_the_lease_of_a_loop_that_was_renamed_is_carried_over(database: Database) -> None:
    """Its holder keeps it under the new name until it runs out; under the old name nobody runs the loop any more."""
    async with database.transaction() as conn:
        held, free = await acquire(conn, "rescuing", "old", 60.0), await acquire(conn, "telling", "old", 0.0)
        assert held is not None
        assert free is not None
        (rename,) = (migration.sql for migration in shipped() if migration.name.endswith("_pre_loop_names"))
        await conn.execute(rename)
    for lost in (held, free):
        with pytest.raises(LeaseLost):
            async with database.transaction() as conn:
                await lost.check(conn)
    async with database.transaction() as conn:
        assert await acquire(conn, "timeouts", "new", 60.0) is None
        assert await acquire(conn, "timeouts", "old", 60.0) == Lease("timeouts", 2, "old")
        assert await acquire(conn, "webhook_delivery", "new", 60.0) == Lease("webhook_delivery", 2, "new")
        for name in ("rescuing", "telling"):
            assert await acquire(conn, name, "old", 60.0) is None
        assert await acquire(conn, "searching", "new", 60.0) == Lease("searching", 1, "new")


def test_a_loop_has_the_name_of_its_file() -> None:
    """In leases and in metrics; and its class has it, too."""
    kinds = (
        CheckpointGc,
        Deletion,
        ReconcileExperiments,
        ReconcileTasks,
        Retention,
        Scheduling,
        Searching,
        Timeouts,
        WebhookDelivery,
    )
    for kind in kinds:
        file = kind.__module__.rpartition(".")[2]
        assert kind.name == file
        assert kind.__name__.lower() == file.replace("_", "")
