"""What anyone can ask for who asks for a websocket: each handshake is answered and ends, and costs the log little."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from tenax.config.master import FeatureSwitch
from tenax.master.api.http import protocol
from tests.kits.api import Api, bearer
from tests.kits.master.server import Peer, serving
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt

ASKED = b"Host: m\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
LONG = b"a" * protocol.MAX_UPGRADE_LINE


@pytest.fixture
async def port(api: Api) -> AsyncIterator[int]:
    async with serving(api) as served:
        yield served


def handshake(path: bytes, fields: bytes = KEY, method: bytes = b"GET") -> bytes:
    return method + b" " + path + b" HTTP/1.1\r\n" + ASKED + fields + b"\r\n"


async def answer_to(port: int, *parts: bytes) -> bytes:
    peer = await Peer.of(port)
    for part in parts:
        await peer.send(part)
    answer = await peer.until_end()
    peer.close()
    return answer


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (handshake(b"/stream?" + LONG), 431),
        (handshake(b"/stream", KEY + b"X: " + LONG + b"\r\n"), 431),
        (handshake(b"/stream", KEY + LONG + b": x\r\n"), 431),
        # As long as a line may be.
        (handshake(b"/stream", KEY + b"X: " + LONG[5:] + b"\r\n"), 401),
        (handshake(b"/stream", KEY + b"X: " + LONG[4:] + b"\r\n"), 431),
        (handshake(b"/" + LONG[-len(LONG) + len("GET / HTTP/1.1\r\n") :]), 403),
        (handshake(b"/" + LONG[-len(LONG) + len("GET / HTTP/1.1\r\n") - 1 :]), 431),
        (handshake(b"/stream", KEY + b"Content-Length: 2\r\n") + b"ab", 400),
        (handshake(b"/stream", KEY + b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n", 400),
        (handshake(b"/stream", method=b"POST"), 405),
        (handshake(b"/stream", b""), 400),
        (handshake(b"/stream", KEY + KEY), 400),
        (handshake(b"/stream"), 401),
        (handshake(b"/nothing"), 403),
    ],
)
async def test_every_handshake_is_answered_and_ends(port: int, asked: bytes, status: int) -> None:
    """Also one that the library of websockets does not read to its end."""
    answer = await answer_to(port, asked)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer


@pytest.mark.parametrize("framing", [b"Content-Length: 900\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_a_handshake_whose_body_does_not_end_is_left(
    port: int, framing: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads a body of one, and so it has the time of a head."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    await answer_to(port, handshake(b"/stream", KEY + framing))


async def test_a_handshake_that_is_not_answered_is_left(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason, and though nobody has an eye on it but the clock."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    monkeypatch.setattr(protocol.BoundedWebSocket, "data_received", lambda *_: None)
    monkeypatch.setattr(protocol.BoundedHttp, "_refuse", lambda *_: None)
    await answer_to(port, handshake(b"/stream"))


async def test_a_handshake_while_something_is_answered_is_refused(api: Api, port: int) -> None:
    """Two would write to one connection, and nobody would see how much of the first waits for its reader."""
    held = asyncio.Event()
    answered = api.master.single_flight.share

    async def slow(*what: object) -> object:
        await held.wait()
        return await answered(*what)  # type: ignore[arg-type]

    api.master.single_flight.share = slow  # type: ignore[method-assign, assignment]
    await answer_to(port, b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: m\r\n\r\n" + handshake(b"/stream"))
    held.set()


async def test_a_websocket_that_nobody_reads_ends(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end, too, waits for a reader no longer than a head for its writer."""
    api.master.settings = api.master.settings.model_copy(
        update={"feature_switches": (FeatureSwitch.STREAMING_UPDATES,)}
    )
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    made: asyncio.Queue[protocol.BoundedWebSocket] = asyncio.Queue()
    connected = protocol.BoundedWebSocket.connection_made

    def noted(websocket: protocol.BoundedWebSocket, transport: asyncio.BaseTransport) -> None:
        connected(websocket, transport)
        made.put_nowait(websocket)

    monkeypatch.setattr(protocol.BoundedWebSocket, "connection_made", noted)
    async with serving(api) as port:
        peer = await Peer.of(port)
        await peer.send(handshake(b"/stream", KEY + b"Authorization: Bearer %s\r\n" % bearer(api.user).encode()))
        assert (await peer.answer()).startswith(b"HTTP/1.1 101")
        websocket = await made.get()
        ended = asyncio.Event()
        websocket.on_gone = ended.set
        websocket.transport.write(bytes(32 << 20))
        websocket.keepalive_timeout()
        await ended.wait()
        peer.close()


@pytest.mark.parametrize("path", ["/stream", "/agents/session"])
@pytest.mark.parametrize("told", [b"", b"Authorization: Bearer tnxs_nothing\r\n"])
async def test_a_refused_handshake_leaves_no_traceback(
    port: int, path: str, told: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is sent once: a second time was an error, with kilobytes of log for each."""
    with caplog.at_level(logging.WARNING):
        answer = await answer_to(port, handshake(path.encode(), KEY + told))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"www-authenticate: Bearer" in answer
    assert answer.count(b'{"message":') == 1
    assert not caplog.records


async def test_a_stream_that_is_not_there_leaves_no_traceback(
    api: Api, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does an address that nothing answers at."""
    known = b"Authorization: Bearer %s\r\n" % bearer(api.user).encode()
    with caplog.at_level(logging.WARNING):
        answer = await answer_to(port, handshake(b"/stream", KEY + known))
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"streaming_updates" in answer
        assert (await answer_to(port, handshake(b"/nothing"))).startswith(b"HTTP/1.1 403 ")
    assert not caplog.records


async def test_who_gets_in(api: Api) -> None:
    """By each credential that there is: a person's login, as header and as cookie, their access token, an agent's;
    a task's is as good as its owner's, and a cookie opens none but for the master's own page."""
    switches = (FeatureSwitch.STREAMING_UPDATES,)
    api.master.settings = api.master.settings.model_copy(update={"feature_switches": switches})
    async with api.master.db.transaction() as conn:
        agent = await add_agent(conn, "a1")
        attempt = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    made = await api.user.post("/api/v1/tokens", {"userId": 2, "lifespan": "24h"})
    assert made.status_code == 200, made.text
    login, access = bearer(api.user), made.json()["token"]
    task = bearer(await api.task(attempt.allocation_id))
    asks = {
        f"Authorization: Bearer {login}": (101, 401, 200),
        f"Authorization: Bearer {access}": (101, 401, 200),
        f"Cookie: auth={login}\r\nOrigin: http://m": (101, 401, 200),
        f"Cookie: auth={login}": (403, 403, 200),
        f"Cookie: auth={login}\r\nOrigin: https://elsewhere.test": (403, 403, 200),
        f"Authorization: Bearer {agent}": (401, 101, 401),
        f"Cookie: auth={agent}\r\nOrigin: http://m": (401, 101, 401),
        f"Grpc-Metadata-x-allocation-token: Bearer {task}": (101, 401, 200),
        "Authorization: Basic YTpi": (401, 401, 401),
        "X: none": (401, 401, 401),
    }
    async with serving(api) as port:
        for field, statuses in asks.items():
            for path, status in zip(("/stream", "/agents/session"), statuses, strict=False):
                peer = await Peer.of(port)
                await peer.send(handshake(path.encode(), KEY + f"{field}\r\n".encode()))
                answer = await peer.answer()
                peer.close()
                assert answer.startswith(b"HTTP/1.1 %d" % status), (path, field[:60], answer[:200])
            for path, status in (("/metrics", 200), ("/debug/prom/metrics", statuses[2])):
                peer = await Peer.of(port)
                await peer.send(f"GET {path} HTTP/1.1\r\nHost: m\r\n{field}\r\n\r\n".encode())
                answer = await peer.answer()
                peer.close()
                assert answer.startswith(b"HTTP/1.1 %d" % status), (path, field[:60], answer[:200])
