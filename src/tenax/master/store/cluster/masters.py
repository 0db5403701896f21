"""Rows of the masters of a cluster: which are there, which loops they run, and by what settings they go.

Rules: a master writes its row whenever it begins to listen, under the name that its leases bear then; that it is there
is known by the session lock on that name. Rows of those that are gone go with the next one that comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import asyncpg
from asyncpg import Connection, Record

from tenax.errors import InvalidInput
from tenax.master.store.database.connection import NoAddress, connect
from tenax.master.store.database.faults import translated
from tenax.master.store.database.lanes import MIGRATION
from tenax.master.store.database.queries import load

Q = load("cluster")


@dataclass(frozen=True, slots=True)
class MasterAbout:
    """What a master says of itself."""

    master_id: str
    #: The name of its machine.
    machine: str
    address: str
    version: str
    roles: tuple[str, ...]
    #: As `tenax.config.agreement.fingerprints`.
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class MasterRow:
    """One that is there."""

    about: MasterAbout
    started_at: datetime
    #: The loops whose lease it holds.
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """A cluster, as whoever has its database sees it."""

    id: str
    secret: bytes = field(repr=False)
    masters: list[MasterRow]


async def cluster_at(dsn: str) -> ClusterSeen | None:
    """The cluster that a database holds; None: none. Raises NoAddress, TryAgain, DatabaseTooOld, InvalidInput."""
    try:
        conn = await connect(dsn, "tenax-join", MIGRATION)
    except (ValueError, asyncpg.InterfaceError):
        # Not repeated: the address holds the password.
        raise NoAddress from None
    try:
        with translated():
            row = await _own_row(conn)
            if row is None:
                return None
            try:
                return ClusterSeen(row["cluster_id"], row["secret"], await present(conn))
            except asyncpg.UndefinedTableError:
                raise InvalidInput(
                    "The database waits for the migrations of this release: start a master of it there first."
                ) from None
    finally:
        await conn.close()


async def _own_row(conn: Connection) -> Record | None:
    try:
        return await conn.fetchrow(Q.get)
    except asyncpg.UndefinedTableError:
        return None


async def announce(conn: Connection, about: MasterAbout, holder: str) -> None:
    """Write it, and forget those that are gone. ``conn`` holds the session lock on ``holder``."""
    await conn.execute(Q.forget_masters, about.master_id)
    values = (about.machine, about.address, about.version, list(about.roles), about.settings)
    await conn.execute(Q.announce_master, about.master_id, holder, *values)


async def settings_changed(conn: Connection, master_id: str, settings: dict[str, str]) -> None:
    """It goes by others from now on."""
    await conn.execute(Q.master_settings, master_id, settings)


async def present(conn: Connection) -> list[MasterRow]:
    """Those that are there, the oldest first.

    Not in a transaction that goes on: it locks the names of those that are gone.
    """
    return [
        MasterRow(
            MasterAbout(
                row["master_id"], row["machine"], row["address"], row["version"], tuple(row["roles"]), row["settings"]
            ),
            row["started_at"],
            tuple(row["loops"]),
        )
        for row in await conn.fetch(Q.masters)
    ]
