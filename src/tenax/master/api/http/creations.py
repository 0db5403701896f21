"""Requests that create something: done once, however often they are sent with one key.

Rules it keeps:

- with an ``Idempotency-Key`` all that a request writes is one transaction, with its key and its answer in it; sent
  again within a day it is answered as it was the first time, and "try again" is always the truth;
- an answer that holds a secret is not kept: who sends that again is told that it was done;
- without a key nothing is taken for a repeat; where nobody knows whether it was done, that is said, and nobody is asked
  to send it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from asyncpg import Connection
from fastapi import Request, Response

from tenax.errors import AlreadyExists, InvalidInput, TenaxError
from tenax.master.context import Master
from tenax.master.store.database import idempotency
from tenax.master.store.database.faults import OutcomeUnknown
from tenax.master.store.database.idempotency import RequestKey
from tenax.master.submission.uploads import SpooledBody

HEADER = "Idempotency-Key"
_MAX_KEY = 255


class AnswerLost(TenaxError):
    """The database was lost while this was stored: look whether it is there before you send it again."""


class DoneBefore(AlreadyExists):
    """This was done before, and its answer held a secret that is not kept: delete what it made, and make another."""


class _AnsweredBefore(Exception):
    """Another request with this key was done first."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("answered before")
        self.answer = answer


async def create_once(request: Request, handle: Callable[[Request], Awaitable[Response]], *, secret: bool) -> Response:
    """Handle a request that creates something. Raises as ``handle`` does, AnswerLost, InvalidInput."""
    key = request.headers.get(HEADER)
    if key is None:
        try:
            return await handle(request)
        except OutcomeUnknown as error:
            raise AnswerLost from error
    if not 1 <= len(key) <= _MAX_KEY or not key.isprintable():
        raise InvalidInput(f"{HEADER} is 1 to {_MAX_KEY} printable characters")
    try:
        return await _with_key(request, handle, key, secret=secret)
    except _AnsweredBefore as before:
        if not before.answer:
            raise DoneBefore from None
        return Response(before.answer, media_type="application/json")


async def _with_key(
    request: Request, handle: Callable[[Request], Awaitable[Response]], key: str, *, secret: bool
) -> Response:
    master: Master = request.app.state.master
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    # Of an upload the body here has the code left out.
    upload: SpooledBody | None = getattr(request.state, "upload", None)
    sent = await request.body() if upload is None else upload.digest
    digest = hashlib.sha256(target + sent).digest()
    mine = RequestKey(request.state.caller.person.id, key, digest)
    async with master.db.connection() as conn:
        answer = await idempotency.answer_of(conn, mine)
    if answer is not None:
        raise _AnsweredBefore(answer)

    async def begin(conn: Connection) -> None:
        answer = await idempotency.begin(conn, mine)
        if answer is not None:
            raise _AnsweredBefore(answer)

    async with master.db.as_one(begin) as whole:
        response = await handle(request)
        if whole.conn is not None:
            await idempotency.finish(whole.conn, mine, b"" if secret else bytes(response.body))
    return response
