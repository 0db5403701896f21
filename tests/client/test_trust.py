"""Whose certificate the SDK trusts, and for which name."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Optional, Type

import httpx2
import pytest

from tenax.client.connection import plain_http, transport
from tenax.client.connection.address import Unreachable
from tenax.client.connection.session import Session, SessionAborted
from tenax.client.task import MasterAway, TaskClient
from tests.kits.machine import ROOT

#: For master.test.
PEM = str(ROOT / "tests" / "kits" / "self_signed.pem")


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *told: object) -> None:
        """Nothing."""


@contextmanager
def _serving(context: Optional[ssl.SSLContext], answers: Type[_Answers] = _Answers) -> Iterator[str]:
    """The address of a master, without its scheme."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def context() -> ssl.SSLContext:
    """With that certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(PEM)
    return made


@pytest.fixture
def url(context: ssl.SSLContext) -> Iterator[str]:
    """Of a master with that certificate."""
    with _serving(context) as place:
        yield f"https://{place}"


@pytest.fixture(params=[httpx2, plain_http], ids=["httpx2", "plain_http"])
def carried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By either of what carries requests."""
    monkeypatch.setattr(transport, "httpx2", request.param)


@pytest.mark.usefixtures("carried")
def test_the_name_in_a_certificate_may_be_another_than_the_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is named; otherwise it is said that the name is wrong, and not that nobody vouches for it."""
    with Session(url, certificate=PEM, retry_for_s=0.0) as session:
        with pytest.raises(Unreachable, match="another name: set DET_MASTER_CERT_NAME"):
            session.get_anonymously("/info")
    monkeypatch.setenv("DET_MASTER_CERT_NAME", "master.test")
    with Session(url, certificate=PEM, retry_for_s=0.0) as session:
        assert session.get_anonymously("/info") == {}
    monkeypatch.setenv("DET_MASTER_CERT_NAME", "somebody.else")
    with Session(url, certificate=PEM, retry_for_s=0.0) as session:
        with pytest.raises(Unreachable, match="another name"):
            session.get_anonymously("/info")


@pytest.mark.usefixtures("carried")
def test_the_name_alone_is_no_reason_to_trust(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody the system trusts must vouch for it."""
    monkeypatch.setenv("DET_MASTER_CERT_NAME", "master.test")
    with Session(url, retry_for_s=0.0) as session:
        with pytest.raises(Unreachable, match=r"is not trusted .*DET_MASTER_CERT_FILE"):
            session.get_anonymously("/info")
    with Session(url, certificate="noverify", retry_for_s=0.0) as session:
        assert session.get_anonymously("/info") == {}


class _Silent(_Answers):
    """Closes each connection without an answer."""

    def do_GET(self) -> None:
        self.close_connection = True


class _KeepsPlainOut(_Answers):
    """Answers what comes without TLS as servers with TLS do."""

    def do_GET(self) -> None:
        self.send_error(400)


@pytest.mark.usefixtures("carried")
def test_an_address_without_the_tls_of_its_master_says_which_to_use(url: str) -> None:
    """At once, whatever is asked, and without sending a token anywhere."""
    with Session(url.replace("https", "http"), token="secret") as session:
        for ask in (session.get, session.post):
            with pytest.raises(Unreachable, match=f"answers with TLS: use {url} "):
                ask("/api/v1/me")


@pytest.mark.usefixtures("carried")
def test_an_address_with_tls_of_a_master_without_says_which_to_use() -> None:
    """And what that means."""
    with _serving(None) as place, Session(f"https://{place}", token="secret") as session:
        with pytest.raises(Unreachable, match=f"answers without TLS: use http://{place}, if passwords and tokens may"):
            session.get("/api/v1/me")


@pytest.mark.usefixtures("carried")
@pytest.mark.parametrize(("scheme", "answers"), [("http", _Silent), ("https", _Silent), ("https", _KeepsPlainOut)])
def test_another_scheme_is_said_only_where_it_is_established(scheme: str, answers: Type[_Answers]) -> None:
    """What merely breaks off, or answers without TLS that it wants it, is no reason to name another address."""
    with _serving(None, answers) as place, Session(f"{scheme}://{place}", retry_for_s=0.0) as session:
        with pytest.raises(Unreachable, match="No master answers"):
            session.get_anonymously("/info")


@pytest.mark.parametrize("with_tls", [True, False])
def test_a_task_is_given_the_address_to_use_too(context: ssl.SSLContext, *, with_tls: bool) -> None:
    """In the reason why its master is away."""
    scheme, other = ("http", "https") if with_tls else ("https", "http")
    with _serving(context if with_tls else None) as place:
        client = TaskClient(f"{scheme}://{place}", "secret")
        with pytest.raises(MasterAway, match=f"TLS: use {other}://{place}"):
            client.attempt("GET", "/info")
        client.close()


@pytest.mark.parametrize("package", [httpx2, plain_http])
def test_a_stream_within_tls_is_ended_from_another_thread(
    context: ssl.SSLContext, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads it is no longer held up by a master that is silent, and asks nothing more."""
    monkeypatch.setattr(transport, "httpx2", package)
    over = threading.Event()

    class Silent(_Answers):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"result": {"line": 1}}\n')
            over.wait(60)

    with _serving(context, Silent) as address:
        session = Session(f"https://{address}", token="t", certificate="noverify")
        lines = session.lines("/x")
        assert next(lines) == {"line": 1}
        threading.Timer(0.1, session.abort).start()
        with pytest.raises(SessionAborted):
            next(lines)
        with pytest.raises(SessionAborted):
            session.get("/x")
        over.set()
