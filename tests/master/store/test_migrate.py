"""Migrations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tenax.errors import TryAgain
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.backup_command import BackupFailed
from tenax.master.store.database.migrate import (
    LAST_SQUASHED,
    DatabaseNewer,
    Migration,
    MigrationChanged,
    migrate,
    shipped,
    waiting,
)
from tests.kits.database import database_in

ONE = Migration("0001_pre_one", "create table one (x int); insert into one values (1)")
POST = Migration("0002_post_two", "drop table one")
THREE = Migration("0003_pre_three", "create table three (x int)")
BROKEN = Migration("0004_pre_broken", "create table four (x int); select 1 / 0")


@pytest.fixture
async def empty(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database without any table."""
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute("create database empty")
    try:
        yield database_in(postgres.dsn, "empty")
    finally:
        await admin.execute("drop database empty with (force)")
        await admin.close()


async def test_each_file_is_applied_once_and_post_ones_wait(empty: str) -> None:
    """A second run applies nothing; what is marked post is named as waiting, and stays so."""
    conn = await asyncpg.connect(empty)
    assert await migrate(conn, migrations=[ONE]) == [ONE.name]
    assert await migrate(conn, migrations=[ONE, POST, THREE]) == [THREE.name]
    assert await migrate(conn, migrations=[ONE, POST, THREE]) == []
    assert await waiting(conn, migrations=[ONE, POST, THREE]) == [POST]
    await conn.close()


async def test_a_new_database_waits_for_nobody(empty: str) -> None:
    """No master of before ever worked on it: post migrations are applied with the others, in order."""
    conn = await asyncpg.connect(empty)
    assert await migrate(conn, migrations=[ONE, POST, THREE]) == [ONE.name, POST.name, THREE.name]
    assert await waiting(conn, migrations=[ONE, POST, THREE]) == []
    await conn.close()


async def test_what_a_newer_release_did_is_lived_with_or_refused(empty: str) -> None:
    """Its pre migrations are no concern of ours; a post migration that we do not know took away what we need."""
    conn = await asyncpg.connect(empty)
    await migrate(conn, migrations=[ONE, THREE])
    assert await migrate(conn, migrations=[ONE]) == []
    await conn.execute("insert into schema_migrations (name, checksum) values ('0009_post_later', 'x')")
    with pytest.raises(DatabaseNewer, match=r"0009_post_later.*Nothing was changed"):
        await migrate(conn, migrations=[ONE, BROKEN])
    assert await conn.fetchval("select count(*) from schema_migrations") == 3
    await conn.close()


async def test_a_file_that_fails_leaves_nothing_of_itself(empty: str) -> None:
    """What stood before the failing statement is rolled back, what other files did stays."""
    conn = await asyncpg.connect(empty)
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(conn, migrations=[ONE, BROKEN])
    assert await conn.fetchval("select to_regclass('one')") is not None
    assert await conn.fetchval("select to_regclass('four')") is None
    await conn.close()


async def test_an_edited_file_is_refused(empty: str) -> None:
    """A migration that was applied may not change."""
    conn = await asyncpg.connect(empty)
    await migrate(conn, migrations=[ONE])
    with pytest.raises(MigrationChanged, match="0001_pre_one"):
        await migrate(conn, migrations=[Migration(ONE.name, ONE.sql + ";")])
    await conn.close()


async def test_two_masters_that_start_at_once_migrate_once(empty: str) -> None:
    """Whatever the first applied, the second finds applied."""
    first, second = await asyncpg.connect(empty), await asyncpg.connect(empty)
    done = await asyncio.gather(migrate(first, migrations=[ONE, THREE]), migrate(second, migrations=[ONE, THREE]))
    assert sorted(len(names) for names in done) == [0, 2]
    await first.close()
    await second.close()


def test_the_names_of_migrations_say_when_they_run() -> None:
    """Each pre or post; numbered without gaps, but for those that the first release's files replaced."""
    names = [migration.name for migration in shipped()]
    numbers = [migration.number for migration in shipped()]
    first = sum(number <= LAST_SQUASHED for number in numbers)
    later = range(LAST_SQUASHED + 1, LAST_SQUASHED + 1 + len(names) - first)
    assert numbers == [*range(1, first + 1), *later]
    assert all(name.split("_")[1] in ("pre", "post") for name in names)


async def test_a_backup_comes_before_the_first_change(empty: str) -> None:
    """Once, for a database that is in use; none for a new one, and none where nothing is missing."""
    asked: list[str] = []

    async def back_up(first: str) -> None:
        asked.append(first)

    conn = await asyncpg.connect(empty)
    assert await migrate(conn, migrations=[ONE], before=back_up) == [ONE.name]
    assert await migrate(conn, migrations=[ONE, POST], before=back_up) == []
    assert asked == []
    last = Migration("0004_pre_four", "create table four (x int)")
    assert await migrate(conn, migrations=[ONE, POST, THREE, last], before=back_up) == [THREE.name, last.name]
    assert asked == [THREE.name]
    await conn.close()


async def test_the_lock_is_held_as_long_as_a_backup_takes(empty: str) -> None:
    """Its connection says something now and then: servers and networks end those that are idle."""
    conn, other = await asyncpg.connect(empty), await asyncpg.connect(empty)
    await migrate(conn, migrations=[ONE])
    pid = conn.get_server_pid()

    async def back_up(first: str) -> None:
        asked = set()
        async with asyncio.timeout(60):
            while len(asked) < 3:
                asked.add(await other.fetchval("select query_start from pg_stat_activity where pid = $1", pid))
                await asyncio.sleep(0.05)

    assert await migrate(conn, migrations=[ONE, THREE], before=back_up) == [THREE.name]
    await other.close()
    await conn.close()


async def test_a_backup_without_its_lock_is_given_up(empty: str) -> None:
    """Another master begins one of its own by then."""
    conn, other = await asyncpg.connect(empty), await asyncpg.connect(empty)
    await migrate(conn, migrations=[ONE])
    given_up = asyncio.Event()

    async def back_up(first: str) -> None:
        await other.execute("select pg_terminate_backend($1)", conn.get_server_pid())
        try:
            await asyncio.sleep(600)
        finally:
            given_up.set()

    with pytest.raises(TryAgain):
        await migrate(conn, migrations=[ONE, THREE], before=back_up)
    assert given_up.is_set()
    assert await other.fetchval("select to_regclass('three')") is None
    await other.close()


async def test_without_its_backup_nothing_is_changed(empty: str) -> None:
    """The reason goes to whoever starts the master; another one may migrate at once."""

    async def fail(first: str) -> None:
        raise BackupFailed("no room")

    conn = await asyncpg.connect(empty)
    await migrate(conn, migrations=[ONE])
    with pytest.raises(BackupFailed, match="no room"):
        await migrate(conn, migrations=[ONE, THREE], before=fail)
    assert await conn.fetchval("select to_regclass('three')") is None
    other = await asyncpg.connect(empty)
    assert await migrate(other, migrations=[ONE, THREE]) == [THREE.name]
    await other.close()
    await conn.close()
