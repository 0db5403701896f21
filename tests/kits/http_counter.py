"""What a browser asks of a master: a proxy between the two that counts requests, those of a shared worker as well.

    with counting(site.url, prefix="/cluster") as between:
        page.goto(f"{between.url}/ui/")
        between.paths  # "/ui/", "/api/v1/me", ...

It passes on bytes as they come, so that a stream is one; a prefix is taken away, as a reverse proxy does.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_REQUEST = re.compile(rb"(?:GET|POST|PUT|PATCH|DELETE) (/\S*) HTTP/1\.1\r\n")


class HttpCounter:
    """Between browsers and one master."""

    def __init__(self, target: str, prefix: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._prefix = prefix
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        #: Of all requests so far, in their order, without the prefix.
        self.paths: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.getsockname()[1])

    @property
    def url(self) -> str:
        """Where browsers find the master."""
        return f"http://127.0.0.1:{self.port}{self._prefix}"

    def streams(self) -> int:
        """How many live streams were asked for."""
        return sum(path.startswith("/api/v1/events?") for path in self.paths)

    def close(self) -> None:
        """End what is open."""
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, requests: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(self._counted(data) if requests else data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _counted(self, data: bytes) -> bytes:
        """A browser sends a request's line in one piece with what follows."""
        prefix = self._prefix.encode()
        if prefix:
            data = re.sub(rb"^((?:GET|POST|PUT|PATCH|DELETE) )" + re.escape(prefix) + rb"(?=/)", rb"\1", data)
        self.paths += [path.decode() for path in _REQUEST.findall(data)]
        return data


@contextmanager
def counting(target: str, prefix: str = "") -> Iterator[HttpCounter]:
    """Until the block ends."""
    between = HttpCounter(target, prefix)
    try:
        yield between
    finally:
        between.close()
