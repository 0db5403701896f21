"""A whole cluster whose database is reached through a proxy, as a role of its own: what stands between can fail.

    with faulty_cluster() as place:
        place.proxy.stall()

The servers are those of ``tenax up``, with its supervisor; the database is a server of the test's, as one on another
machine would be.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import asyncpg

from tenax.jsonvalue import Json
from tenax.local.binaries import CURRENT_MAJOR, choose
from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import FAST, database_in, migrated
from tests.kits.machine import Machine, machine, wait_for
from tests.kits.prepared import put_database
from tests.kits.proxy import ProxyThread, proxy_thread
from tests.kits.temporary import PREFIX

ROLE = "half_gone"
_DATABASE = "shared"
_CUT_OFF = f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{ROLE}'"


@dataclass
class FaultyCluster:
    """``machine`` has its servers but the database."""

    machine: Machine
    postgres: EmbeddedPostgres
    proxy: ProxyThread
    #: The database itself, as a role that no fault befalls.
    url: str

    def value(self, sql: str, *arguments: object) -> object:
        """One value from the database."""
        return asyncio.run(_value(self.url, sql, arguments))

    def rows(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """What a statement finds."""
        return asyncio.run(_rows(self.url, sql, arguments))

    def now(self) -> datetime:
        """The database's time."""
        found = self.value("select clock_timestamp()")
        assert isinstance(found, datetime)
        return found

    def lock_out(self) -> None:
        """The master's role may not log in any more, and whoever is in is sent away."""
        self.administer(f"alter role {ROLE} nologin", _CUT_OFF)

    def let_in(self) -> None:
        """It may again."""
        self.administer(f"alter role {ROLE} login")

    def administer(self, *statements: str) -> None:
        """Statements of the server's owner, outside of the cluster's database."""
        asyncio.run(_administer(self.postgres.dsn, statements))

    def copy(self) -> Path:
        """What the database holds now, as `pg_dump` writes it."""
        target = Path(tempfile.mkdtemp(prefix=PREFIX)) / "copy"
        _tool("pg_dump", "--format=custom", f"--file={target}", self.url)
        return target

    def restore(self, copy: Path) -> None:
        """Put a copy in the database's place, as somebody does who has lost it."""
        self.administer(f"drop database {_DATABASE} with (force)", f"create database {_DATABASE} owner {ROLE}")
        _tool("pg_restore", "--exit-on-error", f"--dbname={self.url}", str(copy))
        shutil.rmtree(copy.parent)

    def age(self, hours: int) -> None:
        """Let all that the database tells have happened so much earlier."""
        # Months of output are tables of their own, and stay in theirs.
        columns = self.rows(
            "select c.relname as name, array_agg(quote_ident(attname)::text) as columns from pg_class c"
            " join pg_attribute a on attrelid = c.oid where relkind = 'r' and not relispartition"
            " and relnamespace = 'public'::regnamespace and atttypid = 'timestamptz'::regtype and attnum > 0"
            " and not attisdropped and attgenerated = '' group by 1"
        )
        settings = [
            ", ".join(f"{name} = {name} - interval '{hours} hours'" for name in row["columns"]) for row in columns
        ]
        updates = [f"update {row['name']} set {setting}" for row, setting in zip(columns, settings)]
        asyncio.run(_administer(self.url, ("set session_replication_role = replica", *updates)))

    def answers(self) -> bool:
        """Whether the master says that it is well."""
        return self.machine.answers()

    def wait_until_well(self) -> None:
        """Until master and database are there again."""
        wait_for(self.answers, "an answer of the master")


@contextmanager
def faulty_cluster(
    *,
    slots: int = 3,
    settings: Mapping[str, Json] | None = None,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[FaultyCluster]:
    """A cluster that is up, with ``settings`` of its master, its servers started with ``environment``; gone afterwards
    with all its files."""
    directory = Path(tempfile.gettempdir()) / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    postgres = EmbeddedPostgres(directory, settings=FAST)
    try:
        put_database(directory, _DATABASE, _make)
        postgres.start()
        url = database_in(postgres.dsn, _DATABASE)
        with proxy_thread(f"postgresql://{ROLE}:p@" + url.partition("@")[2]) as proxy:
            file = directory.parent / f"{directory.name}.yaml"
            file.write_text(json.dumps({"db": {"url": proxy.url}, **(settings or {})}))
            try:
                options = ("--config", str(file), *options)
                with machine(slots=slots, options=options, environment=environment, own_database=False) as place:
                    yield FaultyCluster(place, postgres, proxy, url)
            finally:
                file.unlink()
    finally:
        postgres.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _make(server: EmbeddedPostgres) -> None:
    """The database of the masters, migrated by their role: what is in it is theirs."""
    role = f"create role {ROLE} login password 'p'"
    asyncio.run(_administer(server.dsn, (role, f"create database {_DATABASE} owner {ROLE}")))
    url = database_in(server.dsn, _DATABASE)
    asyncio.run(migrated(f"postgresql://{ROLE}:p@" + url.partition("@")[2]))


async def _administer(dsn: str, statements: tuple[str, ...]) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await conn.execute(statement)
    finally:
        await conn.close()


async def _value(url: str, sql: str, arguments: tuple[object, ...]) -> object:
    conn = await asyncpg.connect(url)
    try:
        found: object = await conn.fetchval(sql, *arguments)
        return found
    finally:
        await conn.close()


async def _rows(url: str, sql: str, arguments: tuple[object, ...]) -> list[asyncpg.Record]:
    conn = await asyncpg.connect(url)
    try:
        return list(await conn.fetch(sql, *arguments))
    finally:
        await conn.close()


def _tool(name: str, *arguments: str) -> None:
    command = [str(choose(CURRENT_MAJOR).program(name)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
