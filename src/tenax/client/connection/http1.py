"""A small HTTP/1.1 client on a plain socket, for tasks. Standard library only, Python 3.9.

Why not ``http.client``: importing it costs 20 ms of CPU, more than the rest of a task's start; this module and
``socket`` cost 3. It speaks what a master answers: keep-alive, Content-Length, chunked bodies, TLS.

Rules: one connection serves one thread at a time; ``abort`` alone may be called from another thread. Nothing is retried
here but a request on a kept connection that the server closed before it answered a byte (so requests must be harmless
when sent twice, which all requests of a task are).
"""

from __future__ import annotations

import socket
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO, Optional

_LINE_LIMIT = 65536
_HEADER_LIMIT = 200
#: Bodies up to this size travel in one packet with their head.
_JOIN_LIMIT = 65536


#: One of several masters is asked this before anything else, and is left if it has not answered within so many seconds.
ALIVE, ALIVE_S = "/info", 5.0

#: Of several addresses: the one that answered last, by how they were named.
_in_use: dict[str, int] = {}
#: Of several addresses those that are known to answer: (how they were named, which one).
_answering: set[tuple[str, int]] = set()


class ProtocolError(OSError):
    """The answer is not HTTP."""


class NoAnswer(OSError):
    """The server closed the connection before it answered."""


class Http1Response:
    """An answer, read whole; header names are lower-case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Connection:
    """Requests to one server, over one kept connection that is made when needed.

    ``base_url``: ``http[s]://host[:port][/prefix]``, or several between commas, of which one that answers is used; it
    stays the first choice of this process for as long as it does. One that takes connections and answers none costs
    `ALIVE_S` seconds. ``cert_file``: PEM bundle to trust instead of the
    system's, or ``noverify``. ``cert_name``: the name that the certificate bears, if it is not the host's.
    """

    def __init__(
        self, base_url: str, *, cert_file: str = "", cert_name: str = "", connect_timeout: float = 10.0
    ) -> None:
        self._base_url = base_url
        self._places = [_split(url.strip()) for url in base_url.split(",")]
        self._cert_file = cert_file
        self._cert_name = cert_name
        self._connect_timeout = connect_timeout
        self._aborted = False
        #: Which of the addresses the connection is to.
        self._connected_to = 0
        self._socket: Optional[socket.socket] = None
        self._reader: Optional[BinaryIO] = None

    def request(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Optional[Mapping[str, str]] = None,
        timeout: float = 30.0,
    ) -> Http1Response:
        """Send and read the answer; ``timeout`` seconds bound each wait for the network. Raises OSError."""
        if self._connected_to != self._at:
            # Another connection of this process has found that nobody answers there.
            self.close()
        kept = self._socket is not None
        try:
            try:
                return self._exchange(method, target, body, headers or {}, timeout)
            except NoAnswer:
                if not kept or self._aborted:
                    raise
                self.close()
                return self._exchange(method, target, body, headers or {}, timeout)
        except BaseException:
            self._move_on()
            raise

    def leave(self) -> None:
        """Use another of the addresses from the next request on, if there are several: this one is not ready."""
        if len(self._places) > 1:
            self._move_on()

    def _move_on(self) -> None:
        self.close()
        if self._aborted:
            return
        _answering.discard((self._base_url, self._connected_to))
        # Unless another connection has done so.
        if self._at == self._connected_to:
            _in_use[self._base_url] = (self._at + 1) % len(self._places)

    def abort(self) -> None:
        """From any thread, and for good: whoever waits for an answer, or asks later, gets an OSError."""
        self._aborted = True
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        reader, sock = self._reader, self._socket
        self._reader = self._socket = None
        for part in (reader, sock):
            if part is not None:
                with suppress(OSError):
                    part.close()

    @property
    def _at(self) -> int:
        return _in_use.get(self._base_url, 0)

    def _head(self, method: str, target: str, length: int, headers: Mapping[str, str]) -> bytes:
        secure, name, port, prefix = self._places[self._connected_to]
        host = f"[{name}]" if ":" in name else name
        lines = [
            f"{method} {prefix}{target} HTTP/1.1",
            f"Host: {host}" if port == (443 if secure else 80) else f"Host: {host}:{port}",
        ]
        if length or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {length}")
        lines.extend(f"{name}: {value}" for name, value in headers.items())
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _exchange(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout: float
    ) -> Http1Response:
        sock, reader = self._connected()
        head = self._head(method, target, len(body), headers)
        sock.settimeout(timeout)
        try:
            if len(body) <= _JOIN_LIMIT:
                sock.sendall(head + body)
            else:
                sock.sendall(head)
                sock.sendall(body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise NoAnswer(*error.args) from error
        return self._read(reader, method)

    def _connected(self) -> tuple[socket.socket, BinaryIO]:
        if self._aborted:
            raise ConnectionAbortedError("this connection is not used any more")
        return self._reached() if self._socket is None or self._reader is None else (self._socket, self._reader)

    def _reached(self) -> tuple[socket.socket, BinaryIO]:
        """The first that answers, beginning with the one in use."""
        for left in reversed(range(len(self._places))):
            self._connected_to = self._at
            try:
                self._look_up()
                return self._opened()
            except OSError:
                self._move_on()
                if not left or self._aborted:
                    raise
        raise ConnectionRefusedError(self._base_url)

    def _look_up(self) -> None:
        """Whether the one to connect to, of several, answers at all. Raises OSError."""
        known = (self._base_url, self._connected_to)
        if len(self._places) == 1 or known in _answering:
            return
        sock, reader = self._opened()
        sock.settimeout(ALIVE_S)
        sock.sendall(self._head("GET", ALIVE, 0, {}))
        self._read(reader, "GET")
        _answering.add(known)

    def _opened(self) -> tuple[socket.socket, BinaryIO]:
        if self._socket is None or self._reader is None:
            self._socket = sock = self._connect(*self._places[self._connected_to])
            self._reader = sock.makefile("rb")
        return self._socket, self._reader

    def _connect(self, secure: bool, host: str, port: int, _prefix: str) -> socket.socket:
        sock = socket.create_connection((host, port), self._connect_timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return self._wrap(sock, host) if secure else sock
        except BaseException:
            sock.close()
            raise

    def _wrap(self, sock: socket.socket, host: str) -> socket.socket:
        import ssl

        if self._cert_file == "noverify":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = ssl.create_default_context(cafile=self._cert_file or None)
        return context.wrap_socket(sock, server_hostname=self._cert_name or host)

    def _read(self, reader: BinaryIO, method: str) -> Http1Response:
        status, version = _read_status(reader)
        headers = _read_headers(reader)
        while 100 <= status < 200:
            status, version = _read_status(reader)
            headers = _read_headers(reader)
        ends_with_connection = False
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            body = _read_chunks(reader)
        elif "content-length" in headers:
            body = _read_exactly(reader, _whole_number(headers["content-length"], 10))
        else:
            body = reader.read()
            ends_with_connection = True
        wish = headers.get("connection", "").lower()
        if ends_with_connection or "close" in wish or (version == "HTTP/1.0" and "keep-alive" not in wish):
            self.close()
        return Http1Response(status, headers, body)


def _split(url: str) -> tuple[bool, str, int, str]:
    """``scheme://host:port/prefix`` -> (secure, host, port, prefix); http and port 8080 by default."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    if scheme not in ("", "http", "https"):
        raise ValueError(f"the address of the master must begin with http:// or https://, not {scheme}://")
    place, _, path = rest.partition("/")
    host, port = place, ""
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.lstrip(":")
    elif ":" in place:
        host, _, port = place.rpartition(":")
    if not host or (port and not port.isdigit()):
        raise ValueError(f"the address of the master is not http[s]://host[:port]: {url}")
    default = {"https": 443, "http": 80}.get(scheme, 8080)
    prefix = "/" + path.strip("/") if path.strip("/") else ""
    return scheme == "https", host, int(port) if port else default, prefix


def _read_line(reader: BinaryIO) -> bytes:
    line = reader.readline(_LINE_LIMIT + 1)
    if len(line) > _LINE_LIMIT:
        raise ProtocolError("the answer has a line that is too long")
    return line


def _read_status(reader: BinaryIO) -> tuple[int, str]:
    try:
        line = _read_line(reader)
    except ConnectionResetError as error:
        raise NoAnswer(*error.args) from error
    if not line:
        raise NoAnswer("the server closed the connection before it answered")
    version, _, rest = line.decode("latin-1").partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not code.isdigit():
        raise ProtocolError("the answer is not HTTP: is something else listening on that port?")
    return int(code), version


def _read_headers(reader: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_HEADER_LIMIT):
        line = _read_line(reader)
        if line in (b"\r\n", b"\n"):
            return headers
        if not line:
            raise ProtocolError("the connection ended inside an answer")
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ProtocolError("the answer has too many headers")


def _read_exactly(reader: BinaryIO, length: int) -> bytes:
    body = reader.read(length)
    if len(body) < length:
        raise ProtocolError("the connection ended inside an answer")
    return body


def _read_chunks(reader: BinaryIO) -> bytes:
    parts = []
    while True:
        size = _whole_number(_read_line(reader).split(b";")[0].decode("latin-1"), 16)
        if size == 0:
            break
        parts.append(_read_exactly(reader, size))
        _read_line(reader)
    while _read_line(reader) not in (b"\r\n", b"\n", b""):
        pass
    return b"".join(parts)


def _whole_number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise ProtocolError("the answer gives no usable length")
    return number
