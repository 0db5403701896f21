"""Streams as Determined's client reads them: chunked, a JSON object per line, no empty lines.

What breaks a stream off is its last line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import structlog
from fastapi.responses import StreamingResponse

from tenax.errors import TenaxError
from tenax.master.api.errors import stream_error

log = structlog.get_logger("tenax.http")


def ndjson(parts: AsyncIterator[bytes]) -> StreamingResponse:
    """A stream of ``parts``, whole lines of `line` each. Its headers go at once: refusals are raised before."""
    return StreamingResponse(_all(parts), media_type="application/json")


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
