"""Tasks that the cluster launches itself."""

from __future__ import annotations

import asyncio

from tenax.config.master import MasterSettings, PoolSettings
from tenax.lifecycle.task import TaskEvent, TaskKind, TaskState, TaskVerdict
from tenax.master.checkpoints.removal_tasks import launch_task, own_config
from tenax.master.loops.loop import PassContext
from tenax.master.loops.reconcile_tasks import ReconcileTasks
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import containers
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import PlacedFile
from tests.kits.database import hearing, until_somebody_waits
from tests.kits.rows import add_agent, add_experiment

SETTINGS = MasterSettings(
    pools=(PoolSettings(name="default"), PoolSettings(name="aux")),
    default_aux_pool="aux",
    task_container_defaults={"environment_variables": ["A=1"]},
)


async def test_a_task_of_the_cluster_is_placed_as_any_other(database: Database) -> None:
    """In the pool for what needs no slots, with the cluster's defaults and the files that it was given."""
    config = own_config(SETTINGS, ["{python}", "-m", "x"])
    async with database.transaction() as conn:
        await add_experiment(conn)
        task_id = await launch_task(
            conn,
            SETTINGS,
            kind=TaskKind.CHECKPOINT_GC,
            owner_id=1,
            config=config,
            files=[PlacedFile("list.json", "[]")],
            env={"EXTRA": "y"},
        )
        lease = await leases.acquire(conn, "reconcile_tasks", "test", 3600.0)
    assert lease is not None
    for _ in range(2):
        await ReconcileTasks().make_pass(PassContext(database, lease), Woken(frozenset({task_id}), full=False))
    async with database.transaction() as conn:
        await add_agent(conn)
        rows = await conn.fetch("select slots, preemptible, single_node from allocations where task_id = $1", task_id)
        assert [tuple(row.values()) for row in rows] == [(0, False, True)]
        assert (
            await conn.fetchval("select pool from jobs join tasks using (job_id) where task_id = $1", task_id) == "aux"
        )
        await conn.execute(load("allocations").place, f"{task_id}.1")
        await containers.create(conn, f"{task_id}.1", [containers.NewMember("c", 0, "a1", [])])
        (row,) = await agents.desired_containers(conn, "a1")
        assert (row["task_kind"], row["username"], row["pool"]) == ("CHECKPOINT_GC", "owner", "aux")
        assert (await tasks.lock(conn, task_id)).state is TaskState.ACTIVE


async def test_a_task_that_is_killed_while_it_is_placed_ends_in_the_same_pass(database: Database) -> None:
    """Nothing would wake another: it would run on until the next full pass."""
    async with database.transaction() as conn:
        await add_agent(conn)
        await add_experiment(conn)
        config = own_config(SETTINGS, ["x"])
        task_id = await launch_task(conn, SETTINGS, kind=TaskKind.CHECKPOINT_GC, owner_id=1, config=config)
        lease = await leases.acquire(conn, "reconcile_tasks", "test", 3600.0)
    assert lease is not None
    context, news = PassContext(database, lease), Woken(frozenset({task_id}), full=False)
    await ReconcileTasks().make_pass(context, news)
    async with database.transaction() as conn:
        await tasks.happen(conn, await tasks.lock(conn, task_id), TaskEvent.KILL, "killed")
    async with database.transaction() as conn:
        await conn.execute("update allocations set state = 'ASSIGNED' where task_id = $1", task_id)
        pass_ = asyncio.ensure_future(ReconcileTasks().make_pass(context, news))
        await until_somebody_waits(database)
        await containers.create(conn, f"{task_id}.1", [containers.NewMember("c", 0, "a1", [])])
    await pass_
    async with database.connection() as conn:
        assert await conn.fetchval("select want from containers") in ("STOP", "GONE")


async def test_a_removal_task_that_ends_wakes_who_goes_on_with_what_it_has_not_reported(database: Database) -> None:
    """Otherwise what it was to remove would lie there for half a minute more."""
    async with hearing(database) as until:
        async with database.transaction() as conn:
            await add_experiment(conn)
            config = own_config(SETTINGS, ["x"])
            task_id = await launch_task(conn, SETTINGS, kind=TaskKind.CHECKPOINT_GC, owner_id=1, config=config)
            verdict = TaskVerdict(TaskState.ERROR, "it was lost")
            await tasks.conclude(conn, [(await tasks.lock(conn, task_id), verdict)])
        await until("checkpoint_gc:")


async def test_a_launch_that_is_rolled_back_never_was(database: Database) -> None:
    """The task exists exactly if the caller's transaction commits."""
    config = own_config(SETTINGS, ["x"], slots=1)
    async with database.transaction() as conn:
        await add_experiment(conn)
    try:
        async with database.transaction() as conn:
            await launch_task(conn, SETTINGS, kind=TaskKind.CHECKPOINT_GC, owner_id=1, config=config)
            raise RuntimeError
    except RuntimeError:
        pass
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from tasks") == 0
        assert await conn.fetchval("select count(*) from jobs") == 1
