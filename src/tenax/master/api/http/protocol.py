"""HTTP as it arrives: how much a peer may send before it is known, and how long it may take.

Rules it keeps:

- a head has at most `HEAD_BYTES` and `HEAD_FIELDS`, complete or not; so has whatever else is no body: trailers, the
  framing of chunks, blank lines;
- a head that has begun, or the first one of a connection, is complete after `HEAD_S`, or the connection is closed; so
  is the rest of a body that nobody reads any more, because its request was answered;
- an answer is read: in `WRITE_S` at least `WRITE_BYTES` of what waits for its reader, or all of it, or the connection
  is closed; where more than `WAITING_BYTES` wait over all connections, those go first that have waited longest;
- at most `PIPELINED` requests wait behind the one that is being answered: each costs the loop as much as one that waits
  for its answer, and hundreds of them fit into what is read at once.

How much of a body is taken, and how long it may take, is decided where it is read: `tenax.master.api.http.edge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tenax.errors import TenaxError
from tenax.master.observability import counters

log = structlog.get_logger("tenax.http")

HEAD_BYTES = 32 * 1024
HEAD_FIELDS = 100
HEAD_S = 10.0
PIPELINED = 16
#: Long, since who pages through a log reads nothing meanwhile.
WRITE_S = 600.0
WRITE_BYTES = 64 * 1024
WAITING_BYTES = 96 << 20
#: What has waited for less is not cut off for the sake of others.
WAITING_S = 10.0

#: Beside a name and a value: a colon, a blank, the end of the line.
_FIELD_BYTES = 4
_TOO_LARGE = (
    f"the head of this request is larger than {HEAD_BYTES // 1024} KiB, or has more than {HEAD_FIELDS} fields, which "
    "is the most that this master takes: ask for less at once, and send fewer cookies"
).encode()


class _Refused(TenaxError):
    """The parser is to stop: what it reads is more than is taken."""


class BoundedHttp(HttpToolsProtocol):
    """One connection."""

    #: Since when the peer owes the rest of something; None: it owes nothing.
    _owes_since: float | None
    #: Of the head, or of the trailers, so far.
    _head_bytes = 0
    _fields = 0
    #: Bytes since something was complete: a head, a part of a body, a request.
    _idle_bytes = 0
    _message_open = False
    #: Since when an answer waits for its reader, and how much of it waited then.
    _waiting_since: float | None = None
    _waited_then = 0
    #: Told of the connection's end.
    on_gone: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._owes_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_gone is not None:
            self.on_gone()

    def data_received(self, data: bytes) -> None:
        if self._owes_since is None and (self.cycle is None or self.cycle.response_complete):
            self._owes_since = self.loop.time()
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEAD_BYTES and not self.transport.is_closing() and self.parser is not None:
            self._refuse()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            log.warning("too many requests at once on one connection; it is closed")
            self.transport.close()
            raise _Refused
        if self._owes_since is None:
            self._owes_since = self.loop.time()
        self._message_open = True
        self._head_bytes = self._fields = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url), 0)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _FIELD_BYTES, 1)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._owes_since = None
        self._idle_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._message_open = False
        self._owes_since = None
        self._idle_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._message_open and self._owes_since is None:
            self._owes_since = self.loop.time()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self._waiting_since = None
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        # From here on the transport's events go to the websocket.
        super().handle_websocket_upgrade()
        websocket = self.transport.get_protocol()
        if isinstance(websocket, BoundedWebSocket):
            websocket.on_gone = self.on_gone

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            if self._head_bytes > HEAD_BYTES or self._fields > HEAD_FIELDS:
                self._refuse()
            else:
                super().send_400_response(msg)

    def check_time(self, now: float) -> None:
        """Close the connection if its peer sends, or reads, for too long. Asked about once a second."""
        if self._owes_since is not None and now - self._owes_since >= HEAD_S:
            self.transport.abort()
        waiting = self.waiting_bytes()
        if not waiting:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since, self._waited_then = now, waiting
        elif now - self._waiting_since >= WRITE_S:
            if self._waited_then - waiting < WRITE_BYTES:
                self.give_up()
            self._waiting_since, self._waited_then = now, waiting

    def waiting_bytes(self) -> int:
        """What waits for its reader, beside what the system has taken."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def waiting_s(self, now: float) -> float:
        """For how long it has waited."""
        return 0.0 if self._waiting_since is None else now - self._waiting_since

    def give_up(self) -> None:
        """Close the connection, and forget what nobody reads."""
        counters.ANSWERS_GIVEN_UP.inc()
        self.transport.abort()

    def _count(self, size: int, fields: int) -> None:
        self._head_bytes += size
        self._fields += fields
        if self._head_bytes > HEAD_BYTES or self._fields > HEAD_FIELDS:
            raise _Refused

    def _refuse(self) -> None:
        """Answer that it is too much, unless an answer is under way, and close."""
        if self.cycle is None or self.cycle.response_complete:
            head = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: text/plain\r\n"
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(_TOO_LARGE) + _TOO_LARGE)
        self.transport.close()


def relieve(connections: Iterable[BoundedHttp], now: float) -> None:
    """Give up what has waited longest for its reader, until what waits in all is no more than may."""
    waiting = [connection for connection in connections if connection.waiting_bytes()]
    in_all = sum(connection.waiting_bytes() for connection in waiting)
    for connection in sorted(waiting, key=lambda each: each.waiting_s(now), reverse=True):
        if in_all <= WAITING_BYTES or connection.waiting_s(now) < WAITING_S:
            return
        in_all -= connection.waiting_bytes()
        connection.give_up()


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A connection that became a websocket."""

    on_gone: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_gone is not None:
            self.on_gone()
