"""Databases that are made once in a run, and copied."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import prepare
from tenax.master.store.database.migrate import migrate
from tests.kits.database import FAST
from tests.kits.prepared import put_database
from tests.kits.temporary import PREFIX


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the account of the database may enter."""
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def _begun(dsn: str) -> tuple[list[str], bool]:
    """What a first master has left to migrate, and whether somebody was there before."""
    conn = await asyncpg.connect(dsn)
    try:
        await prepare(conn)
        left = await migrate(conn)
        used = await conn.fetchval("select to_regclass('mine') is not null or exists (select from users)")
        await conn.execute("create table mine()")
        return left, used
    finally:
        await conn.close()


def test_each_copy_is_a_database_of_its_own_where_nothing_is_left_to_migrate(place: Path) -> None:
    """What one does in its copy, the next one finds nowhere."""
    for name in ("one", "other"):
        put_database(place / name)
        with EmbeddedPostgres(place / name, settings=FAST) as server:
            assert asyncio.run(_begun(server.dsn)) == ([], False)


def test_it_is_made_once(place: Path) -> None:
    """However many ask for it; and never over a database that is there."""
    asked: list[EmbeddedPostgres] = []
    for name in ("one", "other"):
        put_database(place / name, f"once in {place.name}", asked.append)
        assert (place / name / "data" / "PG_VERSION").is_file()
    assert len(asked) == 1
    with pytest.raises(AssertionError):
        put_database(place / "one")
