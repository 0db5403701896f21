"""Leases of loops: each loop runs in one place, and a place that lost it can write no more.

Rules:
- All times are the database's. A lease that ran out is taken over with epoch + 1.
- Each write transaction of a loop calls ``check`` first: it holds the lease's row until the transaction ends, so nobody
  takes over before that, and a holder that was replaced raises LeaseLost and writes nothing. Renewing does not wait for
  it: a long transaction costs no lease.
- A transaction that has checked a lease which has run out is ended by whoever wants to take over: its process may have
  been stopped, and would hold the row for ever.
- Leases are taken and renewed all at once: nine loops of a master that died move together.
- A holder whose name came from ``wakeups.Listener.holder`` is also known dead at once when its connection is gone (the
  session lock on its name is free); for a hung one, and for any other name, the time decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.master.store.database.faults import translated
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import SESSION_PREFIX, notify

Q = load("database")

#: What is announced when a lease is given up.
KIND = "lease"


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


async def acquire_all(conn: Connection, loops: Sequence[str], holder: str, seconds: float) -> list[Lease]:
    """Take those that are free, have run out, or whose holder is dead or ourselves; others hold the rest.

    Inside a transaction of the caller's.
    """
    rows = await conn.fetch(Q.acquire, list(loops), holder, seconds, SESSION_PREFIX)
    return [Lease(row["loop"], row["epoch"], holder) for row in rows]


async def acquire(conn: Connection, loop: str, holder: str, seconds: float) -> Lease | None:
    """As `acquire_all`, one of them; None: another holds it."""
    return next(iter(await acquire_all(conn, [loop], holder, seconds)), None)


async def end_late(conn: Connection, loops: Sequence[str]) -> int:
    """End the transactions that hold leases which have run out; how many there were. Raises TryAgain.

    Those of another role of the database may be out of reach: then nothing is done but to wait.
    """
    with translated():
        return len(await conn.fetch(Q.end_late, list(loops)))


async def renew(conn: Connection, leases: Iterable[Lease], holder: str, seconds: float) -> frozenset[str]:
    """Extend them to ``seconds`` from now, under the name that their holder has now; the loops whose lease is lost."""
    mine = {lease.loop: lease.epoch for lease in leases}
    rows = await conn.fetch(Q.renew, list(mine), list(mine.values()), seconds, holder)
    return frozenset(mine) - {row["loop"] for row in rows}


async def give_up(conn: Connection, lease: Lease) -> None:
    """Let another process have it at once, unless one has it already."""
    if await conn.fetchval(Q.give_up, lease.loop, lease.epoch) is not None:
        await notify(conn, KIND, lease.loop)
