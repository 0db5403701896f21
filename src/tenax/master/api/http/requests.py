"""How a request is read, the same for every route.

Rules it keeps:

- whoever may not call a route is refused before the body is read;
- a body is JSON whatever its Content-Type says, and none at all is the empty message;
- a large body is decoded in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine

import anyio.to_thread
import msgspec
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from tenax.master.api.http.callers import authorize

#: Characters of a name: of a user, a group, a webhook, a template.
LONGEST_NAME = 255

#: Bodies above this are decoded in a thread.
LARGE_BODY_BYTES = 256 * 1024

_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class WireRoute(APIRoute):
    """Authorizes the caller, then reads the body, then calls the handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        has_body = self.body_field is not None

        async def lenient(request: Request) -> Response:
            await authorize(request, request.app.state.master)
            return await handle(_WireRequest(request.scope, request.receive) if has_body else request)

        return lenient


class _WireRequest(Request):
    """A request whose body is JSON."""

    async def body(self) -> bytes:
        return await super().body() or b"{}"

    async def json(self) -> object:
        body = await self.body()
        if len(body) <= LARGE_BODY_BYTES:
            return decode_body(body)
        return await anyio.to_thread.run_sync(decode_body, body)


def decode_body(body: bytes) -> object:
    """The JSON of a body. Raises `HTTPException` 400 for what is not JSON or cannot be stored."""
    try:
        decoded: object = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from None
    # PostgreSQL cannot keep this character, and nothing that we take needs it.
    if b"\\u0000" in body and _ESCAPED_NUL.search(body):
        raise HTTPException(400, "the body holds a NUL character, which cannot be stored: remove it")
    return decoded
