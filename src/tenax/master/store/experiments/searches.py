"""The journal of a search and its inbox: read forward, written once, gapless.

Only the searching loop writes here, who makes an experiment, which nobody else sees yet, and who continues one that
has ended, which no loop looks at. (Facts are
put into the inbox by whoever stores what they are of: exits always, validations where the method decides by them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Stale
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import progress
from tenax.search.journal import SearchEntry, SearchFact, decode, encode
from tenax.search.view import Standing

Q = load("experiments")

#: Kind of the wake-ups of the loop that searches: there is a search to begin, or a fact for one.
KIND = "search"
#: Facts that are read at a time.
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class InboxFact:
    """A fact in the inbox that the search has not seen."""

    id: int
    fact: SearchFact


async def journal(conn: Connection, experiment_id: int, after: int) -> tuple[int, list[SearchEntry]]:
    """The number of the last entry, and the entries after number ``after``."""
    rows = await conn.fetch(Q.search_journal, experiment_id, after)
    return (rows[-1]["seq"] if rows else after), [decode(row["entry"]) for row in rows]


async def waiting(conn: Connection, experiment_id: int) -> list[InboxFact]:
    """Facts that wait, oldest first, `AT_ONCE` at most."""
    facts = []
    for row in await conn.fetch(Q.waiting, experiment_id, AT_ONCE):
        fact = decode(row["fact"])
        facts.append(InboxFact(row["id"], fact))  # type: ignore[arg-type]
    return facts


async def append(
    conn: Connection, experiment_id: int, first: int, entries: Sequence[SearchEntry], standing: Standing | None
) -> None:
    """Write entries at ``first``, ``first`` + 1, ...; two writers of one place break the primary key.

    ``standing`` is where the search stands after them; None leaves its progress as it is.
    """
    settled, share = (None, None) if standing is None else (standing.settled, standing.share)
    await conn.execute(Q.append, experiment_id, first, [encode(entry) for entry in entries], settled, share)
    if share:
        await notify(conn, progress.KIND, experiment_id)


async def move(conn: Connection, moved: Sequence[tuple[int, int]]) -> None:
    """Facts by their inbox ids stand in the journal at these places (or what stands there includes them).

    Raises:
        Stale: One of them had been moved.
    """
    if not moved:
        return
    status = await conn.execute(Q.search_move, [fact for fact, _ in moved], [seq for _, seq in moved])
    if status != f"UPDATE {len(moved)}":
        raise Stale


async def forget_seen(conn: Connection, after: int, at_most: int) -> int | None:
    """Empty the inbox of what ended searches have seen, among facts after number ``after``; the number of the last one
    looked at, None: there is none."""
    last: int | None = await conn.fetchval(Q.forget_seen, after, at_most)
    return last


async def going_on(conn: Connection) -> list[int]:
    """Experiments whose search may still take steps."""
    return [row["id"] for row in await conn.fetch(Q.going_on)]


async def dirty(conn: Connection, among: Sequence[int] | None = None) -> list[int]:
    """Experiments whose search has something to do: of these, or of all."""
    return [row["id"] for row in await conn.fetch(Q.dirty, among)]
