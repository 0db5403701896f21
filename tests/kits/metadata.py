"""Doubles of clouds' metadata services, on this machine: what they say of their machine is set by the test.

    with aws_metadata() as service:
        service.says["spot/instance-action"] = '{"action": "terminate", "time": "..."}'

Each is as strict as the real one: no answer without the token, or the header, that it asks for.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.kits.ports import free_port


class MetadataDouble:
    """What it says, by question; what is missing is answered with 404."""

    def __init__(self, says: dict[str, str]) -> None:
        self.url = ""
        self.says = dict(says)
        #: Answered to everything while set.
        self.fails = 0
        #: How often each question was answered.
        self.asked: dict[str, int] = {}
        self.changed = threading.Condition()
        self.over = False

    def say(self, question: str, text: str | None) -> None:
        """From now on; None: nothing."""
        with self.changed:
            if text is None:
                self.says.pop(question, None)
            else:
                self.says[question] = text
            self.changed.notify_all()

    def interrupt(self, within_s: float) -> None:
        """As AWS does it: a spot machine is taken back."""
        at = datetime.fromtimestamp(time.time() + within_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.say("spot/instance-action", json.dumps({"action": "terminate", "time": at}))

    def note(self, question: str) -> None:
        with self.changed:
            self.asked[question] = self.asked.get(question, 0) + 1
            self.changed.notify_all()

    def until_asked(self, question: str, times: int) -> None:
        """Wait until it was answered so often."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.asked.get(question, 0) >= times, 60), self.asked


class _Handler(BaseHTTPRequestHandler):
    double: MetadataDouble

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def answer(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class _Aws(_Handler):
    def do_PUT(self) -> None:
        self.double.note("token")
        its_time = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.double.fails:
            return self.answer(self.double.fails)
        good = self.path == "/latest/api/token" and its_time.isdigit() and 1 <= int(its_time) <= 21600
        return self.answer(200, f"token-{self.double.says['token']}") if good else self.answer(400)

    def do_GET(self) -> None:
        question = self.path.removeprefix("/latest/meta-data/")
        if self.double.fails:
            self.answer(self.double.fails)
        elif self.headers.get("X-aws-ec2-metadata-token") != f"token-{self.double.says['token']}":
            self.answer(401)
        elif question in self.double.says:
            self.answer(200, self.double.says[question])
        else:
            self.answer(404)
        self.double.note(question)


class _Gcp(_Handler):
    def do_GET(self) -> None:
        parts, double = urlsplit(self.path), self.double
        question, query = parts.path.removeprefix("/computeMetadata/v1/"), parse_qs(parts.query)
        if double.fails:
            self.answer(double.fails)
        elif self.headers.get("Metadata-Flavor") != "Google":
            self.answer(403)
        else:
            with double.changed:
                known = query.get("last_etag", [""])[0]
                if query.get("wait_for_change") == ["true"]:
                    limit = float(query["timeout_sec"][0])
                    double.changed.wait_for(lambda: double.over or _tag(double, question) != known, limit)
                text, tag = double.says.get(question), _tag(double, question)
            if text is None:
                self.answer(404)
            else:
                self.answer(200, text, {"Metadata-Flavor": "Google", "ETag": tag})
        double.note(question)


def _tag(double: MetadataDouble, question: str) -> str:
    return f"tag-{double.says.get(question)}"


@contextmanager
def aws_metadata(address: tuple[str, int] | None = None) -> Iterator[MetadataDouble]:
    """Of a machine to which nothing is going to happen."""
    with _serving(MetadataDouble({"token": "1", "events/maintenance/scheduled": "[]"}), _Aws, address) as double:
        yield double


@contextmanager
def gcp_metadata() -> Iterator[MetadataDouble]:
    """Of a machine to which nothing is going to happen."""
    says = {"instance/preempted": "FALSE", "instance/maintenance-event": "NONE"}
    with _serving(MetadataDouble(says), _Gcp) as double:
        yield double


@contextmanager
def _serving(
    double: MetadataDouble, handler: type[_Handler], address: tuple[str, int] | None = None
) -> Iterator[MetadataDouble]:
    own = type("Handler", (handler,), {"double": double})
    server = ThreadingHTTPServer(address or ("127.0.0.1", free_port()), own)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="metadata")
    thread.start()
    double.url = f"http://{server.server_address[0]!s}:{server.server_port}"
    try:
        yield double
    finally:
        with double.changed:
            double.over = True
            double.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join()
