"""How a request is read, the same for every route.

Rules it keeps:

- whoever may not call a route is refused before the body is read;
- a body is JSON whatever its Content-Type says, and none at all is the empty message;
- a large body is decoded in a thread, and holds at most `MAX_VALUES` then: reading one holds up all threads;
- one that brings code goes to a file, and only what is left of it without that code is decoded; few arrive and
  fewer are worked on at a time, and the others wait.
- a body that becomes a message is checked value by value, in the event loop: so it has at most `MAX_VALUES`, or what
  `_MAX_VALUES_OF` says where people, or tasks, send no code with it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, cast

import anyio.to_thread
import msgspec
from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette import routing
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope

from tenax.config.schema.experiment import MAX_LABEL, MAX_LABELS
from tenax.display.terminal import is_name
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, is_deeper
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import authorize
from tenax.master.api.http.creations import create_once
from tenax.master.api.http.edge import GOES_TO_FILE
from tenax.master.api.http.routing import allowed, answers_secret, creates
from tenax.master.submission.messages import File
from tenax.master.submission.uploads import SpooledBody

#: Characters of a name: of a user, a group, a webhook, a template.
MAX_NAME = 255

#: Bodies above this are decoded in a thread.
LARGE_BODY_BYTES = 256 * 1024

#: Values of a body that becomes a message: about twenty for each file of the largest code directory.
MAX_VALUES = 400_000
_MAX_VALUES_OF = {
    Allow.PUBLIC: 1000,
    Allow.USER: 20_000,
    Allow.ADMIN: 20_000,
    Allow.TASK: 100_000,
    Allow.REPORTER: 100_000,
}

#: Lists and objects in one another.
MAX_DEPTH = 100

#: Bytes of one from people, without code: what they write is shown in lists again.
MAX_WRITTEN_BYTES = 2 << 20
_WRITTEN_BY = (Allow.PUBLIC, Allow.USER, Allow.ADMIN)

#: The limits of what people write, in characters, and as JSON where it is no text: lists show it again.
_MAX_LENGTHS = {
    "displayName": MAX_NAME,
    "name": 1000,
    "description": 10_000,
    "comment": 10_000,
    "notes": 256 * 1024,
    "metadata": 256 * 1024,
    #: Of a template.
    "config": 256 * 1024,
}

_READING = threading.Lock()
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class WireRoute(APIRoute):
    """Authorizes the caller, then reads the body, then calls the handler.

    To begin with it is only what requests are matched with. What its handler takes and gives is read when the first of
    them, or the contract, asks for it: for all routes that is a fifth of a master's start.
    """

    def __init__(self, path: str, endpoint: Callable[..., object], **options: object) -> None:
        methods, name = cast("list[str] | None", options["methods"]), cast("str | None", options["name"])
        routing.Route.__init__(self, path, endpoint, methods=methods, name=name)
        # As FastAPI has them: without HEAD for each GET.
        self.methods = set(methods or ["GET"])
        # By its absence this says that the route is not read yet.
        del self.app
        self._unread: dict[str, object] | None = options

    def __getattr__(self, name: str) -> object:
        if self.__dict__.get("_unread") is not None:
            self._read()
        return object.__getattribute__(self, name)

    def _read(self) -> None:
        # Once: who writes the contract in a thread has seen its parts, and would not know those of a second reading.
        with _READING:
            unread = self.__dict__["_unread"]
            if unread is None:
                return
            # Beside this one: nobody meets a route that is read by half.
            read = object.__new__(type(self))
            APIRoute.__init__(read, self.path, self.endpoint, **unread)
            self.__dict__.update(read.__dict__, _unread=None)

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        has_body = self.body_field is not None
        brings_code = self.body_field is not None and _brings_code(self.body_field.field_info.annotation)
        allow = allowed(self.endpoint) or Allow.PUBLIC
        most = MAX_VALUES if brings_code else _MAX_VALUES_OF.get(allow, MAX_VALUES)
        largest = None if brings_code or allow not in _WRITTEN_BY else MAX_WRITTEN_BYTES
        creating, secret = creates(self.endpoint), answers_secret(self.endpoint)

        async def answer(request: Request) -> Response:
            return await (create_once(request, handle, secret=secret) if creating else handle(request))

        async def lenient(request: Request) -> Response:
            await authorize(request, request.app.state.master)
            if brings_code and not _is_small(request):
                return await _uploaded(request, answer)
            return await answer(
                _WireRequest(request.scope, request.receive, most=most, largest=largest) if has_body else request
            )

        return lenient


class _WireRequest(Request):
    """A request whose body is JSON of at most so many values, and at most so many bytes.

    ``condensed``: its body without the code that came with it.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        condensed: bytes | None = None,
        most: int = MAX_VALUES,
        largest: int | None = None,
    ) -> None:
        super().__init__(scope, receive)
        self._condensed = condensed
        self._most = most
        self._largest = largest

    async def body(self) -> bytes:
        return (await super().body() if self._condensed is None else self._condensed) or b"{}"

    async def json(self) -> object:
        body = await self.body()
        if self._largest is not None and len(body) > self._largest:
            raise HTTPException(413, f"the body has {len(body)} bytes, and at most {self._largest} are taken here")
        check_values(body, self._most)
        if len(body) <= LARGE_BODY_BYTES:
            return decode_body(body)
        return await anyio.to_thread.run_sync(decode_body, body)


def check_sizes(**written: object) -> None:
    """Raises InvalidInput for what is longer than a field of that name may be."""
    for name, value in written.items():
        length = len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
        if length > _MAX_LENGTHS[name]:
            raise InvalidInput(f"{name} has {length} characters, and at most {_MAX_LENGTHS[name]} are taken")


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Each once, in the order given. Raises InvalidInput."""
    for label in labels:
        if not label.strip() or len(label) > MAX_LABEL or not is_name(label):
            raise InvalidInput(
                f"labels: give each 1 to {MAX_LABEL} characters of one line, not all blank, no control characters"
            )
    if len(labels) > MAX_LABELS:
        raise InvalidInput(f"labels: there are {len(labels)}, and at most {MAX_LABELS} are taken")
    return tuple(dict.fromkeys(labels))


def decode_large(body: bytes, *, keeps_nul: bool = False) -> object:
    """As `decode_body`. Raises `HTTPException` 413 for more values than are checked at once."""
    check_values(body, MAX_VALUES)
    return decode_body(body, keeps_nul=keeps_nul)


def check_values(body: bytes, most: int) -> None:
    """Raises `HTTPException` 413 for a body with more values than that."""
    if body.count(b",") >= most:
        raise HTTPException(
            413,
            f"the body holds more than {most} values: send fewer at once; what a code directory does not need "
            "is left out with a .detignore file",
        )


async def _uploaded(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    master = request.app.state.master
    setattr(request.state, GOES_TO_FILE, True)
    async with master.arriving:
        upload = SpooledBody(master.settings.uploads)
        try:
            async for chunk in request.stream():
                await upload.write(chunk)
            await upload.flush()
        except BaseException:
            upload.close()
            raise
    try:
        async with master.packing.turn():
            condensed = await anyio.to_thread.run_sync(upload.condensed)
            request.state.upload = upload
            return await handle(_WireRequest(request.scope, request.receive, condensed))
    finally:
        upload.close()


async def _upload_of(connection: HTTPConnection) -> SpooledBody | None:
    upload: SpooledBody | None = getattr(connection.state, "upload", None)
    return upload


#: Where the content of the files of a request stands; None: in the request itself.
UploadDep = Annotated[SpooledBody | None, Depends(_upload_of)]


def _brings_code(message: object) -> bool:
    """Whether a body has a list of files in it."""
    fields = getattr(message, "model_fields", {})
    return any(field.annotation == list[File] for field in fields.values())


def _is_small(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isdigit() and int(length) <= LARGE_BODY_BYTES


def decode_body(body: bytes, *, keeps_nul: bool = False) -> object:
    """The JSON of a body; ``keeps_nul``: whoever calls sees to it that no NUL comes where none can be stored.

    Raises `HTTPException` 400 for what is not JSON or cannot be stored.
    """
    try:
        decoded: Json = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from None
    # PostgreSQL cannot keep this character, and nothing that we take needs it, but the lines of a program's output.
    if not keeps_nul and b"\\u0000" in body and _ESCAPED_NUL.search(body):
        raise HTTPException(400, "the body holds a NUL character, which cannot be stored: remove it")
    # Deeper ones could be stored and never be shown again.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_deeper(decoded, MAX_DEPTH):
        raise HTTPException(400, f"the body is nested more than {MAX_DEPTH} levels deep")
    return decoded
