"""The cluster that the scheduler keeps in memory is what the rows say, whatever happens and whoever was told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import asyncpg
import pytest
from structlog.testing import capture_logs

from tenax.config.master import PoolSettings, SchedulerSettings
from tenax.master.loops import cluster_memory, scheduling
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.loops.loop import PassContext, run
from tenax.master.loops.scheduling import Scheduling
from tenax.master.observability import counters
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database, connect
from tenax.master.store.database.lanes import REQUESTS
from tenax.master.store.database.leases import LeaseLost
from tenax.master.store.database.wakeups import Listener, Woken
from tenax.master.store.queue.cluster_cache import ClusterCache, read_all, read_changes
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import PoolPlan, PoolSnapshot
from tests.kits.master.changing_cluster import PLACES, RULES, ChangingCluster
from tests.kits.rows import add_agent, add_experiment, add_trial, request_attempt

EVERYTHING = Woken(frozenset(), full=True)
A_LOOK = Woken(frozenset(), full=False)
#: Names nothing that has changed.
SOMETHING = Woken(frozenset({""}), full=False)


def in_order(snapshots: Iterable[PoolSnapshot]) -> list[PoolSnapshot]:
    return [
        replace(each, requests=tuple(sorted(each.requests, key=lambda one: one.allocation_id))) for each in snapshots
    ]


async def fresh(database: Database, cache: ClusterCache | None) -> ClusterCache:
    """What a load gives; ``cache`` takes the changes that the same transaction sees."""
    other = ClusterCache(RULES, PLACES)
    async with database.snapshot() as conn:
        if cache is not None:
            cache.take(await read_changes(conn, cache.read))
        other.take(await read_all(conn))
    return other


async def differs(database: Database, cache: ClusterCache) -> list[str]:
    """What memory has otherwise than the rows, once it took the changes."""
    other = await fresh(database, cache)
    different = cache.differences(other)
    if not different:
        assert in_order(cache.snapshots({})) == in_order(other.snapshots({}))
    return different


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(0, 400), *(pytest.param(seed, 2000, marks=pytest.mark.long) for seed in range(1, 40))],
)
async def test_memory_is_what_the_rows_say(database: Database, database_url: str, seed: int, steps: int) -> None:
    """After each change: by the master's own functions, by plain statements, and by transactions that end late."""
    cluster = ChangingCluster(database, database_url, random.Random(seed))
    cache = await fresh(database, None)
    try:
        for _ in range(steps):
            await cluster.step()
            assert await differs(database, cache) == []
    finally:
        await cluster.close()
    happened = {name for name in cluster.kinds if cluster.done[name]}
    assert len(happened) > 0.75 * len(cluster.kinds), sorted(cluster.done.items())
    assert sum(count for name, count in cluster.done.items() if name.startswith("overlapping")) > steps / 20


#: Each notes changes that no other notes.
NOTES = [
    *(("allocations", "allocations_note"), ("allocations", "allocations_note_update")),
    *(("containers", "containers_note_update"), ("agents", "agents_note_update")),
    *(("agent_slots", "agent_slots_note_update"), ("agent_presence", "agent_presence_note_update")),
    *(("jobs", "jobs_note"), ("experiment_tallies", "experiment_tallies_note_update")),
]


@pytest.mark.parametrize(
    ("table", "trigger"),
    [NOTES[6], *(pytest.param(*each, marks=pytest.mark.long) for each in NOTES if each != NOTES[6])],
)
async def test_every_note_counts(database: Database, database_url: str, table: str, trigger: str) -> None:
    """Without one of the triggers memory does not become what the rows say."""
    async with database.transaction() as conn:
        await conn.execute(f"alter table {table} disable trigger {trigger}")
    cluster = ChangingCluster(database, database_url, random.Random(1))
    cache = await fresh(database, None)
    try:
        for _ in range(3000):
            await cluster.step()
            if await differs(database, cache):
                return
    finally:
        await cluster.close()
    pytest.fail(f"{trigger} was not missed")


async def test_what_is_committed_late_is_not_skipped(database: Database, database_url: str) -> None:
    """A transaction that began before another which was read already."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        await add_agent(conn, "a2")
    cache = await fresh(database, None)
    late = await connect(database_url, "late", REQUESTS)
    await late.execute("begin; update agents set state = 'DISABLED' where agent_id = 'a1'")
    async with database.transaction() as conn:
        await conn.execute("update agents set state = 'DRAINING' where agent_id = 'a2'")
    assert await differs(database, cache) == []
    await late.execute("commit")
    await late.close()
    assert await differs(database, cache) == []
    (pool,) = cache.snapshots({})
    assert [agent.state.value for agent in pool.agents] == ["DISABLED", "DRAINING"]


def scheduler(*pools: str) -> Scheduling:
    return Scheduling([PoolSettings(name=name) for name in pools or ("default",)], b"s" * 32, 60.0)


async def context_of(database: Database, holder: str = "test") -> PassContext:
    async with database.transaction() as conn:
        lease = await leases.acquire(conn, "scheduling", holder, 3600.0)
    assert lease is not None
    return PassContext(database, lease)


async def waiting(database: Database, pool: str = "default") -> str:
    """A request of one slot."""
    async with database.transaction() as conn:
        experiment = await add_experiment(conn)
        await conn.execute(
            "update jobs set pool = $2 where job_id = (select job_id from experiments where id = $1)", experiment, pool
        )
        return await request_attempt(conn, await add_trial(conn, experiment))


async def state(database: Database, name: str) -> str:
    async with database.connection() as conn:
        return str(await conn.fetchval("select state from allocations where allocation_id = $1", name))


async def test_it_does_not_matter_what_a_pass_was_woken_for(database: Database) -> None:
    """All that changed is read, whatever wake-up was lost; and what was read is not read again."""
    loop, context = scheduler(), await context_of(database)
    await loop.make_pass(context, EVERYTHING)
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
    name = await waiting(database)
    await loop.make_pass(context, SOMETHING)
    assert await state(database, name) == "ASSIGNED"
    await loop.make_pass(context, A_LOOK)
    async with database.connection() as conn:
        noted = await conn.fetch("select * from cluster_changes where id = $1", name)
    assert noted == []


async def test_what_was_read_is_removed_beside_an_open_transaction(database: Database, database_url: str) -> None:
    """Somebody else's may stay open for hours: what is noted meanwhile does not pile up, nor what is not of the cluster
    any more; what it notes itself is read when it is committed."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        await conn.execute("update agents set state = 'DISABLED'")
    loop, context = scheduler(), await context_of(database)
    await loop.make_pass(context, EVERYTHING)
    late = await connect(database_url, "late", REQUESTS)
    await late.execute("begin; update agents set state = 'ENABLED'")
    name = await waiting(database)
    await loop.make_pass(context, A_LOOK)
    async with database.transaction() as conn:
        await conn.execute("insert into cluster_changes (kind, id) values ('allocation', 'long gone')")
    await loop.make_pass(context, A_LOOK)
    async with database.connection() as conn:
        assert await conn.fetch("select * from cluster_changes") == []
    await late.execute("commit")
    await late.close()
    await loop.make_pass(context, SOMETHING)
    assert await state(database, name) == "ASSIGNED"


@contextlib.asynccontextmanager
async def unnoted(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A transaction whose changes no row says."""
    async with database.transaction() as conn:
        await conn.execute("alter table agents disable trigger user; alter table agent_presence disable trigger user")
        yield conn
        await conn.execute("alter table agents enable trigger user; alter table agent_presence enable trigger user")


async def test_an_audit_finds_what_was_not_noted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, counted, and put right. Until then nothing is placed where the rows do not allow it."""
    monkeypatch.setattr(cluster_memory, "AUDIT_EVERY_S", 0.0)
    monkeypatch.setattr(cluster_memory, "_AUDIT_SELDOM", 0.0)
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
    loop, context = scheduler(), await context_of(database)
    await loop.make_pass(context, EVERYTHING)
    async with unnoted(database) as conn:
        await conn.execute("update agents set state = 'DRAINING'")
    name = await waiting(database)
    await loop.make_pass(context, SOMETHING)
    assert await state(database, name) == "PENDING"
    before = counters.CACHE_DIFFERED._value.get()
    with capture_logs() as lines:
        await loop.make_pass(context, A_LOOK)
    (line,) = [each for each in lines if each["log_level"] == "error"]
    assert line["differences"] == 1
    assert line["first"] == [
        "agent a1 of pool default: state is <AgentState.ENABLED: 'ENABLED'>, not <AgentState.DRAINING: 'DRAINING'>"
    ]
    assert counters.CACHE_DIFFERED._value.get() == before + 1
    async with unnoted(database) as conn:
        await conn.execute("update agents set state = 'ENABLED'")
    await loop.make_pass(context, A_LOOK)
    assert await state(database, name) == "ASSIGNED"
    with capture_logs() as lines:
        await loop.make_pass(context, A_LOOK)
    assert not [each for each in lines if each["log_level"] == "error"]


async def test_an_audit_after_the_lease_was_lost_tells_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master that was stopped for a while, and went on: another has removed what was noted. No defect is told."""
    monkeypatch.setattr(cluster_memory, "AUDIT_EVERY_S", 0.0)
    monkeypatch.setattr(cluster_memory, "_AUDIT_SELDOM", 0.0)
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
    first, held = scheduler(), await context_of(database, "first")
    await first.make_pass(held, EVERYTHING)
    async with database.transaction() as conn:
        await leases.give_up(conn, held._lease)
    second, taken = scheduler(), await context_of(database, "second")
    async with database.transaction() as conn:
        await conn.execute("update agents set state = 'DISABLED'")
    await second.make_pass(taken, EVERYTHING)
    before = counters.CACHE_DIFFERED._value.get()
    with capture_logs() as lines, pytest.raises(LeaseLost):
        await first.make_pass(held, A_LOOK)
    assert not [each for each in lines if each["log_level"] == "error"]
    assert counters.CACHE_DIFFERED._value.get() == before


async def test_who_takes_over_reads_everything(database: Database) -> None:
    """What the one before has read and forgotten, too; and who comes back after another master wrote."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
    first, held = scheduler(), await context_of(database, "first")
    name = await waiting(database)
    await first.make_pass(held, EVERYTHING)
    async with database.transaction() as conn:
        await leases.give_up(conn, held._lease)
    await end(database, name)
    second, taken = scheduler(), await context_of(database, "second")
    await second.make_pass(taken, EVERYTHING)
    await second.make_pass(taken, A_LOOK)
    name = await waiting(database)
    with pytest.raises(LeaseLost):
        await first.make_pass(held, SOMETHING)
    assert await state(database, name) == "PENDING"
    await second.make_pass(taken, SOMETHING)
    assert await state(database, name) == "ASSIGNED"
    await end(database, name)
    async with database.transaction() as conn:
        await leases.give_up(conn, taken._lease)
    name = await waiting(database)
    await first.make_pass(await context_of(database, "first"), EVERYTHING)
    assert await state(database, name) == "ASSIGNED"


async def test_a_pass_that_breaks_leaves_no_memory(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one begins from nothing, whatever it is woken for."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
    loop, context = scheduler(), await context_of(database)
    await loop.make_pass(context, EVERYTHING)
    name = await waiting(database)
    with monkeypatch.context() as broken:
        broken.setattr(ClusterCache, "_take_requests", lambda cache, rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await loop.make_pass(context, SOMETHING)
    async with database.transaction() as conn:
        await conn.execute("delete from cluster_changes")
    await loop.make_pass(context, SOMETHING)
    assert await state(database, name) == "ASSIGNED"


async def test_what_came_while_nobody_listened_is_read(database: Database) -> None:
    """A listener that was cut off and is back has everything read, also what is noted nowhere."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        await conn.execute("update agents set state = 'DISABLED'")
    name = await waiting(database)
    listener = Listener(database)
    keeper = LeaseKeeper(database, listener, lambda reason: None)
    placed = asyncio.Event()

    class Watched(Scheduling):
        async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
            result = await super().make_pass(context, woken)
            passes.put_nowait(woken)
            if await state(database, name) == "ASSIGNED":
                placed.set()
            return result

    passes: asyncio.Queue[Woken] = asyncio.Queue()
    loop = Watched([PoolSettings(name="default")], b"s" * 32, 60.0)
    tasks = [
        asyncio.create_task(work) for work in (run(loop, database, listener, keeper), listener.run(), keeper.run())
    ]
    try:
        assert (await passes.get()).full
        async with unnoted(database) as conn:
            await conn.execute("update agents set state = 'ENABLED'")
        # Once that is committed: who reads everything anew may be faster.
        async with database.connection() as conn:
            # By its name, since it probes now and then, and its last statement may be that.
            cut = (
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where datname = current_database() and application_name like '%listener'"
            )
            assert await conn.fetchval(cut) == 1
        async with asyncio.timeout(60):
            await placed.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_only_pools_that_changed_are_planned(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them by and by, with other settings, and those that depend on time."""
    planned: list[str] = []

    def noting(snapshot: PoolSnapshot) -> PoolPlan:
        planned.append(snapshot.pool)
        return plan(snapshot)

    monkeypatch.setattr(scheduling, "plan", noting)
    settings = [PoolSettings(name="p"), PoolSettings(name="q")]
    reserving = PoolSettings(name="r", scheduler=SchedulerSettings(reservation=True))
    for pool in "pqr":
        await waiting(database, pool)
    loop, context = Scheduling([*settings, reserving], b"s" * 32, 60.0), await context_of(database)

    async def planned_in_a_pass(woken: Woken) -> list[str]:
        planned.clear()
        await loop.make_pass(context, woken)
        return list(planned)

    assert await planned_in_a_pass(EVERYTHING) == ["p", "q", "r"]
    assert await planned_in_a_pass(SOMETHING) == ["r"]
    await waiting(database, "q")
    assert await planned_in_a_pass(SOMETHING) == ["q", "r"]
    assert await planned_in_a_pass(SOMETHING) == ["r"]
    assert await planned_in_a_pass(A_LOOK) == ["p", "q", "r"]
    loop.use_pools([*settings, PoolSettings(name="r")])
    assert await planned_in_a_pass(SOMETHING) == ["p", "q", "r"]
    assert await planned_in_a_pass(SOMETHING) == []


async def end(database: Database, name: str) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "update allocations set state = 'TERMINATED', ended_at = now() where allocation_id = $1", name
        )
        await conn.execute("delete from slots_in_use")
        await conn.execute("update containers set gone_at = now()")
