"""``docs/schema.sql``: tables, indexes, triggers and functions as migrations leave them, read from a fresh database.

    .venv/bin/python -m tests.docs.schema > docs/schema.sql

Starts a PostgreSQL of its own and ends it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import asyncpg

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import prepare
from tenax.master.store.database.migrate import migrate
from tests.kits.catalogue import catalogue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema.sql"
_HEAD = """\
-- Tables, their indexes and triggers, then functions, each by name, as the migrations leave them.
-- Written by `make docs`, for reading. What tables and columns are for is said in the migrations.
"""


async def page(conn: asyncpg.Connection) -> str:
    """The text of the file, of a migrated database."""
    told = await catalogue(conn)
    tables = "\n".join(table.sql() for table in told.tables)
    functions = "\n\n".join(f"{text};" for text in told.functions)
    return f"{_HEAD}\n{tables}\n{functions}\n"


async def _fresh(dsn: str) -> str:
    conn = await asyncpg.connect(dsn)
    try:
        await prepare(conn)
        await migrate(conn)
        return await page(conn)
    finally:
        await conn.close()


def main() -> None:
    directory = Path(tempfile.mkdtemp(prefix="tenax-schema-"))
    # Its account must be able to enter.
    directory.chmod(0o711)
    try:
        with EmbeddedPostgres(directory / "database", settings={"fsync": "off"}) as server:
            print(asyncio.run(_fresh(server.dsn)), end="")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
