"""Requests that create something, by the key that their sender gave them: sent again they are answered, not done again.

Rules:
- A key is one user's. It is written in the transaction that creates, with the answer: both are there, or neither.
- Of two with one key at once, the second waits for the first.
- The key says what is a repeat, never the content; a key that comes with another request is refused.
- A key is kept for a day.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.master.store.database.queries import load

Q = load("database")

#: How long a key is kept.
KEPT_S = 86_400.0


class KeyTaken(InvalidInput):
    """This Idempotency-Key was given to another request: use a new one for each."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """One user's key of one request."""

    user_id: int
    key: str
    #: Of method, address and body.
    digest: bytes


async def answer_of(conn: Connection, request: RequestKey) -> bytes | None:
    """What it was answered when it was done; None: it was not. Raises KeyTaken."""
    row = await conn.fetchrow(Q.answer_of, request.user_id, request.key)
    if row is None:
        return None
    if row["digest"] != request.digest:
        raise KeyTaken
    answer: bytes = row["answer"]
    return answer


async def begin(conn: Connection, request: RequestKey) -> bytes | None:
    """Keep its key if it is new, and wait for another that has it and is not done; what that one was answered.

    In the transaction that creates. Raises KeyTaken.
    """
    if await conn.fetchval(Q.begin_request, request.user_id, request.key, request.digest) is not None:
        return None
    return await answer_of(conn, request)


async def finish(conn: Connection, request: RequestKey, answer: bytes) -> None:
    """Keep its answer, in the same transaction."""
    await conn.execute(Q.finish_request, request.user_id, request.key, answer)


async def any_due(conn: Connection) -> bool:
    """Whether a key was kept long enough."""
    due: bool = await conn.fetchval(Q.any_request_due, KEPT_S)
    return due


async def forget(conn: Connection) -> None:
    """Forget the keys that were kept long enough."""
    await conn.execute(Q.forget_requests, KEPT_S)
