"""How many experiments there are, kept as a sum of changes."""

from __future__ import annotations

import asyncio
import random

from asyncpg import Connection

from tenax.master.loops.loop import PassContext
from tenax.master.loops.retention import Retention
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments.lists import ExperimentFilter
from tests.kits.many_experiments import Amount, seed
from tests.kits.rows import add_experiment

_COUNTED = "select count(*) from experiments e where {}"


async def _agree(conn: Connection) -> None:
    """What is kept is what counting gives, for each kind there is and for all together."""
    kept = await conn.fetch(
        "select project_id, owner_id, state, archived, sum(change)::bigint as n from experiment_counts"
        " group by 1, 2, 3, 4 having sum(change) <> 0 order by 1, 2, 3, 4"
    )
    counted = await conn.fetch(
        "select project_id, owner_id, state, archived, count(*) as n from experiments group by 1, 2, 3, 4"
        " order by 1, 2, 3, 4"
    )
    assert kept == counted


async def test_what_is_kept_is_what_counting_gives(database: Database) -> None:
    """After each of many random changes, added up or not; one that is rolled back leaves nothing."""
    rng = random.Random(7)
    async with database.transaction() as conn:
        others = [
            await conn.fetchval("insert into users (username) values ($1) returning id", name) for name in ("a", "b")
        ]
    for step in range(80):
        async with database.transaction() as conn:
            numbers = [row["id"] for row in await conn.fetch("select id from experiments")]
            number = rng.choice(numbers) if numbers else None
            match rng.randrange(6):
                case 0:
                    await add_experiment(conn)
                case 1:
                    await conn.execute("update experiments set archived = not archived where id = $1", number)
                case 2:
                    await conn.execute("update experiments set owner_id = $2 where id = $1", number, rng.choice(others))
                case 3:
                    await conn.execute("update experiments set state = 'PAUSED' where id = $1", number)
                case 4 if step % 3 == 0:
                    await conn.execute("delete from experiments where id = $1", number)
                case _:
                    await experiment_lists.add_up_counts(conn)
        async with database.connection() as conn:
            await _agree(conn)


async def test_adding_up_leaves_one_row_of_each_kind(database: Database) -> None:
    """Beside changes that others have made and not yet committed, which are counted as soon as they are."""
    async with database.transaction() as conn:
        for _ in range(5):
            await add_experiment(conn)
    async with database.transaction() as theirs:
        await theirs.execute("update experiments set archived = true where id = (select min(id) from experiments)")
        async with database.transaction() as conn:
            await asyncio.wait_for(experiment_lists.add_up_counts(conn), 60)
            assert await conn.fetch("select change from experiment_counts") == [(5,)]
    async with database.connection() as conn:
        await _agree(conn)
        assert await conn.fetchval("select count(*) from experiment_counts") == 3


async def test_a_loop_adds_up_when_there_are_many(database: Database) -> None:
    """Whatever the schedule of the rest of what it does, and not at every pass."""
    async with database.transaction() as conn:
        lease = await leases.acquire(conn, "retention", "test", 3600.0)
        await add_experiment(conn)
    assert lease is not None
    loop, context, news = Retention(1, None), PassContext(database, lease), Woken(frozenset(), full=False)
    for rows, left in ((999, 1000), (1001, 1)):
        async with database.transaction() as conn:
            here = await conn.fetchval("select count(*) from experiment_counts")
            await conn.execute(
                "insert into experiment_counts select 1, 1, 'ACTIVE', false, 0 from generate_series($1::int, $2)",
                here,
                rows,
            )
        await loop.make_pass(context, news)
        async with database.connection() as conn:
            assert await conn.fetchval("select count(*) from experiment_counts") == left
            await _agree(conn)


async def test_a_list_says_the_same_number_whatever_it_is_counted_from(database: Database) -> None:
    """For filters that the sums answer and for those that they do not."""
    async with database.transaction() as conn:
        await conn.execute("insert into users (username) values ('someone')")
        await seed(conn, Amount(experiments=120, live=20))
    async with database.connection() as conn:
        await _agree(conn)
        for filtered, condition in (
            (ExperimentFilter(), "true"),
            (ExperimentFilter(archived=True), "e.archived"),
            (ExperimentFilter(archived=False, project_id=1), "not e.archived and e.project_id = 1"),
            (
                ExperimentFilter(users=("USER003",)),
                "e.owner_id = (select id from users where username = 'user003')",
            ),
            (ExperimentFilter(states=("ACTIVE", "ERROR")), "e.state in ('ACTIVE', 'ERROR')"),
            (ExperimentFilter(states=("PAUSED", "RUNNING")), "e.state = 'PAUSED'"),
            (ExperimentFilter(after_id=50, archived=False), "e.id > 50 and not e.archived"),
        ):
            total = await experiment_lists.count(conn, filtered)
            assert total == await conn.fetchval(_COUNTED.format(condition)) > 0, filtered
