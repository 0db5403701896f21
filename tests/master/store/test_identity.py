"""Which database it is: a copy in its place is not used, and raises the generation once; the same one never does."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tenax.errors import TryAgain
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.database.connection import Database


async def test_a_copy_put_under_a_running_master_is_not_used(
    postgres: EmbeddedPostgres, database: Database, database_url: str
) -> None:
    """No connection to it is handed out, and whoever runs the master is told."""
    await _adopted(database)
    await _replace(postgres, database_url)
    while not database.replaced.is_set():
        with pytest.raises(TryAgain):
            await _generation(database)
    with pytest.raises(TryAgain, match="another than before"):
        await _generation(database)


async def test_a_copy_that_a_master_starts_on_is_noticed(
    postgres: EmbeddedPostgres, database: Database, database_url: str
) -> None:
    """Before it has decided anything; of two that start at once, one raises the generation."""
    await _adopted(database)
    await _replace(postgres, database_url)
    others = [await Database.open(database_url) for _ in range(2)]
    await asyncio.gather(*(other.adopt() for other in others))
    assert [await _generation(other) for other in others] == [2, 2]
    await asyncio.gather(*(other.close() for other in others))


async def test_the_same_database_is_the_same(database: Database, database_url: str) -> None:
    """For masters that start again, whoever was first."""
    await _adopted(database)
    other = await Database.open(database_url)
    await other.adopt()
    assert await _generation(other) == 1
    await other.close()


async def _adopted(database: Database) -> None:
    async with database.transaction() as conn:
        await cluster.ensure(conn, "")
    await database.adopt()
    assert await _generation(database) == 1


async def _replace(postgres: EmbeddedPostgres, url: str) -> None:
    """Put a copy in the database's place."""
    name = url.partition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(postgres.dsn)
    cut = f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
    await admin.execute(f"alter database {name} allow_connections false")
    await admin.execute(cut)
    while await admin.fetchval(f"select count(*) from pg_stat_activity where datname = '{name}'"):
        await admin.execute(cut)
    await admin.execute(f"create database {name}_copy template {name}")
    await admin.execute(f"drop database {name}")
    await admin.execute(f"alter database {name}_copy rename to {name}")
    await admin.close()


async def _generation(database: Database) -> int:
    async with database.connection() as conn:
        generation: int = await conn.fetchval("select generation from cluster")
        return generation
