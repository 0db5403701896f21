"""A master that says what a test tells it to say, over real HTTP."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: object


@dataclass
class Reply:
    """An answer: ``body`` is sent as JSON, bytes as they are, a list of ``lines`` as a stream."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[object] | None = None
    #: The connection is closed in the middle of the stream; without one, before anything is said.
    broken: bool = False


def refused(status: int, message: str) -> Reply:
    """An error as the API words it."""
    return Reply({"error": {"code": 3, "reason": "X", "error": message}}, status)


Answer = Callable[[Asked], Reply]


class PretendMaster:
    """Answers by (method, path); what was asked is kept in ``asked``."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer] = {}
        self.asked: list[Asked] = []
        self.on("GET", "/info", {"version": "0.38.1"})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def on(self, method: str, path: str, *replies: object) -> None:
        """Answer with these in turn, the last one for ever; what is no Reply is a body."""
        ready = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]

        def answer(asked: Asked) -> Reply:
            return ready.pop(0) if len(ready) > 1 else ready[0]

        self.answers[method, path] = answer

    def sent(self, method: str, path: str) -> list[Asked]:
        """The requests of that kind."""
        return [one for one in self.asked if (one.method, one.path) == (method, path)]

    @contextlib.contextmanager
    def running(self) -> Iterator[PretendMaster]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        master = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                parts = urlsplit(self.path)
                body = json.loads(raw) if raw else None
                asked = Asked(self.command, parts.path, parse_qs(parts.query), dict(self.headers), body)
                master.asked.append(asked)
                answer = master.answers.get((self.command, parts.path))
                self.reply(answer(asked) if answer else refused(404, f"no route {parts.path}"))

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_one

            def reply(self, reply: Reply) -> None:
                if reply.broken and reply.lines is None:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.lines is not None:
                    self.stream(reply)
                    return
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body or {}).encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self, reply: Reply) -> None:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in reply.lines or []:
                    data = json.dumps(line).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                if reply.broken:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *arguments: object) -> None:
                """Quiet."""

        return Handler
