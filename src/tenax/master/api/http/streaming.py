"""Streams as Determined's client reads them: chunked, a JSON object per line, no empty lines.

What breaks a stream off is its last line. Whose credential has ended meanwhile (logged out, revoked, deactivated) is
sent nothing any more: before a part is sent, who asked is looked at again, every `RECHECK_S` at most.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import msgspec
import structlog
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tenax.errors import Forbidden, NotAuthenticated, TenaxError, TryAgain
from tenax.master.api.http.errors import stream_error

log = structlog.get_logger("tenax.http")

#: Seconds for which a stream goes on without asking again whether it may.
RECHECK_S = 5.0


class _Stream(StreamingResponse):
    """A stream that ends when whoever asked for it may not ask any more."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        identified = scope.get("state", {}).get("identified")
        if identified is not None:
            self.body_iterator = _guarded(self.body_iterator, identified)
        await super().__call__(scope, receive, send)


def ndjson(parts: AsyncIterator[bytes]) -> StreamingResponse:
    """A stream of ``parts``, whole lines of `line` each. Its headers go at once: refusals are raised before."""
    return _Stream(_all(parts), media_type="application/json")


def line(result: object) -> bytes:
    """``{"result": ...}`` and a line feed."""
    return b'{"result":' + msgspec.json.encode(result) + b"}\n"


async def _all(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for part in parts:
            if part:
                yield part
    except Exception as error:
        if not isinstance(error, TenaxError):
            log.exception("a stream broke off")
        yield msgspec.json.encode(stream_error(error)) + b"\n"


async def _guarded(
    parts: AsyncIterable[str | bytes | memoryview], identified: Callable[[], Awaitable[object]]
) -> AsyncIterator[str | bytes | memoryview]:
    checked = time.monotonic()
    async for part in parts:
        if time.monotonic() - checked >= RECHECK_S:
            refusal = await _refusal(identified)
            if refusal is not None:
                yield refusal
                return
            checked = time.monotonic()
        yield part


async def _refusal(identified: Callable[[], Awaitable[object]]) -> bytes | None:
    """The last line for whom it is over; None: go on."""
    try:
        await identified()
    except (NotAuthenticated, Forbidden) as error:
        return msgspec.json.encode(stream_error(error)) + b"\n"
    except TryAgain:
        # It is not known while the database is away: it is asked again in a while.
        return None
    return None
