"""How many experiments there are, by project, owner, state and whether they are archived.

Rules: triggers add a row for each change, and nobody waits for anybody; what was added is folded into one row of each
kind from time to time. The sum is right at every moment, in the snapshot of whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.master.store.queries import load

Q = load("experiment_counts")

#: So many rows are read in less than a millisecond.
_MANY = 1000


async def total(conn: Connection, condition: str, parameters: Sequence[object]) -> int:
    """How many meet a condition on ``e.project_id``, ``e.owner_id``, ``e.state`` and ``e.archived``."""
    found: int = await conn.fetchval(
        f"select coalesce(sum(e.change), 0)::bigint from experiment_counts e where {condition}", *parameters
    )
    return found


async def many(conn: Connection) -> bool:
    """Whether folding is worth it."""
    return bool(await conn.fetchval(Q.more_than, _MANY))


async def fold(conn: Connection) -> None:
    """One row of each kind. In a transaction of one who does it alone."""
    await conn.execute(Q.fold)
