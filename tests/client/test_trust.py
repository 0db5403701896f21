"""Whose certificate the SDK trusts, and for which name."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator

import httpx2
import pytest

from tenax.client.connection import plain_http, transport
from tenax.client.connection.address import Unreachable
from tenax.client.connection.session import Session
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


@pytest.fixture
def url() -> Iterator[str]:
    """Of a master with that certificate."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


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
        with pytest.raises(Unreachable, match="DET_MASTER_CERT_FILE"):
            session.get_anonymously("/info")
    with Session(url, certificate="noverify", retry_for_s=0.0) as session:
        assert session.get_anonymously("/info") == {}
