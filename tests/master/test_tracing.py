"""Spans of a real master process, at a collector of OpenTelemetry's protocol."""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.client.connection.session import Session
from tenax.config.master import TracingSettings
from tenax.errors import InvalidInput
from tenax.master.observability import tracing
from tests.kits.machine import wait_for
from tests.kits.master.process import MasterProcess
from tests.kits.otlp import Collector, SpanRecord, collector

#: Of OpenTelemetry: what answers a request, and what makes one.
SERVER, CLIENT = 2, 3
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans() -> Iterator[Collector]:
    with collector() as kept:
        yield kept


def started(directory: Path, url: str, spans: Collector, *arguments: str, **settings: str) -> MasterProcess:
    """A master that traces, and sends soon: by itself OpenTelemetry's SDK waits five seconds with each batch."""
    settings = {"TRACING__ENDPOINT": spans.url, "TRACING__SAMPLE": "1", **settings}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        return MasterProcess(directory, url, "--port", "0", *arguments, **settings)


def ask(port: object, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, {name.lower(): value for name, value in reply.headers.items()}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {name.lower(): value for name, value in error.headers.items()}


def about(process: MasterProcess, request: str) -> list[dict[str, object]]:
    """The lines of a request, so far."""
    return [line for line in process.lines() if line.get("request") == request]


def asked(spans: Collector, request: str) -> list[SpanRecord]:
    """The spans of a request, so far."""
    return [span for span in spans.spans if span.attributes.get("tenax.request") == request]


async def test_a_request_is_a_span_below_its_caller(database_url: str, tmp_path: Path, spans: Collector) -> None:
    """What it asked of the database is below it; passes of loops are spans, too; no secret is in any."""
    process = started(tmp_path, database_url, spans, "--log-level", "debug")
    try:
        port = process.wait_for("serving")["port"]
        password = json.loads((tmp_path / "master" / "credentials.json").read_text())["password"]
        status, headers = ask(
            port,
            "/api/v1/auth/login?secret=in-the-query",
            {"username": "admin", "password": password},
            traceparent=f"00-{TRACE}-{CALLER}-01",
            **{"X-Request-ID": "my-login.1", "Content-Type": "application/json"},
        )
        assert status == 200
        assert headers["x-request-id"] == "my-login.1"
        (login,) = wait_for(lambda: spans.named("POST /api/v1/auth/login"), "the span of the login")
        assert (login.trace_id, login.parent_id, login.kind) == (TRACE, CALLER, SERVER)
        assert login.attributes["http.response.status_code"] == 200
        assert login.attributes["tenax.request"] == "my-login.1"
        below = wait_for(lambda: spans.below(login), "what it asked of the database")
        assert {(span.kind, span.attributes["db.system.name"]) for span in below} == {(CLIENT, "postgresql")}
        (scheduling, *_) = wait_for(lambda: spans.named("loop scheduling"), "a pass of a loop")
        assert wait_for(lambda: spans.below(scheduling), "what the pass did")
        assert spans.resources[0]["service.name"] == "tenax-master"
        (line,) = wait_for(lambda: about(process, "my-login.1"), "the line of the login")
        assert (line["trace_id"], line["route"]) == (TRACE, "/api/v1/auth/login")
    finally:
        assert process.end() == 0
        process.close()
    sent = b"".join(spans.bodies)
    for secret in (password.encode(), b"in-the-query", database_url.encode()):
        assert secret not in sent


async def test_what_a_caller_says_of_its_trace_decides_nothing(
    database_url: str, tmp_path: Path, spans: Collector
) -> None:
    """Neither that it is to be kept nor which number it has; and nothing of it is in the log."""
    process = started(tmp_path, database_url, spans, TRACING__SAMPLE="0.5")
    try:
        port = process.wait_for("serving")["port"]
        for _ in range(60):
            assert ask(port, "/info", traceparent=f"00-{TRACE}-{CALLER}-00", tracestate="evil user=admin")[0] == 200
            assert ask(port, "/info", traceparent="00-evil-evil-01" * 100)[0] == 200

        def later() -> list[SpanRecord]:
            """What ends later is sent later."""
            assert ask(port, "/health")[0] == 200
            return spans.named("GET /health")

        wait_for(later, "a span after all of them")
        kept = [span for span in spans.named("GET /info") if span.trace_id == TRACE]
        assert 5 < len(kept) < 55
    finally:
        assert process.end() == 0
        process.close()
    assert "evil" not in "".join(process.said)


async def test_requests_of_one_connection_are_apart(database_url: str, tmp_path: Path, spans: Collector) -> None:
    """Sent in one packet: the second has neither the first's caller nor its trace."""
    process = started(tmp_path, database_url, spans, "--log-level", "debug")
    try:
        port = int(str(process.wait_for("serving")["port"]))
        password = json.loads((tmp_path / "master" / "credentials.json").read_text())["password"]
        with Session(f"http://127.0.0.1:{port}") as session:
            token = session.log_in("admin", password, remember=False)
        head = "GET /{} HTTP/1.1\r\nHost: x\r\nX-Request-ID: {}\r\n{}\r\n"
        first = head.format("api/v1/me", "first", f"Authorization: Bearer {token}\r\n")
        second = head.format("info", "second", "Connection: close\r\n")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall((first + second).encode())
            while connection.recv(65536):
                pass
        (known,), (anonymous,) = (
            wait_for(lambda name=name: asked(spans, name), f"the span of the {name}") for name in ("first", "second")
        )
        assert known.attributes["tenax.user"] == "admin"
        assert "tenax.user" not in anonymous.attributes
        assert anonymous.parent_id == ""
        assert anonymous.trace_id != known.trace_id
        (line,) = wait_for(lambda: about(process, "second"), "its line")
        assert "user" not in line
    finally:
        assert process.end() == 0
        process.close()


async def test_a_collector_that_refuses_is_said_seldom(database_url: str, tmp_path: Path, spans: Collector) -> None:
    """One line, not one for each batch."""
    spans.refuses = True
    process = started(tmp_path, database_url, spans)
    try:
        port = process.wait_for("serving")["port"]
        for _ in range(3):
            asked = spans.asked
            assert ask(port, "/info")[0] == 200
            wait_for(lambda asked=asked: spans.asked > asked or None, "another batch")
    finally:
        assert process.end() == 0
        process.close()
    lines = [line for line in process.lines() if str(line.get("logger", "")).startswith("opentelemetry")]
    assert len(lines) == 1


async def test_a_collector_that_is_away_costs_nothing(
    database_url: str, tmp_path: Path, spans: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers nobody: requests are answered as ever, and the master ends when it is asked to."""
    # Whoever waited for an answer would outlast this test.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
    spans.stalled.set()
    process = started(tmp_path, database_url, spans)
    try:
        port = process.wait_for("serving")["port"]
        for _ in range(50):
            assert ask(port, "/health")[0] == 200
    finally:
        assert process.end() == 0
        process.close()
    assert not spans.spans


async def test_whoever_asks_for_none_gets_none(database_url: str, tmp_path: Path, spans: Collector) -> None:
    """A share of 0 keeps none, whatever a caller says of its own."""
    process = started(tmp_path, database_url, spans, TRACING__SAMPLE="0")
    try:
        port = process.wait_for("serving")["port"]
        assert ask(port, "/info", traceparent=f"00-{TRACE}-{CALLER}-01")[0] == 200
    finally:
        assert process.end() == 0
        process.close()
    assert not spans.spans


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that brings it."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with (
        pytest.raises(InvalidInput, match=r"pip install 'tenax\[otel\]'"),
        tracing.tracing(TracingSettings(endpoint="http://127.0.0.1:4318")),
    ):
        pass


def test_nothing_is_loaded_where_nothing_is_traced() -> None:
    """And a span costs nothing."""
    with tracing.tracing(TracingSettings()), tracing.span("x", a__b=1) as span:
        span.set_attribute("a", 1)
        assert not tracing.is_on()
        assert tracing.ids() == {}
