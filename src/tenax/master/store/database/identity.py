"""Which database this is: another in its place, such as a restored copy, is noticed before anything is done with it.

Rules:

- PostgreSQL tells databases apart by the server's identifier, its timeline and the database's own number: a copy that
  `pg_restore` filled, a server that was restored to a point in time, and a standby that was promoted are others.
- The database says in `cluster` which one it was taken for. Where that is not what it is, a master that begins raises
  the generation, and agents are welcomed anew; nothing need be lost for that: what it knows goes on where it is.
- A master that runs uses no connection to another database than the one it began with, and ends itself: what it keeps
  in memory is of the old one. Whoever started it starts it again.
- A copy of the server's files in the same place is the same database by all that it says. That it is older is found
  out by what agents have obeyed (`tenax.master.agents.hub`).
"""

from __future__ import annotations

import asyncio

import structlog
from asyncpg import Connection

from tenax.master.store.database.faults import DatabaseAway
from tenax.master.store.database.queries import load

Q = load("database")

log = structlog.get_logger("tenax.database")


class DatabaseIdentity:
    """Of the database that connections of one process lead to."""

    def __init__(self) -> None:
        #: None until it was adopted: there may be no tables yet.
        self._adopted: str | None = None
        #: The database is not the one that this process began with.
        self.replaced = asyncio.Event()

    async def adopt(self, conn: Connection) -> None:
        """Take the database for the cluster's. Call it once the tables are there, and before anything is decided."""
        identity = (await conn.fetchrow(Q.opened))["identity"]
        generation = await conn.fetchval(Q.adopt_another, identity)
        if generation is None:
            await conn.execute(Q.adopt_first, identity)
        else:
            log.warning("the database is another than before, perhaps an older copy", generation=generation)
        self._adopted = identity

    async def look(self, conn: Connection) -> int:
        """At a new connection. Returns the process of the server that serves it. Raises DatabaseAway."""
        opened = await conn.fetchrow(Q.opened)
        if self._adopted is not None and opened["identity"] != self._adopted:
            self.replaced.set()
            raise DatabaseAway("the database is another than before: this master ends, and begins anew with it")
        return int(opened["pid"])
