"""A real database that is half gone: who may not log in, what stands still, what takes for ever."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tenax.errors import TryAgain
from tenax.local.postgres import EmbeddedPostgres
from tenax.master import loops
from tenax.master.loops import lease_keeper
from tenax.master.loops.lease_keeper import LeaseKeeper, Tenure
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import lanes, stalls, wakeups
from tenax.master.store.database.connection import Database, connect
from tenax.master.store.database.faults import DatabaseSlow
from tenax.master.store.database.lanes import LEASES, LOOPS, REQUESTS, connections
from tenax.master.store.database.wakeups import Listener, notify
from tests.kits.api import Api
from tests.kits.pretend_agent import PretendAgent
from tests.kits.proxy import Proxy, proxied
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt

ROLE = "half_gone"


@pytest.fixture
async def role_url(postgres: EmbeddedPostgres, database_url: str) -> AsyncIterator[str]:
    """The database, as a role of its own."""
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute(f"create role {ROLE} superuser login password 'p'")
    try:
        yield f"postgresql://{ROLE}:p@" + database_url.partition("@")[2]
    finally:
        await admin.execute(
            f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{ROLE}'", timeout=10
        )
        await admin.execute(f"drop role {ROLE}")
        await admin.close()


@asynccontextmanager
async def listening(database: Database) -> AsyncIterator[Listener]:
    """One that listens; what ended it is raised in the end."""
    listener = Listener(database)
    running = asyncio.create_task(listener.run())
    try:
        await listener.connected()
        yield listener
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def keeping(database: Database, listener: Listener) -> AsyncIterator[LeaseKeeper]:
    """A keeper of leases at work."""
    keeper = LeaseKeeper(database, listener)
    running = asyncio.create_task(keeper.run())
    try:
        yield keeper
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_a_role_without_login_is_outlasted(role_url: str, database: Database) -> None:
    """What is asked meanwhile is "try again"; then changes are heard of again, after a look at everything."""
    theirs = await Database.open(role_url, max_connections=16)
    try:
        async with listening(theirs) as listener:
            with listener.subscribe("experiment") as subscription:
                await subscription.wait()
                async with database.connection() as conn:
                    await conn.execute(f"alter role {ROLE} nologin")
                    await conn.fetch(f"select pg_terminate_backend(pid) from pg_stat_activity where usename='{ROLE}'")
                with pytest.raises(TryAgain):
                    async with theirs.transaction() as conn:
                        await conn.execute("select 1")
                while listener.is_connected:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                async with database.connection() as conn:
                    await conn.execute(f"alter role {ROLE} login")
                assert (await subscription.wait()).full
                async with theirs.transaction() as conn:
                    await notify(conn, "experiment", 1)
                assert (await subscription.wait()).ids == {"1"}
    finally:
        await theirs.close()


async def test_connections_that_stand_still_are_given_up(database_url: str) -> None:
    """Nothing waits for ever on what is acknowledged and answered by nobody; then all is as before."""
    async with proxied(database_url) as proxy:
        theirs = await Database.open(proxy.url, max_connections=16)
        try:
            async with listening(theirs) as listener:
                with listener.subscribe("experiment") as subscription:
                    await subscription.wait()
                    await _stand_still(proxy, theirs)
                    while listener.is_connected:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    proxy.restore()
                    # It does not wait for what its dead session holds on the server.
                    assert (await subscription.wait()).full
                    async with theirs.on(LEASES).transaction() as conn:
                        await notify(conn, "experiment", 1)
                    assert (await subscription.wait()).ids == {"1"}
        finally:
            await theirs.close()


async def _stand_still(proxy: Proxy, database: Database) -> None:
    """From the middle of a transaction on; it ends."""

    async def use() -> None:
        async with database.on(LEASES).transaction() as conn:
            await conn.execute("select 1")
            proxy.stall()
            await conn.execute("select 2")

    with pytest.raises(TryAgain):
        await use()


@pytest.mark.parametrize("comes_back", [True, False])
async def test_what_waits_in_vain_is_given_up_long_before_its_limit(database_url: str, comes_back: bool) -> None:
    """A statement that may take five minutes, on a connection that stalls; whether new ones work or not."""
    async with proxied(database_url) as proxy:
        theirs = await Database.open(proxy.url, max_connections=16)
        try:
            async with listening(theirs):
                with pytest.raises(TryAgain):
                    await _wait_in_vain(proxy, theirs.on(LOOPS), comes_back=comes_back)
        finally:
            await theirs.close()


async def _wait_in_vain(proxy: Proxy, database: Database, *, comes_back: bool, parsed: str = "") -> None:
    """``parsed``: a statement of which the server has the first part."""
    async with database.transaction() as conn:
        await conn.execute("select 1")
        if parsed:
            await conn.prepare(parsed)
        proxy.stall()
        waiting = asyncio.create_task(conn.fetchval("select 2"))
        await proxy.swallowed.wait()
        if comes_back:
            proxy.restore()
        await waiting


async def test_half_a_statement_is_given_up_as_well(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first part has come, and the rest is lost: for the server it is at work, and would be for ever."""
    monkeypatch.setattr(stalls, "_HALF_SENT_S", 1.0)
    async with proxied(database_url) as proxy:
        theirs = await Database.open(proxy.url, max_connections=16)
        try:
            async with listening(theirs):
                with pytest.raises(TryAgain):
                    await _wait_in_vain(proxy, theirs.on(LOOPS), comes_back=True, parsed="select 1")
        finally:
            await theirs.close()


@pytest.mark.parametrize("holds_up", [True, False])
async def test_half_a_statement_of_another_holds_nobody_up(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, holds_up: bool
) -> None:
    """A master that is stopped between two parts of a statement: whoever waits for what it has locked gets it."""
    monkeypatch.setattr(stalls, "_HALF_SENT_S", 0.5)
    monkeypatch.setattr(stalls, "_HELD_UP_S", 0.2)
    monkeypatch.setattr(wakeups, "_PROBE_S", 0.05)
    stopped = await connect(database_url, "tenax-master", REQUESTS)
    somebody = await connect(database_url, "psql", REQUESTS)
    try:
        for conn in (stopped, somebody):
            await conn.execute("begin")
            await conn.execute("select pg_advisory_xact_lock($1)", conn.get_server_pid())
            # Parses a statement, and sends no more.
            await conn.prepare("select 1")
        async with listening(database), database.transaction() as conn:
            if holds_up:
                await conn.execute("select pg_advisory_xact_lock($1)", stopped.get_server_pid())
            else:
                await conn.execute("select pg_sleep(1.5)")
            assert await _is_there(conn, somebody)
            assert await _is_there(conn, stopped) is not holds_up
    finally:
        stopped.terminate()
        somebody.terminate()


async def _is_there(conn: asyncpg.Connection, other: asyncpg.Connection) -> bool:
    """Whether the server still has the process of this connection."""
    found = await conn.fetchval("select exists (select from pg_stat_activity where pid = $1)", other.get_server_pid())
    return bool(found)


async def test_what_the_server_works_on_is_not_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, and however often it is looked for; nor is a transaction that nobody waits for."""
    monkeypatch.setattr(stalls, "LONG_S", 0.0)
    monkeypatch.setattr(wakeups, "_PROBE_S", 0.05)
    async with listening(database):
        async with database.transaction() as conn:
            await asyncio.sleep(0.2)
            await conn.execute("select pg_sleep(0.5)")
            assert await conn.fetchval("select sum(n) from generate_series(1, 1000000) n") == 500000500000


async def test_what_still_arrives_is_not_given_up(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large value over a slow way: the server is idle until it has all of it."""
    monkeypatch.setattr(stalls, "LONG_S", 0.0)
    # Long enough for an answer to come through the proxy, short beside the two seconds of the value.
    monkeypatch.setattr(stalls, "_IDLE_S", 1.0)
    monkeypatch.setattr(wakeups, "_PROBE_S", 0.05)
    async with proxied(database_url) as proxy:
        theirs = await Database.open(proxy.url, max_connections=16)
        try:
            async with listening(theirs):
                async with theirs.transaction() as conn:
                    proxy.bytes_per_s = 20_000_000
                    assert await conn.fetchval("select length($1::bytea)", b"x" * 40_000_000) == 40_000_000
        finally:
            await theirs.close()


async def test_the_statement_after_what_was_looked_for_is_not_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to what was long on its way comes while the server is asked of it: the next has a time of its own."""
    monkeypatch.setattr(stalls, "LONG_S", 0.0)
    monkeypatch.setattr(stalls, "_IDLE_S", 0.0)
    async with database.transaction() as conn, database.transaction() as other:
        (waiting,) = [each for each in database._open_connections() if each.backend_pid == conn.backend_pid]
        waiting.waiting_since = time.monotonic() - 60

        class Asked:
            """A connection whose answer takes until the next statement is on its way."""

            async def fetch(self, *arguments: object) -> list[asyncpg.Record]:
                rows = await other.fetch(*arguments)
                waiting.waiting_since = time.monotonic()
                return rows

        assert await stalls.cut_stalled([waiting], Asked()) == 0
        assert await conn.fetchval("select 1") == 1


async def test_a_holder_that_is_cut_off_is_replaced_and_writes_no_more(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stand still: another takes over when the lease has run out, and the first learns of it."""
    monkeypatch.setattr(lease_keeper, "LEASE_S", 1.0)
    monkeypatch.setattr(lease_keeper, "_RENEW_S", 0.2)
    async with proxied(database_url) as proxy:
        theirs = await Database.open(proxy.url, max_connections=16)
        try:
            async with listening(theirs) as far, keeping(theirs, far) as cut_off:
                old = await _tenure(cut_off)
                async with listening(database) as near, keeping(database, near) as survivor:
                    proxy.stall()
                    # The survivor's is renewed by a process that may have to wait for a busy machine.
                    monkeypatch.setattr(lease_keeper, "LEASE_S", 60.0)
                    new = await _tenure(survivor)
                    assert new.lease.epoch == old.lease.epoch + 1
                    proxy.restore()
                    while not old.has_ended:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    assert not new.has_ended
        finally:
            await theirs.close()


async def _tenure(keeper: LeaseKeeper, step_s: float = 60.0) -> Tenure:
    return await keeper.wait_for("searching", step_s, lambda: None)


async def test_slow_requests_hold_up_neither_agents_nor_leases(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than there are connections: heartbeats are written, leases renewed, and the master is well."""
    monkeypatch.setattr(lease_keeper, "_RENEW_S", 0.1)
    async with contextlib.AsyncExitStack() as stack:
        tenure = await _tenure(await stack.enter_async_context(keeping(api.master.db, api.master.listener)))
        async with api.master.db.transaction() as conn:
            await agents.join(conn, "one", "default", b"x" * 32)
        agent = PretendAgent(1, lambda spec: asyncio.sleep(0, 0))
        for work in (
            api.master.hub.serve(agent.channel, "one", "127.0.0.1", asyncio.Event()),
            agent.run(),
            *(_slow(api.master.db) for _ in range(25)),
        ):
            task = asyncio.create_task(work)
            stack.callback(task.cancel)
        async with api.master.db.on(LEASES).connection() as conn:
            while await conn.fetchval(_SLOW) < connections(16)[REQUESTS]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            for look in (_HEARTBEAT, _LEASE):
                before = await conn.fetchval(look)
                while before is None or await conn.fetchval(look) == before:
                    agent.beat()
                    before = before or await conn.fetchval(look)
                    await asyncio.sleep(0.01)
        assert (await api.nobody.get("/health")).json()["database"] == "up"
        assert not tenure.has_ended


_SLOW = "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)' and datname = current_database()"
_HEARTBEAT = "select last_seen_at from agent_presence where agent_id = 'one'"
_LEASE = "select expires_at from leases where loop = 'searching'"


async def _slow(database: Database) -> None:
    async with database.connection() as conn:
        await conn.execute("select pg_sleep(600)")


async def test_a_statement_that_takes_too_long_is_ended(database: Database) -> None:
    """As is one that waits for a lock; both are "try again"."""
    patient = database.on(LEASES)
    async with database.transaction() as conn:
        await conn.execute("lock table leases")
        with pytest.raises(DatabaseSlow):
            async with patient.transaction() as other:
                await other.execute("lock table leases")
        with pytest.raises(DatabaseSlow):
            async with patient.transaction() as other:
                await other.execute("select pg_sleep(600)")


@pytest.mark.parametrize("most", [6, 7, 8, 16, 24, 100])
def test_a_process_holds_no_more_connections_than_it_may(most: int) -> None:
    """Each kind of work has one at least, and the listener has its own."""
    counts = connections(most)
    assert sum(counts.values()) + 1 == most
    assert set(counts) == set(lanes.POOLED)
    assert min(counts.values()) >= 1


async def test_an_error_that_nobody_listed_is_try_again_for_tasks(api: Api) -> None:
    """Tasks give up at 500, and what they have to say would be lost; people are told that it is ours."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn)
        attempt = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    task = await api.task(attempt.allocation_id)
    path = f"/api/v1/allocations/{attempt.allocation_id}/signals/preemption?timeout_seconds=0"
    assert (await task.get(path)).status_code == 200
    async with api.master.db.transaction() as conn:
        await conn.execute("alter table allocations rename to elsewhere")
    reply = await task.get(path)
    assert reply.status_code == 503, reply.text
    assert int(reply.headers["retry-after"]) >= 1
    assert (await api.admin.get("/api/v1/job-queues-v2", resourcePool="default")).status_code == 500


async def test_health_asks_the_listener(api: Api) -> None:
    """A master that hears nothing is not well, though its database answers."""
    assert (await api.nobody.get("/health")).json() | {"resource_managers": [], "waiting_migrations": []} == {
        "status": "up",
        "database": "up",
        "listener": "up",
        "loops": "elsewhere",
        "roles": {"api": "up", "loops": "elsewhere"},
        "trouble": {},
        "resource_managers": [],
        "waiting_migrations": [],
        "silent_providers": [],
    }
    api.master.listener._connected.clear()
    reply = await api.nobody.get("/health")
    assert reply.status_code == 503
    assert (reply.json()["database"], reply.json()["listener"]) == ("up", "down")


async def test_health_asks_the_loops(api: Api) -> None:
    """A loop that has hung is named, and the master is not well."""
    running = api.master.loops = loops.start(
        api.master.db, api.master.listener, api.master.settings, api.master.cluster
    )
    try:
        held = running._keeper._held
        while "searching" not in held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        reply = await api.nobody.get("/health")
        assert (reply.status_code, reply.json()["loops"]) == (200, "up")
        held["searching"].got_on_at = -1e9
        reply = await api.nobody.get("/health")
        assert reply.status_code == 503
        assert (reply.json()["loops"], reply.json()["trouble"]) == ("down", {"searching": "it has hung"})
    finally:
        await running.stop()
        api.master.loops = None
