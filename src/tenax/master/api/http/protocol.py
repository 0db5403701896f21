"""HTTP as it arrives: how much a peer may send before it is known, and how long it may take.

Rules it keeps:

- a head has at most `HEAD_BYTES` and `HEAD_FIELDS`, complete or not; so has whatever else is no body: trailers, the
  framing of chunks, blank lines;
- a head that has begun, or the first one of a connection, is complete after `HEAD_S`, or the connection is closed; so
  is the rest of a body that nobody reads any more, because its request was answered;
- an answer is read: in `WRITE_S` at least `WRITE_BYTES` of what waits for its reader, or all of it, or the connection
  is closed; where more than `WAITING_BYTES` wait over all connections, those go first that have waited longest;
- a handshake of a websocket is complete after `HEAD_S`, too, or after `ANSWER_S` where the master is who takes long;
  one with a line of more than `MAX_UPGRADE_LINE`, or that the library of websockets does not understand, is refused:
  it would neither be answered nor end. So is one behind a request that is being answered;
- a websocket that ends has ended after `HEAD_S`, read or not;
- at most `PIPELINED` requests wait behind the one that is being answered: each costs the loop as much as one that waits
  for its answer, and hundreds of them fit into what is read at once.

How much of a body is taken, and how long it may take, is decided where it is read: `tenax.master.api.http.edge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tenax.errors import TenaxError
from tenax.master.observability import counters

log = structlog.get_logger("tenax.http")

HEAD_BYTES = 32 * 1024
HEAD_FIELDS = 100
#: Of a line in a handshake of a websocket, its end included: more is not read.
MAX_UPGRADE_LINE = 8192
HEAD_S = 10.0
#: Who asks for a websocket is looked up first, in a database that may be slow.
ANSWER_S = 60.0
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
_LONG_LINE = (
    f"the address or a field of this request for a websocket is longer than {MAX_UPGRADE_LINE // 1024} KiB, which is "
    "the most that this master takes there: ask for less at once, and send fewer cookies"
).encode()
_NOT_UNDERSTOOD = b"this request for a websocket is not understood: it has no body, and an address of ASCII characters"


class _Refused(TenaxError):
    """The parser is to stop: what it reads is more than is taken."""


class Bounded(asyncio.Protocol):
    """One connection, and how long what is written to it waits for its reader."""

    transport: asyncio.Transport
    #: Since when an answer waits for its reader, and how much of it waited then.
    _waiting_since: float | None = None
    _waited_then = 0
    #: Told of the connection's end.
    on_gone: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_gone is not None:
            self.on_gone()

    def resume_writing(self) -> None:
        self._waiting_since = None
        super().resume_writing()

    def check_time(self, now: float) -> None:
        """Close the connection if its peer sends, or reads, for too long. Asked about once a second."""
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
        return self.transport.get_write_buffer_size()

    def waiting_s(self, now: float) -> float:
        """For how long it has waited."""
        return 0.0 if self._waiting_since is None else now - self._waiting_since

    def give_up(self) -> None:
        """Close the connection, and forget what nobody reads."""
        counters.ANSWERS_GIVEN_UP.inc()
        self.transport.abort()


class BoundedHttp(Bounded, HttpToolsProtocol):
    """One that speaks HTTP."""

    #: Since when the peer owes the rest of something; None: it owes nothing.
    _owes_since: float | None
    #: Of the head, or of the trailers, so far.
    _head_bytes = 0
    _fields = 0
    #: Bytes since something was complete: a head, a part of a body, a request.
    _idle_bytes = 0
    _message_open = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._owes_since = self.loop.time()

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
        # A body before a websocket is read by nobody: it has the time of the head.
        if not (self.parser.should_upgrade() and self._should_upgrade()):
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

    def handle_websocket_upgrade(self) -> None:
        lines = [len(name) + len(value) + _FIELD_BYTES for name, value in self.scope["headers"]]
        lines.append(len(self.scope["method"]) + len(self.url) + len("  HTTP/1.1\r\n"))
        if max(lines) > MAX_UPGRADE_LINE:
            self._refuse(_LONG_LINE)
            return
        if self.cycle is not None and not self.cycle.response_complete:
            log.warning("a websocket behind a request that is being answered; the connection is closed")
            self.transport.close()
            return
        # From here on the transport's events go to the websocket.
        super().handle_websocket_upgrade()
        websocket = self.transport.get_protocol()
        if isinstance(websocket, BoundedWebSocket):
            websocket.on_gone = self.on_gone
            if not websocket.handshake_initiated:
                websocket.refuse()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            if self._head_bytes > HEAD_BYTES or self._fields > HEAD_FIELDS:
                self._refuse()
            else:
                super().send_400_response(msg)

    def check_time(self, now: float) -> None:
        if self._owes_since is not None and now - self._owes_since >= HEAD_S:
            self.transport.abort()
        super().check_time(now)

    def _count(self, size: int, fields: int) -> None:
        self._head_bytes += size
        self._fields += fields
        if self._head_bytes > HEAD_BYTES or self._fields > HEAD_FIELDS:
            raise _Refused

    def _refuse(self, reason: bytes = _TOO_LARGE) -> None:
        """Answer that it is too much, unless an answer is under way, and close."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_answer(b"431 Request Header Fields Too Large", reason))
        self.transport.close()


def relieve(connections: Iterable[Bounded], now: float) -> None:
    """Give up what has waited longest for its reader, until what waits in all is no more than may."""
    waiting = [connection for connection in connections if connection.waiting_bytes()]
    in_all = sum(connection.waiting_bytes() for connection in waiting)
    for connection in sorted(waiting, key=lambda each: each.waiting_s(now), reverse=True):
        if in_all <= WAITING_BYTES or connection.waiting_s(now) < WAITING_S:
            return
        in_all -= connection.waiting_bytes()
        connection.give_up()


class BoundedWebSocket(Bounded, WebSocketsSansIOProtocol):
    """One that became a websocket. Pings of uvicorn's end one whose peer is silent."""

    _began = 0.0
    #: Since when it has been ending.
    _ends_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._began = self.loop.time()

    def check_time(self, now: float) -> None:
        limit_s = ANSWER_S if self.handshake_initiated else HEAD_S
        if not self.handshake_complete and now - self._began >= limit_s:
            self.transport.abort()
        elif self.transport.is_closing():
            self._ends_since = now if self._ends_since is None else self._ends_since
            if now - self._ends_since >= HEAD_S:
                self.give_up()
        super().check_time(now)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        # A refusal is an answer; uvicorn would write an error into the log for each.
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True

    def refuse(self) -> None:
        """Of a handshake that is no request to the library, which says nothing itself."""
        self.transport.write(_answer(b"400 Bad Request", _NOT_UNDERSTOOD))
        self.transport.close()


def _answer(status: bytes, text: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(text)) + text
