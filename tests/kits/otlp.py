"""A collector of OpenTelemetry's spans: its protocol over HTTP, read with its own messages."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass
class SpanRecord:
    """One span as it came."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: dict[str, object]


@dataclass
class Collector:
    """What was sent so far; ``bodies`` as they came, unpacked."""

    url: str
    spans: list[SpanRecord] = field(default_factory=list)
    resources: list[dict[str, object]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    #: How often it was asked, and whether it answers with an error.
    asked: int = 0
    refuses: bool = False
    #: While set, nobody is answered.
    stalled: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> list[SpanRecord]:
        return [span for span in self.spans if span.name == name]

    def below(self, parent: SpanRecord) -> list[SpanRecord]:
        return [span for span in self.spans if span.parent_id == parent.span_id]

    def take(self, body: bytes) -> None:
        """Keep what one request holds."""
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(_attributes(resource.resource.attributes))
            for scope in resource.scope_spans:
                for span in scope.spans:
                    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                    self.spans.append(SpanRecord(span.name, *ids, span.kind, _attributes(span.attributes)))


def _attributes(pairs: object) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in pairs:  # type: ignore[attr-defined]
        kind = pair.value.WhichOneof("value")
        found[pair.key] = getattr(pair.value, kind)
    return found


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    """One that listens on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            while kept.stalled.is_set():
                stopping.wait(0.05)
                if stopping.is_set():
                    return
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            kept.asked += 1
            if kept.refuses:
                self.send_error(400)
                return
            kept.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    stopping = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
