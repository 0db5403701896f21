"""What anyone who reaches the port can send: none of it freezes the master, fills it, or keeps others out.

The watchdog of the tests (`tests.kits.watchdog`) fails whatever holds the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.config.master import ConnectionSettings, TlsSettings
from tenax.errors import UserError
from tenax.master.api.http import edge, protocol, server
from tenax.master.api.http.server import Gate
from tests.kits.api import Api, bearer
from tests.kits.master.server import Peer, serving

GET = b"GET /info HTTP/1.1\r\nHost: master\r\n"
CERTIFICATE = Path(__file__).parents[1] / "kits" / "self_signed.pem"
LOGIN = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: master\r\n"


@pytest.fixture
async def port(api: Api) -> AsyncIterator[int]:
    async with serving(api) as served:
        yield served


async def answer_to(port: int, *parts: bytes) -> bytes:
    peer = await Peer.of(port)
    for part in parts:
        await peer.send(part)
    answer = await peer.until_end()
    peer.close()
    return answer


async def answers(port: int) -> None:
    """The master serves others."""
    answer = await answer_to(port, GET + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer


@pytest.mark.parametrize(
    "fields",
    [
        [b"Cookie: " + b"a" * 160_000],
        [b"Cookie: " + b"a=1; " * 30_000],
        [b"X: " + b"a" * protocol.HEAD_BYTES],
        [b"X%d: a" % number for number in range(protocol.HEAD_FIELDS)],
    ],
)
async def test_a_large_head_is_refused(port: int, fields: list[bytes]) -> None:
    """By its size, or by the number of its fields; the answer says how much is taken."""
    answer = await answer_to(port, GET + b"\r\n".join(fields) + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"32 KiB" in answer
    await answers(port)


async def test_a_head_that_does_not_end_is_refused(port: int) -> None:
    """Before it is complete: neither an address nor a field, nor the trailers of a body, grow without a bound."""
    many = [b"a" * 8192] * 5
    for parts in ([b"GET /", *many], [GET + b"X: ", *many], [GET, *[b"X: " + part + b"\r\n" for part in many]]):
        assert (await answer_to(port, *parts)).startswith(b"HTTP/1.1 431")
    chunked = LOGIN + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: "
    await answer_to(port, chunked, *many * 20)
    await answers(port)


@pytest.mark.parametrize("cookie", ['a="' + "\\" * 30_000 + '"', "a=1;" * 7500, "=" * 30_000, '"' * 30_000])
async def test_no_cookie_takes_long(api: Api, cookie: str) -> None:
    """Only ours is looked for; what would take a parser seconds is passed over."""
    assert (await api.client({"Cookie": cookie}).get("/info")).status_code == 200
    for around in (f"{cookie}; auth={bearer(api.user)}", f"auth={bearer(api.user)}; {cookie}"):
        assert (await api.client({"Cookie": around}).get("/api/v1/me")).status_code == 200


async def test_a_long_query_takes_no_long(api: Api) -> None:
    """It has a limit of its own below that of heads."""
    for path, status in (("/api/v1/master?" + "aB&" * 10_000, 400), ("/api/v1/master?" + "aB=1&" * 1900, 200)):
        assert (await api.nobody.ask("GET", path)).status_code == status
    assert (await api.nobody.ask("GET", "/" + "api/" * 7000)).status_code == 404


async def test_the_contract_is_made_beside_the_loop(api: Api) -> None:
    """Anyone may ask for it, and making it takes most of a second."""
    vars(api.app.state)["_state"].pop("openapi_json", None)
    api.app.openapi_schema = None
    assert (await api.nobody.get("/api/v1/openapi.json")).json()["paths"]


@pytest.mark.parametrize("path", ["/api/v1/auth/login", "/login", "/agents/join"])
async def test_whoever_is_unknown_sends_little(api: Api, path: str) -> None:
    """64 KiB, which is more than any name and password have; whoever is known sends as much as ever."""
    body = json.dumps({"username": "a", "password": "b" * edge.UNKNOWN_BODY_BYTES}).encode()
    reply = await api.nobody.post(path, body)
    assert reply.status_code == 413
    assert "64 KiB" in reply.text
    assert (await api.user.post("/api/v1/experiments", {"config": "x" * edge.UNKNOWN_BODY_BYTES})).status_code == 400


async def test_a_body_is_not_read_before_it_is_known_who_sends_it(port: int) -> None:
    """The refusal comes while the body is under way."""
    peer = await Peer.of(port)
    await peer.send(b"POST /api/v1/experiments HTTP/1.1\r\nHost: m\r\nContent-Length: 90000000\r\n\r\n{")
    assert (await peer.answer()).startswith(b"HTTP/1.1 401")
    peer.close()


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /info HT",
        GET + b"X: a",
        GET + b"\r\n" + GET,
        LOGIN + b"Content-Length: 10\r\n\r\n{",
        LOGIN + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        b"POST /api/v1/experiments HTTP/1.1\r\nHost: m\r\nContent-Length: 90000000\r\n\r\n{",
    ],
)
async def test_whoever_does_not_go_on_is_left(port: int, beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a head, of a body, of a body that nobody reads any more, and before any of them."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    monkeypatch.setattr(edge, "BODY_S", 0.2)
    await answer_to(port, beginning)


async def test_who_sends_a_byte_now_and_then_is_left(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is when the whole has arrived."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    monkeypatch.setattr(edge, "BODY_S", 0.2)
    for beginning, more in ((GET, b"X: a\r\n"), (LOGIN + b"Content-Length: 60000\r\n\r\n", b" "), (b"", b"\r\n")):
        peer = await Peer.of(port)
        await peer.send(beginning)
        ended = asyncio.create_task(peer.until_end())
        while not ended.done():
            await asyncio.wait([ended], timeout=0.02)
            try:
                await peer.send(more)
            except ConnectionError:
                break
        await ended
        peer.close()


async def test_a_slow_upload_of_someone_who_is_known_arrives(
    api: Api, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives at a fair rate may take as long as it needs."""
    monkeypatch.setattr(edge, "BODY_S", 0.3)
    body = json.dumps({"config": "x" * 200_000}).encode()
    head = b"POST /api/v1/experiments HTTP/1.1\r\nHost: m\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
    peer = await Peer.of(port)
    # The first part with the head: until it is there the time is that of one who sends nothing.
    await peer.send(head % bearer(api.user).encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body[:20_000])
    for place in range(20_000, len(body), 20_000):
        await peer.send(body[place : place + 20_000])
        await asyncio.sleep(0.05)
    assert (await peer.until_end()).startswith(b"HTTP/1.1 400")


async def test_thousands_of_requests_in_one_piece_are_refused(port: int) -> None:
    """Each costs as much as one that waits for its answer; the connection ends, and others are served."""
    await answer_to(port, (GET + b"\r\n") * 5000)
    await answers(port)
    polite = await answer_to(port, (GET + b"\r\n") * 4 + GET + b"Connection: close\r\n\r\n")
    assert polite.count(b"HTTP/1.1 200") == 5


async def test_connections_of_an_address_are_bounded(api: Api) -> None:
    """One too many is closed without a word; when another ends there is room again, for websockets, too."""
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    api.master.settings = api.master.settings.model_copy(
        update={"connections": ConnectionSettings(most=16, most_per_address=8)}
    )
    async with serving(api) as port:
        for _ in range(3):
            peers = [await Peer.of(port) for _ in range(8)]
            for peer in peers:
                await peer.send(GET + b"\r\n")
                assert (await peer.answer()).startswith(b"HTTP/1.1 200")
            assert await answer_to(port) == b""
            for peer in peers:
                await peer.send(b"GET /agents/session HTTP/1.1\r\nHost: m\r\n" + upgrade + key)
            for peer in peers:
                assert b"401" in await peer.until_end() or b"403" in await peer.until_end()
                peer.close()


def test_addresses_are_counted_by_place() -> None:
    """A machine has 64 bits of IPv6 to itself, and an address of IPv4 may come in the clothes of IPv6."""
    gate = Gate(4, 2)
    assert [gate.admit(address) for address in ("2001:db8::1", "2001:db8::2", "2001:db8::3")] == [True, True, False]
    assert [gate.admit(address) for address in ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1")] == [True, True, False]
    assert not gate.admit("10.0.0.2")
    gate.leave("2001:db8::9")
    assert gate.admit("10.0.0.2")


async def _greeted(port: int, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of TLS, tried until a handshake had its time: on a busy machine that is short."""
    while True:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            return await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def test_a_handshake_of_tls_has_a_time_and_counts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects and says nothing is left, and has a place among the connections meanwhile."""
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.2)
    tls = TlsSettings(cert=CERTIFICATE, key=CERTIFICATE)
    limits = ConnectionSettings(most=16, most_per_address=8)
    api.master.settings = api.master.settings.model_copy(update={"tls": tls, "connections": limits})
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with serving(api) as port:
        for _ in range(3):
            silent = [await Peer.of(port) for _ in range(8)]
            for peer in silent:
                await peer.until_end()
                peer.close()
        reader, writer = await _greeted(port, context)
        writer.write(GET + b"Connection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


def test_a_master_that_could_serve_nobody_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system lets it open few files, every connection would be closed at once."""
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (128, 128))
    monkeypatch.setattr(server.resource, "setrlimit", lambda *_: None)
    with pytest.raises(UserError, match=r"128 files at once, and needs 320 at least.*ulimit -n"):
        server.gate_for(ConnectionSettings())
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (128, 400))
    gate = server.gate_for(ConnectionSettings())
    assert [gate.admit(f"10.0.0.{number}") for number in range(145)] == [True] * 144 + [False]
