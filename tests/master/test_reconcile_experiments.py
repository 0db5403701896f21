"""The loop that gives trials what they should have, beside others that lock the same rows."""

from __future__ import annotations

import asyncio

from asyncpg import Connection

from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.loops.loop import PassContext
from tenax.master.loops.quarantine import quarantine_in
from tenax.master.loops.reconcile_experiments import ReconcileExperiments
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.containers import NewMember
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.leases import Lease
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tests.kits.database import until_somebody_waits
from tests.kits.rows import add_agent, add_experiment, add_trial, request_attempt, run_attempt

#: As soon as somebody waits for a lock of another, which waits in turn.


async def test_a_wake_up_without_a_name_is_about_all_experiments(database: Database) -> None:
    """As the removal of an agent says it."""
    async with database.transaction() as conn:
        number = await add_experiment(conn)
        await add_trial(conn, number)
        lease = await leases.acquire(conn, "reconcile_experiments", "test", 3600.0)
    assert lease is not None
    await ReconcileExperiments(60.0).make_pass(PassContext(database, lease), Woken(frozenset({""}), full=False))
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from allocations where state = 'PENDING'") == 1


async def test_an_experiment_is_killed_while_one_of_its_trials_is_being_placed(database: Database) -> None:
    """One trial runs on the agent that the other is being placed on: neither waits for the other for ever."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        number = await add_experiment(conn)
        await run_attempt(conn, await add_trial(conn, number, 1))
        waiting = await request_attempt(conn, await add_trial(conn, number, 2))
        lease = await leases.acquire(conn, "reconcile_experiments", "test", 3600.0)
        await experiments.ask(conn, number, ExperimentEvent.KILL, "killed")
    assert lease is not None
    async with database.transaction() as conn:
        # As a placement does it: first the request, then its container, and the agent last.
        pass_ = await _reconciled_while_it_is_placed(conn, database, lease, number, waiting)
        await containers.desired_state_changed(conn, ["a1"])
    # Within the same pass: nothing would wake another.
    await pass_
    async with database.connection() as conn:
        assert {row["want"] for row in await conn.fetch("select want from containers")} <= {"STOP", "GONE"}


async def test_an_experiment_is_paused_while_its_trial_is_being_placed(database: Database) -> None:
    """It is not up yet, and has nothing to save: it ends at once, and not half a minute later."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        number = await add_experiment(conn)
        waiting = await request_attempt(conn, await add_trial(conn, number))
        lease = await leases.acquire(conn, "reconcile_experiments", "test", 3600.0)
        await experiments.ask(conn, number, ExperimentEvent.PAUSE, "paused")
    assert lease is not None
    async with database.transaction() as conn:
        pass_ = await _reconciled_while_it_is_placed(conn, database, lease, number, waiting)
    await pass_
    async with database.connection() as conn:
        assert await conn.fetchval("select want from containers") == "KILL"


async def test_an_experiment_is_quarantined_while_its_trial_is_being_placed(database: Database) -> None:
    """What was placed meanwhile ends with the rest."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        number = await add_experiment(conn)
        waiting = await request_attempt(conn, await add_trial(conn, number))
        lease = await leases.acquire(conn, "reconcile_experiments", "test", 3600.0)
    assert lease is not None
    quarantine = quarantine_in(PassContext(database, lease), "reconcile_experiments")
    async with database.transaction() as conn:
        await conn.execute("update allocations set state = 'ASSIGNED' where allocation_id = $1", waiting)
        pass_ = asyncio.ensure_future(quarantine(str(number), "KeyError: 'x'"))
        await until_somebody_waits(database)
        await containers.create(conn, waiting, [NewMember("11111111-1111-4111-8111-111111111111", 0, "a1", [1])])
    await pass_
    async with database.connection() as conn:
        assert await conn.fetchval("select want from containers") == "KILL"


async def _reconciled_while_it_is_placed(
    conn: Connection, database: Database, lease: Lease, experiment_id: int, allocation_id: str
) -> asyncio.Task[float | None]:
    """A pass that has seen a request which ``conn`` is placing."""
    await conn.execute("update allocations set state = 'ASSIGNED' where allocation_id = $1", allocation_id)
    news = Woken(frozenset({str(experiment_id)}), full=False)
    pass_ = asyncio.create_task(ReconcileExperiments(60.0).make_pass(PassContext(database, lease), news))
    await until_somebody_waits(database)
    await containers.create(conn, allocation_id, [NewMember("11111111-1111-4111-8111-111111111111", 0, "a1", [1])])
    return pass_
