"""Post migrations: in steps, beside masters at work, broken off and begun again, by one at a time."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from tenax.errors import Impossible, TryAgain
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.process import running
from tenax.master.store.database import connection, post_migrations
from tenax.master.store.database.connection import Database, DatabaseTooOld
from tenax.master.store.database.migrate import Migration, migrate, newest, shipped
from tenax.master.store.database.migration_steps import Step, StepKind, quiet, steps_of
from tenax.master.store.database.post_migrations import OlderMasters, upgrade
from tests.kits.api import answering, settings_in
from tests.kits.database import database_in

ROOT = Path(__file__).resolve().parents[3]
#: So many rows, changed ten at a time.
ROWS = 100
ONE = Migration("0001_pre_one", f"create table one (x int); insert into one select generate_series(1, {ROWS})")
#: A column filled slowly, indexed, and made to hold something.
FILL = Migration(
    "0002_pre_column",
    "alter table one add column y int",
)
BATCHES = """
-- Every x has its square.
-- batches: fill y
update one set y = x * x where x in (select x from one where y is null order by x limit 10);
-- alone: index y
create index concurrently if not exists one_y on one (y);
-- step: hold y
alter table one alter column y set not null;
alter table one add check (y = x * x);
"""
SLOW = Migration("0003_post_squares", BATCHES)
BEFORE = [ONE, FILL]
ALL = [*BEFORE, SLOW]
DONE = "select count(*) from one where y is not null"


@pytest.fixture
async def old(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """Where a database is that has been worked on, before the release with SLOW."""
    name = f"p_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute(f"create database {name}")
    url = database_in(postgres.dsn, name)
    conn = await asyncpg.connect(url)
    await migrate(conn, migrations=BEFORE)
    await conn.close()
    yield url
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def conn(old: str) -> AsyncIterator[asyncpg.Connection]:
    """Of somebody else."""
    opened = await asyncpg.connect(old)
    yield opened
    await opened.close()


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Until it holds."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_a_file_says_its_steps() -> None:
    """Comments before the first are of the file; a file without any is one step."""
    assert [(step.kind, step.title) for step in steps_of(BATCHES)] == [
        (StepKind.BATCHES, "fill y"),
        (StepKind.ALONE, "index y"),
        (StepKind.STEP, "hold y"),
    ]
    assert steps_of("drop table one") == [Step(StepKind.STEP, "all of it", "drop table one")]
    with pytest.raises(Impossible):
        steps_of("drop table two;\n-- step: one\ndrop table one")


def test_those_of_this_release_can_be_read() -> None:
    """Each has steps, and no batch or lone step has two statements."""
    for migration in shipped():
        if migration.post:
            for step in steps_of(migration.sql):
                assert step.kind is StepKind.STEP or step.sql.strip().rstrip(";").count(";") == 0


async def test_all_steps_are_done_with_progress(old: str, conn: asyncpg.Connection) -> None:
    """Batches until none is left, an index outside of a transaction, then the rest; nothing is left to be noted."""
    said: list[str] = []
    assert await upgrade(old, said.append, migrations=ALL) == [SLOW.name]
    assert await conn.fetchval(DONE) == ROWS
    assert await conn.fetchval("select indisvalid from pg_index where indexrelid = 'one_y'::regclass")
    with pytest.raises(asyncpg.CheckViolationError):
        await conn.execute("insert into one values (3, 10)")
    assert said[:3] == [f"{SLOW.name}: fill y", f"{SLOW.name}: fill y: 10 rows", f"{SLOW.name}: fill y: 20 rows"]
    assert said[-2:] == [f"{SLOW.name}: index y", f"{SLOW.name}: hold y"]
    assert await conn.fetchval("select count(*) from schema_migration_steps") == 0
    assert await upgrade(old, quiet, migrations=ALL) == []


BREAKING = """
import asyncio, os, signal, sys
from tests.master.store.test_post_migrations import ALL
from tenax.master.store.database.post_migrations import upgrade
def say(message):
    if message == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(upgrade(sys.argv[1], say, migrations=ALL))
"""


@pytest.mark.parametrize("at", ["fill y", "fill y: 30 rows", "fill y: 100 rows", "index y", "hold y"])
async def test_one_that_is_killed_goes_on_where_it_was(old: str, conn: asyncpg.Connection, at: str) -> None:
    """At any step; what was done is not done again."""
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", BREAKING, old, f"{SLOW.name}: {at}", cwd=ROOT)
    assert await killed.wait() == -signal.SIGKILL
    before = await conn.fetchval(DONE)
    said: list[str] = []
    assert await upgrade(old, said.append, migrations=ALL) == [SLOW.name]
    batches = [message for message in said if message.endswith(" rows")]
    assert len(batches) == (ROWS - before) // 10
    if batches:
        assert batches[-1] == f"{SLOW.name}: fill y: {ROWS} rows"
    assert await conn.fetchval(DONE) == ROWS


async def test_an_index_of_a_build_that_was_broken_off_is_built_anew(old: str, conn: asyncpg.Connection) -> None:
    """PostgreSQL leaves one that is of no use; `if not exists` alone would take it for the index."""
    await conn.execute("insert into one values (1)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await conn.execute("create unique index concurrently one_y on one (x)")
    await conn.execute("delete from one where ctid = (select max(ctid) from one)")
    assert not await conn.fetchval("select indisvalid from pg_index where indexrelid = 'one_y'::regclass")
    await upgrade(old, quiet, migrations=ALL)
    assert await conn.fetchval("select indisvalid from pg_index where indexrelid = 'one_y'::regclass")


async def test_a_lock_that_somebody_holds_is_tried_for_again(
    old: str, conn: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads meanwhile is not held up behind it for longer than it tries."""
    said: list[str] = []
    async with conn.transaction():
        await conn.execute("lock table one in access share mode")
        going = asyncio.create_task(upgrade(old, said.append, migrations=ALL))

        async def refused() -> bool:
            return any("hold y: tries again" in message for message in said)

        await until(refused)
        assert not going.done()
        assert await conn.fetchval("select count(*) from one") == ROWS
    assert await going == [SLOW.name]


async def test_two_at_once_do_it_once(old: str, conn: asyncpg.Connection) -> None:
    """They say that they wait; the second finds nothing left, and does not hold up the first one's index."""
    said: list[list[str]] = [[], []]
    await conn.execute("select pg_advisory_lock($1)", post_migrations._ADVISORY_LOCK)
    going = [asyncio.create_task(upgrade(old, words.append, migrations=ALL)) for words in said]

    async def both_wait() -> bool:
        return all(any("another one is upgrading this database" in line for line in words) for words in said)

    await until(both_wait)
    await conn.execute("select pg_advisory_unlock($1)", post_migrations._ADVISORY_LOCK)
    done = await asyncio.gather(*going)
    assert sorted(map(len, done)) == [0, 1]
    assert await conn.fetchval(DONE) == ROWS


async def test_a_master_that_starts_meanwhile_does_not_wait(old: str, conn: asyncpg.Connection) -> None:
    """Slow ones may take hours; what a master needs is applied beside them."""
    later = Migration("0004_pre_later", "create table later (x int)")
    await conn.execute("select pg_advisory_lock($1)", post_migrations._ADVISORY_LOCK)
    other = await asyncpg.connect(old)
    assert await migrate(other, migrations=[*ALL, later]) == [later.name]
    await other.close()


async def test_beside_a_master_of_before_it_is_refused(old: str, conn: asyncpg.Connection) -> None:
    """One that says no number, or a lower one; one that knows the migration is none of them."""
    for name in ("tenax-master-requests", f"tenax-master/{SLOW.number - 1}-loops"):
        before = await asyncpg.connect(old, server_settings={"application_name": name})
        with pytest.raises(OlderMasters, match=rf"{SLOW.name}.*from this machine: end it"):
            await upgrade(old, quiet, migrations=ALL)
        await before.close()

        async def gone(name: str = name) -> bool:
            return not await conn.fetchval("select true from pg_stat_activity where application_name = $1", name)

        await until(gone)
    assert await conn.fetchval(DONE) == 0
    beside = await asyncpg.connect(old, server_settings={"application_name": f"tenax-master/{SLOW.number}-loops"})
    assert await upgrade(old, quiet, migrations=ALL) == [SLOW.name]
    await beside.close()


async def test_a_connection_that_is_lost_ends_it(old: str, conn: asyncpg.Connection) -> None:
    """What was done is kept; nothing is tried again over a connection that is gone."""
    others = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like 'tenax-upgrade%'"
    )

    def cut(message: str) -> None:
        if message.endswith("30 rows"):
            cutting.append(asyncio.ensure_future(conn.fetchval(others)))

    cutting: list[asyncio.Future[object]] = []
    await conn.execute(
        "create function slow() returns trigger language plpgsql as"
        " $$ begin if new.x > 30 then perform pg_sleep(600); end if; return new; end $$"
    )
    await conn.execute("create trigger slow before update on one for each row execute function slow()")
    with pytest.raises(TryAgain):
        await upgrade(old, cut, migrations=ALL)
    await asyncio.gather(*cutting)
    await conn.execute("drop trigger slow on one")
    assert await conn.fetchval(DONE) == 30
    assert await upgrade(old, quiet, migrations=ALL) == [SLOW.name]


async def test_a_master_starts_without_them_and_says_so(
    database: Database, database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In its log, and in its health, until somebody has applied them; that it waits makes nothing ill."""
    name = next(each.name for each in reversed(shipped()) if each.post)
    async with database.transaction() as conn:
        await conn.execute("delete from schema_migrations where name = $1", name)
    async with running(settings_in(tmp_path), database, asyncio.Event()) as master:
        assert master.waiting_migrations == (name,)
    assert "tenax upgrade-database" in caplog.text
    async with answering(database, settings_in(tmp_path)) as api:
        api.master.waiting_migrations = (name,)
        assert (await api.nobody.get("/health")).json()["waiting_migrations"] == [name]
        assert await upgrade(database_url, quiet) == [name]
        health = await api.nobody.get("/health")
        assert (health.status_code, health.json()["waiting_migrations"]) == (200, [])


async def test_a_server_that_is_too_old_is_refused_by_name(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever connects: a master at its start, and the upgrade."""
    monkeypatch.setattr(connection, "OLDEST_MAJOR", 99)
    with pytest.raises(DatabaseTooOld, match=r"is PostgreSQL 1\d\.\d+, and Tenax needs PostgreSQL 99 or newer"):
        await Database.open(database_url)
    with pytest.raises(DatabaseTooOld):
        await upgrade(database_url, quiet)


def test_masters_say_up_to_where_they_know_migrations() -> None:
    """So that the next release's upgrade can tell them from its own."""
    assert newest() == max(each.number for each in shipped())
