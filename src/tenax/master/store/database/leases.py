"""Leases of loops: each loop runs in one place, and a place that lost it can write no more.

Rules:
- All times are the database's. A lease that ran out is taken over with epoch + 1.
- Each write transaction of a loop calls ``check`` first: it holds the lease's row until the transaction ends, so a
  takeover waits for it, and a holder that was replaced raises LeaseLost and writes nothing.
- A holder whose name came from ``wakeups.Listener.holder`` is also known dead at once when its connection is gone (the
  session lock on its name is free); for a hung one, and for any other name, the time decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.master.store.database.queries import load

Q = load("database")

#: Names of holders that keep a session lock on their name begin so.
SESSION_PREFIX = "session:"


class LeaseLost(Stale):
    """Another process has taken over this loop: stop, and apply for it again."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a loop."""

    loop: str
    epoch: int
    holder: str

    async def check(self, conn: Connection) -> None:
        """Raises LeaseLost unless this lease is still the newest; keeps it so until the transaction ends."""
        if await conn.fetchval(Q.check, self.loop, self.epoch) is None:
            raise LeaseLost


async def acquire(conn: Connection, loop: str, holder: str, seconds: float) -> Lease | None:
    """Take the lease if it is free, has run out, or its holder is dead or ourselves; None: another holds it.

    Inside a transaction of the caller's.
    """
    row = await conn.fetchrow(Q.lock_lease, loop)
    if row is None:
        epoch = await conn.fetchval(Q.create, loop, holder, seconds)
        return None if epoch is None else Lease(loop, epoch, holder)
    own = row["holder"] == holder
    if not (own or row["expired"] or await _is_dead(conn, row["holder"])):
        return None
    epoch = await conn.fetchval(Q.take_over, loop, holder, seconds)
    return Lease(loop, epoch, holder)


async def renew(conn: Connection, lease: Lease, seconds: float) -> None:
    """Extend it to ``seconds`` from now. Raises LeaseLost."""
    if await conn.fetchval(Q.renew, lease.loop, lease.epoch, seconds) is None:
        raise LeaseLost


async def _is_dead(conn: Connection, holder: str) -> bool:
    if not holder.startswith(SESSION_PREFIX):
        return False
    return bool(await conn.fetchval(Q.try_name, holder))
