"""Streams as Determined's client reads them: chunked, a JSON object per line, no empty lines.

An error before the first line has its status and body like anywhere else; one after it is the last line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import structlog
from fastapi.responses import StreamingResponse

from tenax.errors import TenaxError
from tenax.master.api.errors import stream_error

log = structlog.get_logger("tenax.http")


async def ndjson(parts: AsyncIterator[bytes]) -> StreamingResponse:
    """A stream of ``parts``, each whole lines of `line`; waits for the first, so that its error has a status."""
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        first = b""
    return StreamingResponse(_all(first, parts), media_type="application/json")


def line(result: object) -> bytes:
    """``{"result": ...}`` and a line feed."""
    return b'{"result":' + msgspec.json.encode(result) + b"}\n"


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    try:
        async for part in rest:
            if part:
                yield part
    except Exception as error:
        if not isinstance(error, TenaxError):
            log.exception("a stream broke off")
        yield msgspec.json.encode(stream_error(error)) + b"\n"
