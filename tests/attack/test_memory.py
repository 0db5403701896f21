"""What fills the master's memory: bodies that are held, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import base64
import random
import socket
from collections.abc import AsyncIterator

import pytest
from asyncpg import Connection
from httpx2 import Response

from tenax.master.api.http import held_bodies, protocol
from tenax.master.store.tasks import contexts
from tests.kits.api import Api, Client, bearer
from tests.kits.master.attempts import Running, running
from tests.kits.master.experiments import create, file
from tests.kits.master.server import Peer, serving

#: More than the system takes for a reader that reads nothing.
LARGE = 16 << 20


@pytest.fixture
async def port(api: Api) -> AsyncIterator[int]:
    async with serving(api) as served:
        yield served


async def large_code(api: Api) -> int:
    content = random.Random(1).randbytes(LARGE)
    sent = {**file("large.bin"), "content": base64.b64encode(content).decode()}
    number: int = (await create(api, modelDefinition=[sent]))["experiment"]["id"]
    return number


async def asking(api: Api, port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Somebody who asks, and reads nothing of the answer but what comes by itself."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
    head = f"GET {path} HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer {bearer(api.user)}\r\n\r\n"
    writer.write(head.encode())
    return reader, writer


async def cut_off(reader: asyncio.StreamReader) -> int:
    """How much came until the end."""
    taken = 0
    try:
        while part := await reader.read(65536):
            taken += len(part)
    except ConnectionError:
        pass
    return taken


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> asyncio.Semaphore:
    """Can be acquired once for each answer that was given up."""
    count = asyncio.Semaphore(0)
    give_up = protocol.BoundedHttp.give_up

    def counted(connection: protocol.BoundedHttp) -> None:
        give_up(connection)
        count.release()

    monkeypatch.setattr(protocol.BoundedHttp, "give_up", counted)
    return count


async def test_an_answer_that_nobody_reads_is_given_up(
    api: Api, port: int, given_up: asyncio.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its time; nothing of it is fetched long before it is read. Who reads has all of it."""
    fetched: list[int] = []
    part = contexts.part

    async def counted(conn: Connection, hash: str, offset: int, length: int) -> bytes:
        fetched.append(offset)
        return await part(conn, hash, offset, length)

    monkeypatch.setattr(contexts, "part", counted)
    path = f"/experiments/{await large_code(api)}/model_def"
    monkeypatch.setattr(protocol, "WRITE_S", 0.1)
    idle, idle_writer = await asking(api, port, path)
    await given_up.acquire()
    assert max(fetched) < LARGE * 3 // 4
    assert await cut_off(idle) < LARGE
    monkeypatch.setattr(protocol, "WRITE_S", 60.0)
    reading, reading_writer = await asking(api, port, path)
    await reading.readuntil(b"\r\n\r\n")
    await reading.readexactly(LARGE)
    for writer in (idle_writer, reading_writer):
        writer.close()


async def test_answers_that_wait_have_a_bound_together(
    api: Api, port: int, given_up: asyncio.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has waited longest is given up first, as much as is needed."""
    path = f"/experiments/{await large_code(api)}/model_def"
    monkeypatch.setattr(protocol, "WAITING_S", 0.0)
    monkeypatch.setattr(protocol, "WAITING_BYTES", 0)
    asked = [await asking(api, port, path) for _ in range(3)]
    for _ in asked:
        await given_up.acquire()
    for reader, writer in asked:
        assert await cut_off(reader) < LARGE
        writer.close()


async def test_large_bodies_have_a_bound_together(api: Api, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it one waits for another to end, of one caller and in all, and is then told to come again."""
    monkeypatch.setattr(held_bodies, "MAX_BODY_BYTES", 1 << 20)
    monkeypatch.setattr(held_bodies, "WAIT_S", 0.3)
    size = held_bodies.MAX_BODY_BYTES * 3 // 4
    body = b'{"config": "' + b"x" * (size - 14) + b'"}'
    head = b"PATCH /api/v1/experiments/1 HTTP/1.1\r\nHost: m\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
    head += b"Content-Length: %d\r\n\r\n"

    async def sent(client: Client, part: bytes) -> Peer:
        peer = await Peer.of(port)
        await peer.send(head % (bearer(client).encode(), len(body)) + part)
        return peer

    first = await sent(api.user, body[:-1])
    refused = await (await sent(api.user, body)).until_end()
    assert refused.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in refused.lower()
    # Somebody else has a place; and so has the next, when there is one again.
    assert (await (await sent(api.admin, body)).until_end()).startswith(b"HTTP/1.1 404")
    monkeypatch.setattr(held_bodies, "WAIT_S", 30.0)
    waiting = await sent(api.user, body)
    await first.send(body[-1:])
    assert (await first.until_end()).startswith(b"HTTP/1.1 404")
    assert (await waiting.until_end()).startswith(b"HTTP/1.1 404")


async def test_a_body_that_is_held_has_a_limit(api: Api) -> None:
    """Far below that of code, which goes to a file."""
    reply = await api.user.ask("PATCH", "/api/v1/experiments/1", b" " * (held_bodies.MAX_BODY_BYTES + 1))
    assert reply.status_code == 413
    assert "32 MiB" in reply.text


async def gathered(run: Running, number: int, data: object, peers: int = 1) -> Response:
    body = {"requestUuid": f"u{number}", "numPeers": peers, "data": data}
    return await run.task.post(f"{run.path}/all_gather", body)


async def test_gatherings_without_end(api: Api) -> None:
    """What one member brings has a size, and so has what all bring together; an attempt keeps the last few."""
    run = await running(api)
    for peers, least in ((1, 1 << 20), (100, 1 << 16)):
        reply = await gathered(run, 0, {"a": "x" * (least + (1 << 15))}, peers)
        assert (reply.status_code, "are taken" in reply.text) == (400, True), reply.text[:300]
    assert (await gathered(run, 0, {"a": "x" * 1_000_000})).status_code == 200
    for number in range(1, 12):
        reply = await gathered(run, number, {"n": number})
        assert (reply.status_code, reply.json()) == (200, {"data": [{"n": number}]}), reply.text[:300]
        # An answer that was lost is asked for again.
        assert (await gathered(run, number, {})).json() == {"data": [{"n": number}]}
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from all_gathers") < 6
