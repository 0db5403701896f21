"""What is kept of an experiment's trials is what counting them anew gives, whatever happened in which order."""

from __future__ import annotations

import random
import uuid

import pytest
from asyncpg import Connection, Record

from tenax.jsonvalue import JsonObject
from tenax.master.store.database.connection import Database
from tests.kits.many_experiments import Amount, seed, settle
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, end_member, run_attempt

_STATES = ("COMPLETED", "PARTIALLY_DELETED", "DELETED", "ACTIVE", "ERROR")
_METRICS = (None, 0.1, 0.2, 0.2, 3.0, float("nan"), float("inf"), float("-inf"))


async def tallies(conn: Connection) -> list[Record]:
    """All rows."""
    tallies: list[Record] = await conn.fetch("select y::text from experiment_tallies y order by experiment_id")
    return tallies


class Life:
    """Random changes of a few experiments, each in a transaction of its own."""

    def __init__(self, rng: random.Random, experiments: list[int]) -> None:
        self._rng = rng
        self._experiments = experiments
        self._trials: list[int] = []
        self._checkpoints: list[str] = []
        self._number = 0

    async def step(self, conn: Connection) -> None:
        deeds = (self._make, self._validate, self._save, self._change, self._end, self._remove)
        await self._rng.choices(deeds, (4, 6, 4, 4, 2, 1))[0](conn)

    async def _make(self, conn: Connection) -> None:
        self._number += 1
        self._trials.append(await add_trial(conn, self._rng.choice(self._experiments), self._number))

    async def _validate(self, conn: Connection) -> None:
        # Several in one transaction, as reports are taken in.
        for trial in self._rng.sample(self._trials, min(2, len(self._trials))):
            await conn.execute(
                "insert into trial_telemetry (trial_id, best_metric) values ($1, $2)"
                " on conflict (trial_id) do update set best_metric = excluded.best_metric",
                trial,
                self._rng.choice(_METRICS),
            )

    async def _save(self, conn: Connection) -> None:
        for trial in self._rng.sample(self._trials, min(1, len(self._trials))):
            name = str(uuid.uuid4())
            await conn.execute(
                "insert into checkpoints (uuid, task_id, trial_id, state, size_bytes)"
                " select $1, task_id, id, $3, $4 from trials where id = $2",
                name,
                trial,
                self._rng.choice(_STATES),
                self._rng.randrange(1000),
            )
            self._checkpoints.append(name)

    async def _change(self, conn: Connection) -> None:
        for name in self._rng.sample(self._checkpoints, min(1, len(self._checkpoints))):
            await conn.execute(
                "update checkpoints set state = $2, size_bytes = $3 where uuid = $1",
                name,
                self._rng.choice(_STATES),
                self._rng.randrange(1000),
            )

    async def _end(self, conn: Connection) -> None:
        for trial in self._rng.sample(self._trials, min(1, len(self._trials))):
            await conn.execute(
                "update trials set state = case when state = 'ACTIVE' then 'ERROR' else 'ACTIVE' end,"
                " ended_at = case when state = 'ACTIVE' then now() end where id = $1",
                trial,
            )

    async def _remove(self, conn: Connection) -> None:
        if self._trials:
            gone = self._trials.pop(self._rng.randrange(len(self._trials)))
            await conn.execute("delete from trials where id = $1", gone)


@pytest.mark.parametrize("direction", [True, False])
async def test_what_is_kept_is_what_counting_gives(database: Database, direction: bool) -> None:
    """After each of many random changes; a transaction that fails leaves nothing."""
    rng = random.Random(direction)
    searcher: JsonObject = {"name": "random", "metric": "loss", "smaller_is_better": direction, "max_trials": 9}
    async with database.transaction() as conn:
        numbers = [await add_experiment(conn, config={"searcher": searcher}) for _ in range(2)]
    life = Life(rng, numbers)
    for _ in range(150):
        async with database.transaction() as conn:
            await life.step(conn)
        async with database.transaction() as conn:
            kept = await tallies(conn)
            await conn.execute("select tenax_tally(null)")
            assert kept == await tallies(conn)
    async with database.transaction() as conn:
        assert await conn.fetchval("select bool_and(expected_trials = 9) from experiment_tallies")
        await conn.execute("delete from experiments where id = $1", numbers[0])
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from experiment_tallies") == 1


async def test_the_pool_of_a_list_is_that_of_the_job(database: Database) -> None:
    """Also after it was changed."""
    async with database.transaction() as conn:
        number = await add_experiment(conn)
    async with database.transaction() as conn:
        assert await conn.fetchval("select pool from experiment_tallies") == "default"
        await conn.execute("update jobs set pool = 'gold'")
    async with database.connection() as conn:
        assert await conn.fetchrow("select experiment_id, pool from experiment_tallies") == (number, "gold")


async def test_a_large_database_is_made_as_the_product_would_have(database: Database) -> None:
    """The seeded rows are counted as they are, and the next experiment has the next number."""
    async with database.transaction() as conn:
        await conn.execute("insert into users (username) values ('someone')")
        await seed(conn, Amount(experiments=60, live=10))
    async with database.connection() as conn:
        await settle(conn)
        kept = await tallies(conn)
        await conn.execute("select tenax_tally(null)")
        assert kept == await tallies(conn)
        assert await conn.fetchval("select count(*) from experiments where ended_at is null") == 10
        assert await conn.fetchval("select sum(trials) = (select count(*) from trials) from experiment_tallies")
        hparams = "select array_agg(h::text order by trial_id, key) from run_hparams h"
        before = await conn.fetchval(hparams)
        await conn.execute("update trials set hparams = hparams")
        assert before == await conn.fetchval(hparams) is not None
        assert await conn.fetchval("select count(*) = (select count(*) from trials) from run_numbers")
        assert await conn.fetchval("select nextval(pg_get_serial_sequence('experiments', 'id'))") == 61


_RAN = """
select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0)::float8
from (select range_agg(tstzrange(c.started_at, coalesce(c.ended_at, now()))) as spans
      from trials t join tasks k on k.trial_id = t.id join allocations a on a.task_id = k.task_id
      join containers c on c.allocation_id = a.allocation_id
      where t.experiment_id = $1 and c.rank = 0 and c.started_at is not null) m, unnest(m.spans) r
"""


async def test_an_experiment_runs_while_a_trial_does(database: Database) -> None:
    """Trials that run at once count once, what waits does not count, and an attempt of several members is one."""
    rng = random.Random(3)
    async with database.transaction() as conn:
        number = await add_experiment(conn)
        for agent in ("a1", "a2"):
            await add_agent(conn, agent, slots=8)
    open_: list[Attempt] = []
    for trial in range(1, 9):
        async with database.transaction() as conn:
            made = await add_trial(conn, number, trial)
        async with database.transaction() as conn:
            open_.append(await run_attempt(conn, made, rng.choice((("a1",), ("a1", "a2")))))
        while open_ and rng.random() < 0.5:
            async with database.transaction() as conn:
                attempt = open_.pop(rng.randrange(len(open_)))
                for rank in range(len(attempt.containers)):
                    await end_member(conn, attempt, rank)
        async with database.transaction() as conn:
            kept = await conn.fetchrow(
                "select running, ran_s + coalesce(extract(epoch from now() - running_since), 0)::float8 as ran_s"
                " from experiment_tallies where experiment_id = $1",
                number,
            )
            assert kept["running"] == len(open_)
            assert kept["ran_s"] == pytest.approx(await conn.fetchval(_RAN, number), abs=1e-3)
            assert kept["ran_s"] > 0
