"""Applying the post migrations: what ``tenax upgrade-database`` does to a database, embedded or not.

Rules:
- Masters of this release go on working beside it; while one of a release before is connected, it is refused.
- It may be broken off at any moment, and goes on where it was when it is started again.
- One at a time: a second one waits until the first has ended, and does what that one has left.
"""

from __future__ import annotations

import asyncio

import asyncpg
from asyncpg import Connection

from tenax.errors import UserError
from tenax.master.store.database.connection import NoAddress, connect
from tenax.master.store.database.faults import translated
from tenax.master.store.database.lanes import MIGRATION
from tenax.master.store.database.migrate import BeforeFirst, Migration, apply_post, migrate, waiting
from tenax.master.store.database.migration_steps import Progress, is_begun
from tenax.master.store.database.queries import load

Q = load("database")
#: Any number that nobody else uses. Not that of `migrate`: a master that starts meanwhile does not wait.
_ADVISORY_LOCK = 7_306_018_212
_ASK_EVERY_S = 0.5


class OlderMasters(UserError):
    """A master of a release before is at work on this database: end it first."""


async def upgrade(
    dsn: str, say: Progress, *, migrations: list[Migration] | None = None, before: BeforeFirst | None = None
) -> list[str]:
    """Apply all that is missing, pre migrations too; returns the names applied. ``before`` as for `migrate`.

    Raises NoAddress, DatabaseTooOld, OlderMasters and what `migrate` and ``before`` raise.
    """
    try:
        conn = await connect(dsn, "tenax-upgrade", MIGRATION)
    except (ValueError, asyncpg.InterfaceError):
        # Not repeated: the address holds the password.
        raise NoAddress from None
    try:
        done = await migrate(conn, migrations=migrations, before=before)
        await _wait_for_the_lock(conn, say)
        for migration in await waiting(conn, migrations=migrations):
            await _refuse_beside_older_masters(conn, migration)
            if before is not None and not done and not await is_begun(conn, migration.name):
                await before(migration.name)
            await apply_post(conn, migration, say)
            done.append(migration.name)
        return done
    finally:
        # The lock goes with it.
        await conn.close()


async def _wait_for_the_lock(conn: Connection, say: Progress) -> None:
    """Asked for again and again: a statement that waited would hold up the other's indexes, which wait for it."""
    waits = False
    with translated():
        while not await conn.fetchval(Q.try_lock, _ADVISORY_LOCK):
            if not waits:
                say("another one is upgrading this database: waiting until it has ended")
                waits = True
            await asyncio.sleep(_ASK_EVERY_S)


async def _refuse_beside_older_masters(conn: Connection, migration: Migration) -> None:
    with translated():
        places = [row[0] for row in await conn.fetch(Q.older_masters, migration.number)]
    if places:
        raise OlderMasters(
            f"{migration.name} waits until no master of a release before is left, and one is connected from "
            f"{', '.join(sorted(places))}: end it, or upgrade it, and run this again."
        )
