"""The part of httpx2 that the SDK uses, under the same names, on the standard library alone. Python 3.9.

For tasks in an image or an environment that has no other package. One connection per request; proxies are those of the
environment; redirections are answers. A failure that cannot have reached the master is a ConnectError.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple, Union
from urllib.parse import urlencode

_PIECE = 1 << 16
_NOT_THERE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ECONNREFUSED))


class TransportError(Exception):
    """The connection did not carry the request, or its answer."""


class ConnectError(TransportError):
    """Nothing was sent: nobody listens there, or whoever does is not trusted."""


class ConnectTimeout(ConnectError):
    """Nobody answered while a connection was made. Not told from other waits here."""


class Timeout:
    """Seconds; None waits for ever. Connecting has no bound of its own here."""

    def __init__(self, default: Optional[float], *, connect: Optional[float], read: Optional[float]) -> None:
        self.read = read


@dataclass(frozen=True)
class Request:
    """What is to be sent."""

    method: str
    url: str
    content: Optional[bytes]
    headers: Dict[str, str]
    timeout: Timeout


class Response:
    """An answer whose body has not been read yet."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self.status_code: int = answer.status
        self.headers = answer.headers

    @property
    def extensions(self) -> Dict[str, Response]:
        """As httpx2 leads to the socket."""
        return {"network_stream": self}

    def get_extra_info(self, _: str) -> socket.socket:
        """The socket. Raises OSError where it is closed."""
        raw = getattr(self._answer.fp, "raw", None)
        if raw is None:
            raise OSError(errno.ENOTCONN, "it was read to its end")
        connected: socket.socket = raw._sock
        return connected

    def read(self) -> bytes:
        """The whole body. Raises TransportError, as all that reads does."""
        with _transport_errors():
            return self._answer.read()

    def iter_raw(self) -> Iterator[bytes]:
        """The body, piece by piece as it comes."""
        with _transport_errors():
            while True:
                piece = self._answer.read1(_PIECE)
                if not piece:
                    return
                yield piece

    def iter_lines(self) -> Iterator[str]:
        """The lines of the body as they come, without their ends."""
        # Not those of the answer itself: they end silently where the connection breaks.
        rest = b""
        for piece in self.iter_raw():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r")
        if rest:
            yield rest.decode("utf-8", "replace")

    def close(self) -> None:
        """Let go of the connection."""
        with contextlib.suppress(OSError):
            self._answer.close()


class PlainClient:
    """Sends requests. Not thread-safe."""

    def __init__(self, *, verify: Union[bool, ssl.SSLContext], follow_redirects: bool, trust_env: bool) -> None:
        handlers: List[urllib.request.BaseHandler] = [_NoErrors()]
        if isinstance(verify, ssl.SSLContext):
            handlers.append(urllib.request.HTTPSHandler(context=verify))
        elif not verify:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: Optional[bytes],
        params: List[Tuple[str, Union[str, int, float, bool, None]]],
        headers: Dict[str, str],
        timeout: Timeout,
    ) -> Request:
        """A request; ``params`` are escaped."""
        return Request(method, f"{url}?{urlencode(params)}" if params else url, content, dict(headers), timeout)

    def send(self, request: Request, *, stream: bool) -> Response:
        """The answer, of whatever status. Raises TransportError."""
        # An empty body is a body: its length is sent.
        data = request.content if request.content is not None or request.method in ("GET", "DELETE") else b""
        urllib_request = urllib.request.Request(request.url, data=data, headers=request.headers, method=request.method)
        with _transport_errors():
            return Response(self._opener.open(urllib_request, timeout=request.timeout.read))

    def close(self) -> None:
        """Nothing is kept open between requests."""


#: As httpx2 calls it.
Client = PlainClient


class _NoErrors(urllib.request.HTTPErrorProcessor):
    """Every status is an answer, redirections too."""

    def http_response(
        self, request: urllib.request.Request, response: http.client.HTTPResponse
    ) -> http.client.HTTPResponse:
        return response

    https_response = http_response


@contextmanager
def _transport_errors() -> Iterator[None]:
    """Errors of the standard library as those of this module."""
    try:
        yield
    except urllib.error.URLError as error:
        reason = error.reason if isinstance(error.reason, BaseException) else error
        unsent = isinstance(reason, (socket.gaierror, ssl.SSLError)) or (
            isinstance(reason, OSError) and reason.errno in _NOT_THERE
        )
        raise (ConnectError if unsent else TransportError)(str(reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise TransportError(str(error) or type(error).__name__) from error
