"""How browsers are answered: compressed, and not sent again what they have.

Pure ASGI, below the edge. Rules it keeps:

- it is for whoever brings a cookie: a browser, perhaps at the end of a slow line. Programs of the cluster are near, and
  compressing for them would be work without a gain;
- only an answer of JSON that was made as a whole and is no refusal, and larger than a packet: streams pass untouched;
- a GET bears a tag of what it says, and whoever has that already is answered with 304: the answer was made all the
  same, and is not sent;
- what holds a secret that is told once is neither compressed nor tagged.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import cast

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenax.master.access.authorization import COOKIES
from tenax.master.api.http.routing import answers_secret

#: Smaller answers are one packet as they are.
MIN_BYTES = 1400
#: Larger ones are compressed beside the event loop: a millisecond of work.
_BESIDE_BYTES = 256 * 1024
#: A third of the time of zlib's own choice, for a quarter more bytes.
_LEVEL = 1
#: Of a gzip stream, as zlib is asked for it.
_GZIP = 16 + zlib.MAX_WBITS


class Packing:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and pack its answer where it is for a browser."""
        if scope["type"] == "http" and scope.get(COOKIES):
            send = _Packer(scope, send).send
        await self.app(scope, receive, send)


class _Packer:
    """One answer: its beginning waits for its body."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._concerns(message):
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            body = cast("bytes", message.get("body", b""))
            if not message.get("more_body", False) and len(body) >= MIN_BYTES:
                message = {**message, "body": await self._packed(start, body)}
            await self._send(start)
        await self._send(message)

    def _concerns(self, start: Message) -> bool:
        headers = Headers(raw=start["headers"])
        plain = headers.get("content-type", "").startswith("application/json") and "content-encoding" not in headers
        return start["status"] == 200 and plain and not answers_secret(self._scope.get("endpoint"))

    async def _packed(self, start: Message, body: bytes) -> bytes:
        """The body to send; ``start`` says what became of it."""
        sent = Headers(scope=self._scope)
        headers = MutableHeaders(raw=list(start["headers"]))
        start["headers"] = headers.raw
        headers.add_vary_header("Accept-Encoding")
        if self._scope["method"] == "GET":
            # Weak: of the same answer, however it is encoded.
            tag = f'W/"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
            headers["ETag"] = tag
            headers.setdefault("Cache-Control", "private, no-cache")
            if tag in (each.strip() for each in sent.get("if-none-match", "").split(",")):
                start["status"] = 304
                for name in ("content-length", "content-type"):
                    if name in headers:
                        del headers[name]
                return b""
        if takes_gzip(sent.get("accept-encoding", "")):
            beside = len(body) >= _BESIDE_BYTES
            body = await anyio.to_thread.run_sync(_compressed, body) if beside else _compressed(body)
            headers["Content-Encoding"] = "gzip"
            headers["Content-Length"] = str(len(body))
        return body


def takes_gzip(accepted: str) -> bool:
    """Whether who says so (``Accept-Encoding``) takes gzip."""
    for each in accepted.split(","):
        name, _, quality = each.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _compressed(body: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(body) + packer.flush()
