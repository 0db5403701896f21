"""The live stream: held in masses, never read, asked for what is not one's own."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from tenax.master.reading.events import feed as feeds
from tenax.master.reading.events import ring
from tests.kits.api import Api, bearer
from tests.kits.master.follower import Page, following, request
from tests.kits.master.server import serving
from tests.kits.telemetry import Book


@pytest.fixture
def desk(api: Api) -> Book:
    return Book(api.master.db, api.master.intake)


async def test_streams_in_masses(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens more than a person needs is refused, and takes nobody else's place."""
    monkeypatch.setattr(feeds, "MAX_PER_USER", 3)
    async with serving(api) as port:
        pages = [following(port, bearer(api.user), "experiments") for _ in range(4)]
        for page in pages[:3]:
            assert (await page.__aenter__()).status == 200
        assert (await pages[3].__aenter__()).status == 429
        async with following(port, bearer(api.admin), "experiments") as other:
            assert other.status == 200
        for page in pages:
            await page.__aexit__(None, None, None)
        while api.master.feed.followers:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0)
        async with following(port, bearer(api.user), "experiments") as again:
            assert again.status == 200


async def test_a_stream_that_nobody_reads(api: Api) -> None:
    """Holds what waits for it, which is bounded, however much changes; read at last, it says to fetch everything."""
    async with serving(api) as port:
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
        page = Page(*await asyncio.open_connection(sock=opened, limit=4096))
        page.writer.write(request(bearer(api.user), "experiments").encode())
        feed = api.master.feed
        while not feed.followers:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0)
        (follower,) = feed._followers
        number = 0
        # Until the connection takes no more, and what waits has been dropped for it.
        while not follower.stale:
            number += 1
            feed._tell("experiment", number, ["experiments"], {"name": "x" * 4000})
            assert len(follower._waiting) <= ring.MAX_WAITING
            if number % 50 == 0:
                await asyncio.sleep(0)
        await page.begin("")
        assert await page.until("reset") == {"topics": ["experiments"]}
        page.writer.close()


async def test_what_concerns_somebody_else(api: Api, desk: Book) -> None:
    """Is never sent, whoever asks: not to another user, nor to an administrator."""
    experiment = await desk.experiment()
    async with (
        serving(api) as port,
        following(port, bearer(api.user), "users/1", "users/2") as mallory,
        following(port, bearer(api.admin), "users/1", "users/2") as owner,
    ):
        hello = await mallory.hello()
        assert list(hello["refused"]) == ["users/1"]
        assert list((await owner.hello())["refused"]) == ["users/2"]
        async with desk.database.transaction() as conn:
            await conn.execute("update experiments set archived = true where id = $1", experiment)
        await owner.change("experiment", experiment, archived=True)
        async with desk.database.transaction() as conn:
            await conn.execute("update experiments set owner_id = 2, archived = false where id = $1", experiment)
        change = await mallory.change("experiment", experiment)
        assert change["archived"] is False


async def test_positions_and_topics_without_end(api: Api) -> None:
    """Are refused before anything is looked up; no other site may read the stream with its visitor's cookie."""
    for query in (
        {"topic": "experiments", "cursor": "9" * 65},
        {"topic": "tasks/" + "x" * 300},
        {"topic": [f"experiments/{number}" for number in range(1, 1000)]},
        {"topic": "experiments/99999999999999999999"},
        {"topic": "experiments/1;drop table users"},
        {"topic": "experiments\r\nx: y"},
        {"topic": "tasks/a\nevent: end"},
    ):
        assert (await api.user.get("/api/v1/events", **query)).status_code == 400
    assert (await api.nobody.get("/api/v1/events", topic="experiments")).status_code == 401
    async with serving(api) as port, following(port, bearer(api.user), "experiments") as page:
        await page.hello()
        assert not [name for name in page.headers if name.startswith("access-control")]


async def test_a_name_that_ends_an_event(api: Api, desk: Book) -> None:
    """Stays a name: what people write is JSON in one line of the stream."""
    experiment = await desk.experiment()
    name = "x\n\nevent: end\ndata: {}\r\rid: 1\u2028"
    async with serving(api) as port, following(port, bearer(api.user), "experiments") as page:
        await page.hello()
        async with desk.database.transaction() as conn:
            await conn.execute("update experiment_documents set name = $2 where experiment_id = $1", experiment, name)
        sent = await page.change("experiment", experiment)
        assert sent["name"] == name
        assert json.dumps(sent)
