"""How a request is read, the same for every route.

Rules it keeps:

- whoever may not call a route is refused before the body is read;
- a body is JSON whatever its Content-Type says, and none at all is the empty message;
- a large body is decoded in a thread;
- a body that becomes a message has at most `MOST_VALUES`: each is checked in the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine

import anyio.to_thread
import msgspec
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from tenax.master.api.http.callers import authorize
from tenax.master.api.http.creations import create_once
from tenax.master.api.http.routing import answers_secret, creates

#: Characters of a name: of a user, a group, a webhook, a template.
LONGEST_NAME = 255

#: Bodies above this are decoded in a thread.
LARGE_BODY_BYTES = 256 * 1024

#: Values of a body that becomes a message: about twenty for each file of the largest code directory.
MOST_VALUES = 400_000

_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class WireRoute(APIRoute):
    """Authorizes the caller, then reads the body, then calls the handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        has_body = self.body_field is not None
        creating, secret = creates(self.endpoint), answers_secret(self.endpoint)

        async def lenient(request: Request) -> Response:
            await authorize(request, request.app.state.master)
            if has_body:
                request = _WireRequest(request.scope, request.receive)
            return await (create_once(request, handle, secret=secret) if creating else handle(request))

        return lenient


class _WireRequest(Request):
    """A request whose body is JSON."""

    async def body(self) -> bytes:
        return await super().body() or b"{}"

    async def json(self) -> object:
        body = await self.body()
        if len(body) <= LARGE_BODY_BYTES:
            return decode_body(body)
        return await anyio.to_thread.run_sync(_decode_large, body)


def _decode_large(body: bytes) -> object:
    """As `decode_body`. Raises `HTTPException` 413 for more values than are checked at once."""
    if body.count(b",") >= MOST_VALUES:
        raise HTTPException(
            413,
            f"the body holds more than {MOST_VALUES} values: send fewer at once; what a code directory does not need "
            "is left out with a .detignore file",
        )
    return decode_body(body)


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
