"""Migrations: numbered SQL files, each in a transaction of its own, once.

Rules:
- ``NNNN_pre_*.sql`` may run beside masters of the release before; ``NNNN_post_*.sql`` waits until none is left, so the
  caller asks for it. A pre migration does not depend on a post migration of the same release.
- One migrator at a time (an advisory lock). A file that was applied may not change: its checksum is kept.
- Names in the database that this release does not know belong to a newer one, which works beside us: left alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from asyncpg import Connection

from tenax.errors import UserError
from tenax.master.store.database.connection import translated
from tenax.master.store.database.queries import load

Q = load("database")
#: Any number that nobody else uses.
_ADVISORY_LOCK = 7_306_018_211


class MigrationChanged(UserError):
    """A migration that was applied to this database is not the one of this release: do not edit applied migrations."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    #: File name without ``.sql``.
    name: str
    sql: str

    @property
    def post(self) -> bool:
        return self.name.split("_")[1] == "post"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this release, in order."""
    folder = resources.files("tenax.master.store.database").joinpath("migrations")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [Migration(name.removesuffix(".sql"), folder.joinpath(name).read_text(encoding="utf-8")) for name in files]


async def migrate(conn: Connection, *, post: bool = False, migrations: list[Migration] | None = None) -> list[str]:
    """Apply what is missing; returns the names applied. ``conn`` is not of a pool (a session lock is taken).

    Raises MigrationChanged, TryAgain.
    """
    with translated():
        await conn.execute(Q.lock, _ADVISORY_LOCK)
        try:
            await conn.execute(Q.create_table)
            return await _apply_missing(conn, shipped() if migrations is None else migrations, post)
        finally:
            if not conn.is_closed():
                await conn.execute(Q.unlock, _ADVISORY_LOCK)


async def _apply_missing(conn: Connection, migrations: list[Migration], post: bool) -> list[str]:
    applied = {row["name"]: row["checksum"] for row in await conn.fetch(Q.applied)}
    done = []
    for migration in migrations:
        if migration.name in applied:
            if applied[migration.name] != migration.checksum:
                raise MigrationChanged(
                    f"Migration {migration.name} was applied to this database in another form: it must not be edited "
                    "once it was released; put the change into a new one."
                )
        elif post or not migration.post:
            async with conn.transaction():
                await conn.execute(migration.sql)
                await conn.execute(Q.record, migration.name, migration.checksum)
            done.append(migration.name)
    return done
