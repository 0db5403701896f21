"""Failed logins of late, for all masters of a database to count together.

Rules: who was tried, and from where, is a hash here; what is older than the limit is forgotten as others are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load

Q = load("users")

#: Rows that are forgotten with each one that is counted.
_FORGOTTEN = 20


@dataclass(frozen=True, slots=True)
class PastFailures:
    """Of one name from one address."""

    count: int
    #: Since the last of them.
    seconds: float


async def lock(conn: Connection, key: bytes) -> PastFailures:
    """What is counted, unchanged by others until the transaction ends."""
    row = await conn.fetchrow(Q.failed_login_lock, key)
    return PastFailures(row["count"], row["seconds"])


async def count(conn: Connection, key: bytes, failures: int, forget_s: float) -> None:
    """Set how many there are; the last of them now."""
    await conn.execute(Q.failed_login_count, key, failures)
    await conn.execute(Q.failed_logins_forget, forget_s, _FORGOTTEN)


async def forget(conn: Connection, key: bytes) -> None:
    """It was right after all."""
    await conn.execute(Q.failed_login_forget, key)
