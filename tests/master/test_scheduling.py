"""Why requests wait: said at once, and not said again for each that moves up; and a pass that has nothing to do."""

from __future__ import annotations

from typing import NoReturn

import pytest

from tenax.config.master import MasterSettings, PoolSettings, SchedulerSettings
from tenax.ids import AllocationId
from tenax.jsonvalue import Json, JsonObject
from tenax.master.loops import scheduling, wait_reasons
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scheduling import Scheduling
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import FREED
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.queue import placements
from tenax.master.store.queue.pools import rules
from tenax.scheduler.reasons import NOT_PLANNED, WaitClass, class_of
from tenax.scheduler.registry import USUAL, plan
from tenax.scheduler.snapshot import Fitting, PoolPlan, PoolRules, PoolSnapshot
from tests.kits.rows import add_agent, add_experiment, add_trial, request_attempt, run_attempt

EVERYTHING = Woken(frozenset(), full=True)


async def reasons(database: Database) -> dict[str, str]:
    async with database.connection() as conn:
        return dict(await placements.waits(conn))  # type: ignore[arg-type]


async def context_of(database: Database) -> PassContext:
    async with database.transaction() as conn:
        lease = await leases.acquire(conn, "scheduling", "test", 3600.0)
    assert lease is not None
    return PassContext(database, lease)


async def test_who_is_new_in_the_queue_is_told_at_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose words only change, because others moved up, a little later: each pass would rewrite the queue."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        experiment = await add_experiment(conn)
        names = [await request_attempt(conn, await add_trial(conn, experiment, seq)) for seq in range(1, 5)]
    loop, context = Scheduling(MasterSettings().pools, b"s" * 32, 60.0), await context_of(database)
    assert await loop.make_pass(context, EVERYTHING) is None
    first = await reasons(database)
    assert len(first) == 3
    async with database.transaction() as conn:
        (placed,) = set(names) - set(first)
        await conn.execute(
            "update allocations set state = 'TERMINATED', ended_at = now() where allocation_id = $1", placed
        )
        await conn.execute("delete from slots_in_use")
        await conn.execute("update containers set gone_at = now()")
    again = await loop.make_pass(context, EVERYTHING)
    assert again is not None
    assert 0 < again <= wait_reasons.WRITE_EVERY_S
    unchanged = await reasons(database)
    assert len(unchanged) == 2
    assert unchanged.items() <= first.items()
    monkeypatch.setattr(wait_reasons, "WRITE_EVERY_S", 0.0)
    assert await loop.make_pass(context, EVERYTHING) is None
    assert not (await reasons(database)).items() <= first.items()


async def test_slots_that_are_free_again_are_given_to_who_waits(database: Database) -> None:
    """The wake-up that says no more than this plans nothing where nobody waits, and places where somebody does."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        trial = await add_trial(conn, await add_experiment(conn))
    loop, context = Scheduling(MasterSettings().pools, b"s" * 32, 60.0), await context_of(database)
    freed = Woken(frozenset({f"{FREED}a1", f"{FREED}a2"}), full=False)
    assert await loop.make_pass(_Blind(context), freed) is None
    async with database.transaction() as conn:
        name = await request_attempt(conn, trial)
    assert await loop.make_pass(context, freed) is None
    async with database.connection() as conn:
        assert await conn.fetchval("select state from allocations where allocation_id = $1", name) == "ASSIGNED"


class _Blind(PassContext):
    """Sees no snapshot, and can write nothing."""

    def __init__(self, context: PassContext) -> None:
        super().__init__(context._database, context._lease)

    def snapshot(self) -> NoReturn:
        raise AssertionError("all requests and agents were loaded")

    transaction = snapshot


async def test_reasons_of_what_was_withdrawn_meanwhile_are_not_written(database: Database) -> None:
    """Nor of what is not there any more."""
    async with database.transaction() as conn:
        name = await request_attempt(conn, await add_trial(conn, await add_experiment(conn)))
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        await placements.write_waits(conn, {AllocationId(name): "it waits", AllocationId("gone"): "it waits"})
        assert await placements.waits(conn) == {}


URGENT = (PoolSettings(name="default", scheduler=SchedulerSettings(preemption=True)),)


async def time_left(database: Database, configured: Json, *, ready: bool) -> float | None:
    """Makes room for something urgent; the seconds that what held the slot has for it."""
    config: JsonObject = {"searcher": {"name": "single", "metric": "loss"}, "preemption_timeout": configured}
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        victim = await run_attempt(conn, await add_trial(conn, await add_experiment(conn, config=config)))
        if ready:
            await allocations.set_ready(conn, victim.allocation_id)
        urgent = await add_experiment(conn)
        await conn.execute(
            "update jobs set priority = 1 where job_id = (select job_id from experiments where id = $1)", urgent
        )
        await request_attempt(conn, await add_trial(conn, urgent))
    await Scheduling(URGENT, b"s" * 32, 3600.0).make_pass(await context_of(database), EVERYTHING)
    async with database.connection() as conn:
        left: float | None = await conn.fetchval(
            "select extract(epoch from preemption_deadline - now())::float8 from allocations where allocation_id = $1",
            victim.allocation_id,
        )
    return left


@pytest.mark.parametrize(
    ("configured", "ready", "most", "least"),
    [(1000, True, 1000, 500), (None, True, 3600, 3000), (0, True, 0, -600), (1000, False, 0, -600)],
    ids=["its own time", "the master's", "none", "nothing to save yet"],
)
async def test_who_makes_room_has_the_time_that_its_configuration_gives(
    database: Database, configured: int | None, ready: bool, most: float, least: float
) -> None:
    """As for a pause; what has not come up yet goes at once."""
    left = await time_left(database, configured, ready=ready)
    assert left is not None
    assert least <= left <= most


def test_a_pool_is_scheduled_as_its_settings_say() -> None:
    """Preemption, fitting, and whether gangs may be uneven."""
    pool = PoolSettings(
        name="p",
        scheduler=SchedulerSettings(
            preemption=True, fitting_policy=Fitting.WORST, allow_heterogeneous_fits=False, reservation=True
        ),
    )
    assert rules(pool) == PoolRules(USUAL, preemption=True, fitting=Fitting.WORST, uneven_gangs=False, reservation=True)
    assert rules(PoolSettings(name="p")) == PoolRules(USUAL, preemption=False, fitting=Fitting.BEST, uneven_gangs=True)


async def test_a_pool_that_shares_gives_a_newcomer_its_part(database: Database) -> None:
    """What holds more than its share is asked to leave, with the reason."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=4)
        first, second = await add_experiment(conn), await add_experiment(conn)
        running = [await run_attempt(conn, await add_trial(conn, first, seq)) for seq in range(1, 5)]
        for seq in range(1, 5):
            await request_attempt(conn, await add_trial(conn, second, seq))
        await conn.execute(
            "update jobs set weight = 3 where job_id = (select job_id from experiments where id = $1)", second
        )
    shares = (PoolSettings(name="default", scheduler=SchedulerSettings(type="fair_share")),)
    await Scheduling(shares, b"s" * 32, 3600.0).make_pass(await context_of(database), EVERYTHING)
    async with database.connection() as conn:
        leaving = await conn.fetch(
            "select allocation_id, preemption_reason from allocations where preemption <> 'NONE' order by 1"
        )
    assert {row["allocation_id"] for row in leaving} < {run.allocation_id for run in running}
    assert [row["preemption_reason"] for row in leaving] == [
        "its job holds 4 of 4 slots in pool default, and its share of them is 1 now"
    ] * 3
    assert all("they are being released" in reason for reason in list((await reasons(database)).values())[:3])


@pytest.mark.parametrize(
    ("reason", "left_before"), [("", False), ("the user paused it", False), ("makes room for 7.1, which is ...", True)]
)
async def test_who_has_held_least_takes_from_who_has_held_most(
    database: Database, reason: str, left_before: bool
) -> None:
    """What a job held is counted over all its attempts; one that follows an attempt that had to leave for another is
    left alone for a time, and none that left for what its owner did."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=2)
        long, young, new = [await add_trial(conn, await add_experiment(conn)) for _ in range(3)]
        first = await run_attempt(conn, long)
        await conn.execute(
            "update allocations set state = 'TERMINATED', assigned_at = now() - interval '9 hours', ended_at = now(),"
            " preemption = $2, preemption_reason = $3,"
            " preemption_deadline = case $2 when 'NONE' then null else now() end"
            " where allocation_id = $1",
            first.allocation_id,
            "REQUESTED" if reason else "NONE",
            reason,
        )
        await conn.execute("delete from slots_in_use")
        await conn.execute("update containers set gone_at = now()")
        held = await run_attempt(conn, long)
        await run_attempt(conn, young)
        waits = await request_attempt(conn, new)
    least = (PoolSettings(name="default", scheduler=SchedulerSettings(type="least_attained")),)
    await Scheduling(least, b"s" * 32, 3600.0).make_pass(await context_of(database), EVERYTHING)
    async with database.connection() as conn:
        leaving = dict(
            await conn.fetch(
                "select allocation_id, preemption_reason from allocations"
                " where preemption <> 'NONE' and state <> 'TERMINATED'"
            )
        )
    assert set(leaving) == (set() if left_before else {held.allocation_id})
    assert all("this one: priority 42, 9 slot hours so far" in reason for reason in leaving.values())
    assert ("asked to save and leave" in (await reasons(database))[waits]) != left_before


async def test_a_pool_that_cannot_be_planned_holds_up_no_other(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits in it says so."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        await add_agent(conn, "b1", slots=1, pool="broken")
        fine = await request_attempt(conn, await add_trial(conn, await add_experiment(conn)))
        other = await add_experiment(conn)
        of = "(select job_id from experiments where id = $1)"
        await conn.execute(f"update jobs set pool = 'broken' where job_id = {of}", other)
        stuck = await request_attempt(conn, await add_trial(conn, other))

    def fails(snapshot: PoolSnapshot) -> PoolPlan:
        if snapshot.pool == "broken":
            raise OverflowError("a number")
        return plan(snapshot)

    monkeypatch.setattr(scheduling, "plan", fails)
    pools = (PoolSettings(name="broken"), PoolSettings(name="default"))
    await Scheduling(pools, b"s" * 32, 60.0).make_pass(await context_of(database), EVERYTHING)
    async with database.connection() as conn:
        assert await conn.fetchval("select state from allocations where allocation_id = $1", fine) == "ASSIGNED"
    assert (await reasons(database))[stuck] == NOT_PLANNED
    assert class_of(NOT_PLANNED) is WaitClass.ASK


async def test_words_of_a_long_queue_follow_little_by_little(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that changed first, so that everyone's turn comes; who is new is told at once, however many others wait."""
    monkeypatch.setattr(wait_reasons, "_CHANGED_AT_ONCE", 2)
    monkeypatch.setattr(wait_reasons, "_TOGETHER", 3)
    monkeypatch.setattr(wait_reasons, "WRITE_EVERY_S", 0.0)
    monkeypatch.setattr(wait_reasons, "WRITE_SELDOM", 0.0)
    async with database.transaction() as conn:
        experiment = await add_experiment(conn)
        for seq in range(1, 8):
            await request_attempt(conn, await add_trial(conn, experiment, seq))
    loop, context = Scheduling(MasterSettings().pools, b"s" * 32, 60.0), await context_of(database)
    assert await loop.make_pass(context, EVERYTHING) is None
    first = await reasons(database)
    assert len(first) == 7
    async with database.transaction() as conn:
        await add_agent(conn, "a1", slots=1)
        await conn.execute("update agents set state = 'DRAINING'")
        new = await request_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    changed = []
    woken = Woken(frozenset({""}), full=False)
    while (await loop.make_pass(context, woken)) is not None:
        now = await reasons(database)
        assert new in now
        changed.append(sum(now[name] != first[name] for name in first))
    assert changed == [2, 4, 6]
    now = await reasons(database)
    assert all(now[name] != first[name] for name in first)
