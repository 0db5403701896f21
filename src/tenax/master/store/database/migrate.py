"""Migrations: numbered SQL files, each applied once.

Rules:
- ``NNNN_pre_*.sql`` may run beside masters of the release before: each in a transaction, by whichever master starts
  first. ``NNNN_post_*.sql`` waits until none of those is left, and may take long: `post_migrations` applies it when
  somebody asks. A pre migration does not depend on a post migration.
- A new database has no master of before: all files are applied to it, in order.
- One migrator at a time (an advisory lock). A file that was applied may not change: its checksum is kept.
- Whoever migrates may make a backup first: of a database that is in use, before its first missing file is applied.
- Pre migrations in the database that this release does not know belong to a newer one, which works beside us: left
  alone. A post migration that it does not know is none that this release can live with: refused.
- The files of the first release replaced fourteen (``SQUASHED``) that older databases have recorded. Where all of them
  stand, with their checksums, the new files count as applied, and the old records stay; where some are missing, the
  database is refused. Their numbers are not used again: the file after the first release's is 0015.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from importlib import resources

import structlog
from asyncpg import Connection

from tenax.errors import UserError
from tenax.master.store.database.faults import translated
from tenax.master.store.database.migration_steps import Progress, apply_steps, quiet
from tenax.master.store.database.queries import load

log = structlog.get_logger("tenax.master")
Q = load("database")
#: Called with the name of the first migration that is missing, while no other migrator works.
BeforeFirst = Callable[[str], Awaitable[None]]
#: Any number that nobody else uses.
_ADVISORY_LOCK = 7_306_018_211
_AWAKE_S = 1.0
#: What the files of the first release replaced: name -> checksum.
SQUASHED = {
    "0001_pre_state": "2d1c38ebdad2cffe9fde0ffdf40b6a81d2321589b05690c4a310c44f4dd8a681",
    "0002_pre_telemetry": "767aec71f9e6dded80ecf2a184d77679e47ee4670f46147d9b446aef4b61957f",
    "0003_pre_accelerators": "97eeae6ab01d26701f7c605f64eaacd90ccf67d865ce6a97cb62b914699a90e6",
    "0004_pre_garbage": "cd2f083e9afea47a52d31df76c6ac4285c6cd79daa77f78cc6a0647501da6e0e",
    "0005_pre_launched_tasks": "870aa24df7bccadb20b82262d5c7c29b44740e19bc627595f58ac1d66fea9434",
    "0006_pre_machines": "adfe0962390a285d19c8f1a5f254bce7b835b9ddce8c459e0067a6551bd15101",
    "0007_pre_experiments": "70d97b730596136ae3bc48b51a090cf89144e334bd0945a4bb4fbef6b79e8b50",
    "0008_pre_runs": "f8881a3415464f0e1971da1106b274dc932190558cd2d120ecae515f7eda6408",
    "0009_pre_workspaces": "2d689a4f72635d805661a918a8330c4249619f43d7de640ad55c9d449624cd48",
    "0010_pre_access": "adeec17a26df6428cbadfaf84a4fa9b781dd7efaffc8977d11ccd9b325652fc5",
    "0011_pre_unmanaged": "0bc7622f99904d991939a1fe756a7534daa15922a534750061d569524729c670",
    "0012_pre_leaving": "b1973f1df49a49ce0fe20d5a42c32b963928b80b71c2232227838a8e5b52e62b",
    "0013_pre_cheaper": "a6889e5c05dc7d143b34060a1adf7f92ead90eb0916848fb1937b46b22d57dbb",
    "0014_pre_counts": "4b1c8592ae49737e1e2fbe1cdfe06ced2a864f44751745f24096f30d261e9960",
}
#: The number of the last of them: what is numbered up to it belongs to the first release.
LAST_SQUASHED = 14
#: The version that an older database has to pass through: the last that has them one by one.
_LAST_WITH_ALL = "Tenax 0.1.0 as of commit a513452, the last one with migration 0014_pre_counts"


class MigrationChanged(UserError):
    """A migration that was applied to this database is not the one of this release: do not edit applied migrations."""


class DatabaseNewer(UserError):
    """A newer release has changed this database so that this one cannot work on it: start that release."""


class MigrationsMissing(UserError):
    """This database is older than this release can upgrade: start a version in between on it first."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    #: File name without ``.sql``.
    name: str
    sql: str

    @property
    def number(self) -> int:
        return int(self.name.split("_")[0])

    @property
    def post(self) -> bool:
        return self.name.split("_")[1] == "post"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this release, in order."""
    folder = resources.files("tenax.master.store.database").joinpath("migrations")
    # Older ones lie apart, since a folder holds few files.
    parts = [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]
    files = [file for part in parts for file in part.iterdir() if file.name.endswith(".sql")]
    files.sort(key=lambda file: file.name)
    return [Migration(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files]


def newest() -> int:
    """Up to which number this release knows migrations."""
    return shipped()[-1].number


async def migrate(
    conn: Connection, *, migrations: list[Migration] | None = None, before: BeforeFirst | None = None
) -> list[str]:
    """Apply what a master needs; returns the names applied. ``conn`` is not of a pool (a session lock is taken).

    Raises DatabaseNewer, MigrationChanged, MigrationsMissing, TryAgain, and what ``before`` raises: then nothing was
    applied.
    """
    with translated():
        if not await conn.fetchval(Q.try_lock, _ADVISORY_LOCK):
            log.info("another master makes a backup or migrates the database: waiting until it has ended")
            await conn.execute(Q.lock, _ADVISORY_LOCK)
        try:
            await conn.execute(Q.create_tables)
            return await _apply_missing(conn, shipped() if migrations is None else migrations, before)
        finally:
            if not conn.is_closed():
                await conn.execute(Q.unlock, _ADVISORY_LOCK)


async def waiting(conn: Connection, *, migrations: list[Migration] | None = None) -> list[Migration]:
    """The post migrations that nobody has applied yet. Raises TryAgain."""
    known = [each for each in (shipped() if migrations is None else migrations) if each.post]
    with translated():
        applied = {row["name"] for row in await conn.fetch(Q.applied)}
    return [each for each in known if each.name not in applied]


async def _apply_missing(conn: Connection, migrations: list[Migration], before: BeforeFirst | None) -> list[str]:
    applied = {row["name"]: row["checksum"] for row in await conn.fetch(Q.applied)}
    is_new = not applied
    _refuse_newer(applied.keys() - {each.name for each in migrations})
    applied |= await _take_as_applied(conn, migrations, applied)
    done: list[str] = []
    for migration in migrations:
        if migration.name in applied:
            _check(migration.name, applied[migration.name], migration.checksum)
            continue
        if before is not None and not done and not is_new and not migration.post:
            await _kept_awake(conn, before(migration.name))
        if not migration.post:
            async with conn.transaction():
                await conn.execute(migration.sql)
                await conn.execute(Q.record, migration.name, migration.checksum)
        elif is_new:
            await apply_post(conn, migration)
        else:
            continue
        done.append(migration.name)
    return done


async def _kept_awake(conn: Connection, work: Awaitable[None]) -> None:
    """``work``, while ``conn`` is asked something: the lock is the connection's, and who is idle for long is cut off.

    Where it is lost all the same, another one may migrate by now: the work is given up. Raises what the connection did.
    """

    async def ask() -> None:
        while True:
            await asyncio.sleep(_AWAKE_S)
            await conn.execute(Q.probe)

    asking, working = asyncio.ensure_future(ask()), asyncio.ensure_future(work)
    try:
        await asyncio.wait([asking, working], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await asking
        await working
    finally:
        for task in (asking, working):
            task.cancel()
        await asyncio.gather(asking, working, return_exceptions=True)


async def apply_post(conn: Connection, migration: Migration, say: Progress = quiet) -> None:
    """What is left of one. Raises TryAgain where the connection is lost."""
    await apply_steps(conn, migration.name, migration.sql, say)
    async with conn.transaction():
        await conn.execute(Q.record, migration.name, migration.checksum)
        await conn.execute(Q.forget_steps, migration.name)


def _refuse_newer(unknown: Set[str]) -> None:
    post = sorted(name for name in unknown if name.split("_")[1:2] == ["post"])
    if post:
        raise DatabaseNewer(
            f"A newer release has applied {post[-1]} to this database, which this one cannot work on: start that "
            "release again. Nothing was changed."
        )


async def _take_as_applied(conn: Connection, migrations: list[Migration], applied: dict[str, str]) -> dict[str, str]:
    """Record the files of the first release where those that they replaced were applied; returns what was recorded."""
    older = sorted(SQUASHED.keys() & applied.keys())
    if not older:
        return {}
    for name in older:
        _check(name, applied[name], SQUASHED[name])
    if len(older) < len(SQUASHED):
        raise MigrationsMissing(
            f"The schema of this database ends at migration {older[-1]}, before the first release's. Start the master "
            f"of {_LAST_WITH_ALL} on it once, then this one. Nothing was changed."
        )
    taken = {
        each.name: each.checksum for each in migrations if each.number <= LAST_SQUASHED and each.name not in applied
    }
    async with conn.transaction():
        await conn.executemany(Q.record, list(taken.items()))
    return taken


def _check(name: str, recorded: str, ours: str) -> None:
    if recorded != ours:
        raise MigrationChanged(
            f"Migration {name} was applied to this database in another form: it must not be edited once it was "
            "released; put the change into a new one."
        )
