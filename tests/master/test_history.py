"""What has ended does not slow what goes on: passes read what is live, and what is kept no longer goes."""

from __future__ import annotations

import asyncio
import zlib

import asyncpg
import pytest
from asyncpg import Connection

from tenax.config.master import MasterSettings
from tenax.master import loops
from tenax.master.loops.loop import Loop, PassContext
from tenax.master.loops.retention import CHORE
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, Woken
from tenax.master.store.experiments import searches
from tenax.master.store.logs import retention
from tenax.master.store.metrics import retention as metric_retention
from tenax.master.store.users.sessions import TaskOf
from tests.kits.history import seed_past
from tests.kits.telemetry import Book

EVERYTHING = Woken(frozenset(), full=True)
NEWS = Woken(frozenset(), full=False)


async def test_a_pass_through_everything_reads_what_is_live(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every loop: however many experiments, trials, containers and logs there were before."""
    before = await Database.open(database_url, max_connections=1)
    async with before.transaction() as conn:
        await seed_past(conn, experiments=1000, trials_each=20)
        # Longer ago than any agent is waited for.
        await conn.execute("update agent_presence set last_seen_at = now() - interval '1 hour'")
        await conn.execute("insert into chores (name, done_at) values ($1, now() - interval '1 day')", CHORE)
    await before.close()
    looking = await asyncpg.connect(database_url)
    await _alone(looking)
    # Once to remove what is kept no longer, once as it is from then on.
    for _ in range(2):
        await looking.execute("update chores set done_at = now() - interval '1 day'")
        await looking.execute("vacuum analyze")
        await looking.execute("select pg_stat_reset()")
        passing = await Database.open(database_url, max_connections=4)
        for loop in await _every_loop(passing, monkeypatch):
            async with passing.transaction() as conn:
                lease = await leases.acquire(conn, loop.name, "test", 3600.0)
            assert lease is not None
            await loop.make_pass(PassContext(passing, lease), EVERYTHING)
        await passing.close()
        # What a connection has read is counted by the time it is gone.
        await _alone(looking)
    rows = await looking.fetch(
        "select relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables"
    )
    await looking.close()
    assert {row["relname"]: row["read"] for row in rows if row["read"] > 2000} == {}


async def _every_loop(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Loop]:
    """The loops of a master, which do not run."""
    made: list[Loop] = []

    async def collect(loop: Loop, *_: object) -> None:
        made.append(loop)

    monkeypatch.setattr(loops, "run", collect)
    running = loops.start(database, Listener(database), MasterSettings(), ClusterRow("c", 1, "", b"s" * 32))
    await asyncio.sleep(0)
    await running.stop()
    assert len(made) > 5
    return made


async def _alone(conn: Connection) -> None:
    others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    async with asyncio.timeout(60):
        while await conn.fetchval(others):  # noqa: ASYNC110 - the database is asked, it has no event for this
            await asyncio.sleep(0.01)


async def test_output_goes_by_what_is_said_of_it_whenever_that_is_said(book: Book) -> None:
    """Before its first line, after it, of the trial or of the whole experiment, before the end and after it."""
    kept: set[str] = set()
    for trial_days, experiment_days, is_kept in (
        (None, None, False),
        (400, None, True),
        (None, 400, True),
        (1, 400, False),
    ):
        for said_first in (True, False):
            experiment = await book.experiment()
            trial = await book.trial(experiment=experiment)
            task = await book.run(trial, 1)
            if not said_first:
                await _print_and_end(book, task, days_ago=100)
            async with book.database.transaction() as conn:
                if experiment_days is not None:
                    await conn.execute(
                        "update experiment_documents set log_retention_days = $2 where experiment_id = $1",
                        experiment,
                        experiment_days,
                    )
                if trial_days is not None:
                    await retention.set_trial(conn, trial, trial_days)
            if said_first:
                await _print_and_end(book, task, days_ago=100)
            if is_kept:
                kept.add(task.task_id)
    running = await book.run(await book.trial(), 1)
    await book.intake.logs.output("a1", running.allocation_id, "stdout", 0, zlib.compress(b"x\n"))
    async with book.database.transaction() as conn:
        assert await retention.clean(conn, 30) == (4, 4)
        assert await retention.clean(conn, 30) == (0, 0)
        for table in ("log_tasks", "log_chunks"):
            rows = await conn.fetch(f"select distinct task_id from {table}")
            assert {row["task_id"] for row in rows} == kept | {running.task_id}


async def test_reports_go_when_they_are_kept_no_longer_and_what_they_came_to_stays(book: Book) -> None:
    """In the order of the ends, once; what goes on is not touched, and is looked at when it has ended again."""
    old, young, going_on = [await book.trial() for _ in range(3)]
    for trial in (old, young, going_on):
        for step in (1, 2):
            await book.report(trial, "training", step, {"loss": 1.0 / step})
    await book.seal(old)
    await _end(book, old, days_ago=40)
    await _end(book, young, days_ago=20)
    async with book.database.transaction() as conn:
        assert await metric_retention.clean(conn, -1) == 0
        assert await metric_retention.clean(conn, 30) == 1
        assert await metric_retention.clean(conn, 30) == 0
    assert await book.reports(old) == []
    assert [report.step for report in await book.reports(young)] == [1, 2]
    assert [report.step for report in await book.reports(going_on)] == [1, 2]
    async with book.database.connection() as conn:
        summary = await conn.fetchval("select summary from metric_groups where trial_id = $1", old)
    assert bytes(summary).startswith(b'{"loss":["number",0.5,2,')
    async with book.database.transaction() as conn:
        await conn.execute("update trials set state = 'ACTIVE', ended_at = null where id = $1", old)
    await book.report(old, "training", 3, {"loss": 0.1})
    assert [report.step for report in await book.reports(old)] == [3]
    await _end(book, old, days_ago=31)
    async with book.database.transaction() as conn:
        assert await metric_retention.clean(conn, 30) == 1
    assert await book.reports(old) == []


async def test_empty_months_are_dropped_and_made_again(book: Book) -> None:
    """Old ones of which nothing is left; a trial of such a month that goes on has its partition again."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    async with book.database.transaction() as conn:
        await conn.execute("update tasks set created_at = '2020-05-05'")
        await conn.execute("update trials set created_at = '2020-05-05'")
    await book.report(trial, "training", 1, {"loss": 1.0})
    await _print_and_end(book, task, days_ago=100)
    async with book.database.transaction() as conn:
        assert await metric_retention.drop_months(conn, 202001) == 0
        assert await metric_retention.drop_months(conn, 202601) == 0
        assert await retention.drop_months(conn, 202601) == 0
    await _end(book, trial, days_ago=100)
    async with book.database.transaction() as conn:
        assert await metric_retention.clean(conn, 30) == 1
        assert await retention.clean(conn, 30) == (1, 1)
    async with book.database.transaction() as conn:
        assert await metric_retention.drop_months(conn, 202601) == 1
        assert await retention.drop_months(conn, 202601) == 1
        assert await conn.fetchval("select count(*) from pg_class where relname like '%202005'") == 0
        await conn.execute("update trials set state = 'ACTIVE', ended_at = null")
        await conn.execute("update tasks set ended_at = null")
    await book.report(trial, "training", 2, {"loss": 1.0})
    await _print_and_end(book, await book.run(trial, 2), days_ago=1)
    assert [report.step for report in await book.reports(trial)] == [2]
    assert [line.line.text for line in await book.output(trial)] == ["x"]


async def test_what_ended_searches_have_seen_leaves_the_inbox(book: Book) -> None:
    """Not what they have not seen, nor what belongs to one that goes on."""
    ended, going_on = await book.experiment(), await book.experiment()
    async with book.database.transaction() as conn:
        for experiment in (ended, going_on):
            trial = await book.trial(experiment=experiment)
            await conn.execute("insert into search_journal values ($1, 1, '{\"v\": 1}')", experiment)
            for step, seq in ((1, 1), (2, None)):
                await conn.execute(
                    "insert into search_inbox (experiment_id, trial_id, kind, at_key, fact, seq)"
                    " values ($1, $2, 'validation', $3, '{}', $4)",
                    experiment,
                    trial,
                    step,
                    seq,
                )
        await conn.execute("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", ended)
    async with book.database.transaction() as conn:
        last: int | None = 0
        while last is not None:
            last = await searches.forget_seen(conn, last, 1)
        rows = await conn.fetch("select experiment_id, at_key from search_inbox")
    assert {(row["experiment_id"], row["at_key"]) for row in rows} == {(ended, 2), (going_on, 1), (going_on, 2)}


async def _print_and_end(book: Book, task: TaskOf, days_ago: float) -> None:
    await book.intake.logs.output("a1", task.allocation_id, "stdout", 0, zlib.compress(b"x\n"))
    async with book.database.transaction() as conn:
        await conn.execute(
            "update tasks set ended_at = now() - make_interval(secs => 86400 * $2::float8) where task_id = $1",
            task.task_id,
            days_ago,
        )


async def _end(book: Book, trial: int, days_ago: float) -> None:
    async with book.database.transaction() as conn:
        await conn.execute(
            "update trials set state = 'COMPLETED', ended_at = now() - make_interval(secs => 86400 * $2::float8)"
            " where id = $1",
            trial,
            days_ago,
        )
