"""``tenax upgrade-database`` on whole clusters: of an older PostgreSQL, and with migrations that wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tenax.cli.console import exits
from tenax.local.binaries import CURRENT_MAJOR
from tenax.local.pgdata import address_of, major_of
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.migrate import shipped
from tests.kits.machine import Machine, home, machine, wait_for

# Clusters start and end several times in each.
pytestmark = pytest.mark.timeout(900)
OLD_MAJOR = 16
VARIABLE = "TENAX_MASTER_DB__BACKUP_COMMAND"
POST = next(each.name for each in reversed(shipped()) if each.post)
PRE = "0046_pre_repeated_failures"
UNDO = f"drop table repeated_failures; delete from schema_migrations where name = '{PRE}'"


@pytest.fixture
def old() -> Iterator[Machine]:
    """A cluster that is down, with a database that PostgreSQL 16 has made and nothing in it."""
    with home() as directory:
        place = Machine(directory / "cluster", options=("--no-agent",))
        place.directory.mkdir(mode=0o711)
        EmbeddedPostgres(place.directory / "postgres", settings={"fsync": "off"}, major=OLD_MAJOR).__enter__().stop()
        try:
            yield place
        finally:
            place.down()


@pytest.fixture(scope="module")
def current() -> Iterator[Machine]:
    """A cluster as it is made today; one for all, which a test may leave stopped."""
    with machine(options=("--no-agent",)) as place:
        yield place


def forget(place: Machine, name: str) -> None:
    """Have a migration of the cluster that is up wait, as if its release were new here."""

    async def delete() -> None:
        conn = await asyncpg.connect(address_of(place.directory / "postgres"))
        assert await conn.execute("delete from schema_migrations where name = $1", name) == "DELETE 1"
        await conn.close()

    asyncio.run(delete())


def undo(place: Machine) -> None:
    """Have the database be as it was before PRE."""

    async def change() -> None:
        conn = await asyncpg.connect(address_of(place.directory / "postgres"))
        await conn.execute(UNDO)
        await conn.close()

    asyncio.run(change())


def applied(place: Machine) -> list[str]:
    """The migrations that its database has recorded."""

    async def read() -> list[str]:
        conn = await asyncpg.connect(address_of(place.directory / "postgres"))
        names = [row["name"] for row in await conn.fetch("select name from schema_migrations")]
        await conn.close()
        return names

    return asyncio.run(read())


def started(place: Machine) -> None:
    """Have it be up, where another test has left it stopped."""
    if not place.answers():
        place.up()


def stopped(place: Machine) -> Path:
    """Where the database of a cluster lies that is down now."""
    place.down()
    return place.directory / "postgres"


def copies(place: Machine) -> list[Path]:
    """Those that were made of its database before a migration, oldest first."""
    directory = place.directory / "backups"
    # Their names tell the second alone.
    return sorted(directory.glob("before-*"), key=lambda path: path.stat().st_mtime_ns)


def upgrade(place: Machine, *arguments: str) -> tuple[int, str]:
    """Exit code and what was printed."""
    done = place.tenax("upgrade-database", *arguments, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_a_cluster_of_an_older_postgresql_is_moved_to_the_newer(old: Machine) -> None:
    """It works under the older one and says what waits; it is moved while it is stopped, and all is there after."""
    data = old.directory / "postgres" / "data"
    old.up()
    assert major_of(data) == OLD_MAJOR
    old.tenax("workspace", "create", "kept")
    assert f"one of PostgreSQL {OLD_MAJOR}" in old.tenax("status").stderr
    code, text = upgrade(old)
    assert (code, major_of(data)) == (exits.FAILED, OLD_MAJOR)
    assert "tenax down" in text
    assert old.answers()
    old.down()
    code, text = upgrade(old)
    assert code == exits.OK, text
    assert f"rm -r {old.directory / 'postgres'}/data.{OLD_MAJOR}" in text
    assert major_of(data) == CURRENT_MAJOR
    assert upgrade(old)[0] == exits.OK
    old.up()
    assert "kept" in old.tenax("workspace", "list", "--csv").stdout
    assert "PostgreSQL" not in old.tenax("status").stderr


def copied(place: Machine) -> Path:
    """Have the master start on a database of before PRE; the copy that it made."""
    before = copies(place)
    undo(place)
    place.kill("master")
    [copy] = wait_for(lambda: [each for each in copies(place) if each not in before], "a copy")
    wait_for(place.answers, "a master on the new database")
    return copy


def test_a_copy_is_made_before_the_database_is_changed(current: Machine) -> None:
    """By the master that starts and by the command."""
    started(current)
    copy = copied(current)
    assert copy.name.startswith(f"before-{PRE}-")
    assert copy.stat().st_mode & 0o077 == 0

    forget(current, POST)
    assert f"making a backup before {POST} is applied" in upgrade(current)[1]
    assert copies(current)[-1].name.startswith(f"before-{POST}-")
    # Of migrations the newest two are kept, whatever there was before.
    assert copies(current)[:-1] == [copy]


def test_migrations_wait_until_they_are_asked_for(current: Machine) -> None:
    """Beside the master at work, with the cluster stopped, and in a database that settings name."""
    started(current)
    forget(current, POST)
    current.kill("master")
    wait_for(lambda: POST in current.tenax("status", check=False).stderr or None, "a status that says what waits")
    assert f"Applied: {POST}" in upgrade(current)[1]
    assert POST not in current.tenax("status").stderr
    assert "No migration waits" in upgrade(current)[1]

    forget(current, POST)
    settings = current.directory.parent / "master.yaml"
    settings.write_text(f"db: {{url: '{address_of(current.directory / 'postgres')}'}}\n")
    code, text = upgrade(current, "--dir", str(current.directory.parent / "elsewhere"), "--config", str(settings))
    assert (code, f"Applied: {POST}" in text) == (exits.OK, True)

    forget(current, POST)
    current.down()
    assert f"Applied: {POST}" in upgrade(current)[1]


@pytest.mark.long
def test_where_no_copy_can_be_made_nothing_is_changed(current: Machine) -> None:
    """That is said; who wants none has none."""
    started(current)
    before = copies(current)
    with EmbeddedPostgres(stopped(current)):
        undo(current)
    refused = Machine(current.directory, options=("--no-agent",), environment={VARIABLE: '["false"]'})
    done = refused.tenax("up", "--port", str(refused.port), "--no-agent", check=False)
    assert done.returncode == exits.FAILED
    assert "The backup before the migration failed, so nothing was changed: false ended with 1" in done.stderr
    with EmbeddedPostgres(stopped(current)):
        assert PRE not in applied(current)
    without = Machine(current.directory, options=("--no-agent",), environment={VARIABLE: "[]"})
    without.up()
    assert PRE in applied(current)
    assert copies(current) == before
    without.down()


@pytest.mark.long
def test_a_copy_comes_back_and_is_upgraded(current: Machine) -> None:
    """All is there that was before, in a database as it is made today."""
    started(current)
    current.tenax("workspace", "create", "before")
    copy = copied(current)
    with home() as directory:
        restored = Machine(directory / "cluster", options=("--no-agent",))
        restored.tenax("restore", str(copy))
        try:
            restored.up()
            assert "before" in restored.tenax("workspace", "list", "--csv").stdout
            assert PRE in applied(restored)
        finally:
            restored.down()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "does not answer: .*Run this again"),
        ("elsewhere", "is not the address of a PostgreSQL"),
    ],
)
def test_a_database_that_cannot_be_reached_is_told_apart(url: str, reason: str) -> None:
    """From one that is none; neither is a bug, and nothing is made."""
    with home() as directory:
        place = Machine(directory / "cluster", environment={"TENAX_MASTER_DB__URL": url})
        code, text = upgrade(place)
        assert code == exits.FAILED
        assert re.search(reason, text), text
        assert not place.directory.exists()


def test_where_there_is_no_database_that_is_said() -> None:
    """Nothing is made."""
    with home() as directory:
        place = Machine(directory / "cluster")
        code, text = upgrade(place)
        assert code == exits.FAILED
        assert "There is no database in" in text
        assert not place.directory.exists()
