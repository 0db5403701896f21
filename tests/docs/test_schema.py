"""The generated file of the schema."""

from __future__ import annotations

import asyncpg
import pytest

from tests.docs.schema import PAGE, page


async def test_the_file_is_what_the_migrations_leave(database_url: str) -> None:
    """Made by ``make docs``."""
    conn = await asyncpg.connect(database_url)
    try:
        assert PAGE.read_text() == await page(conn)
    finally:
        await conn.close()


@pytest.mark.parametrize("made", ["view told as select 1", "sequence told", "type told as enum ('a')"])
async def test_what_the_file_could_not_tell_fails(database_url: str, made: str) -> None:
    """Nothing of a database is left out in silence."""
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(f"create {made}")
        with pytest.raises(AssertionError, match="told"):
            await page(conn)
    finally:
        await conn.close()
