"""An agent of several masters: what is under way at one that does not answer is asked of another."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tenax.agent import link as links
from tenax.agent import session as sessions
from tenax.agent.container_reports import ContainerReports
from tenax.agent.link import Link, MasterUnreachable
from tenax.agent.orphaned import MasterContact
from tenax.agent.session import AgentSession, Face
from tenax.client.connection.http1 import ALIVE
from tenax.config.agent import AgentSettings
from tenax.wire.agents import Allowed
from tests.kits.ports import free_port

FACE = Face("box", "process", (), Allowed(), "place")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, path: str = "/x") -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def opened(*urls: str) -> AsyncIterator[Link]:
    """One that begins with the first of them."""
    names = (f"box{number}" for number in range(100))
    links_of = (Link(AgentSettings(master_url=",".join(urls), agent_id=name)) for name in names)
    link = next(link for link in links_of if link.at == 0)
    await link.open()
    try:
        yield link
    finally:
        await link.close()


async def test_what_is_under_way_goes_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it is known that the master hangs, by whatever noticed it."""
    monkeypatch.setattr(links, "_LEFT_S", 0.0)
    asked = asyncio.Event()

    async def hangs(_: web.Request) -> web.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def answers(_: web.Request) -> web.Response:
        return web.Response(text="here")

    async with serving(hangs) as first, serving(answers) as second:
        async with opened(first, second) as link:
            under_way = asyncio.create_task(link.post("/x", b"1"))
            await asked.wait()
            link.move_on(first)
            with pytest.raises(MasterUnreachable, match="another one is asked"):
                await under_way
            assert await link.post("/x", b"1") == b"here"
            # Whoever learns of the first one late moves nobody back.
            link.move_on(first)
            assert link.url == second


async def test_what_goes_on_there_is_not_cut_for_what_was_thought_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back at a master: what is under way there has its time, and no limit of ours counts as its failure."""
    monkeypatch.setattr(links, "_LEFT_S", 0.05)
    go, asked = asyncio.Event(), asyncio.Event()

    async def answers_late(_: web.Request) -> web.Response:
        asked.set()
        await go.wait()
        return web.Response(text="late")

    async with serving(answers_late) as first:
        second = f"http://127.0.0.1:{free_port()}"
        async with opened(first, second) as link:
            under_way = asyncio.create_task(link.post("/x", b"1"))
            await asked.wait()
            link.move_on(first)
            link.move_on(second)
            assert link.url == first
            # The limit that was taken back would have come by then.
            await asyncio.wait({under_way}, timeout=0.2)
            go.set()
            assert await under_way == b"late"
            go.clear()
            asked.clear()
            again = [asyncio.create_task(link.post("/x", b"1")) for _ in range(4)]
            await asked.wait()
            link.move_on(first)
            for each in again:
                with pytest.raises(MasterUnreachable, match="another one is asked"):
                    await each
            assert link.url == second
            link.move_on(second)
            link.move_on(first)


@pytest.mark.parametrize("end", ["silent", "closes"])
async def test_a_master_that_does_not_welcome_is_left(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """It opens the connection, and its database is away."""
    monkeypatch.setattr(sessions, "_WELCOME_WITHIN_S", 0.15)

    async def opens(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if end == "silent":
            await socket.receive()
            await socket.receive()
        await socket.close()
        return socket

    async with serving(opens, path="/agents/session") as first:
        second = f"http://127.0.0.1:{free_port()}"
        async with opened(first, second) as link:
            session = AgentSession(link, Quiet(), ContainerReports(), FACE, "cluster", MasterContact(lambda: 0.0))  # type: ignore[arg-type]
            with pytest.raises(MasterUnreachable):
                await session._once(lambda address: None, links.retry())
            assert link.url == second


class Quiet:
    """A fleet of nothing."""

    def connecting(self) -> None:
        """It is not asked for more."""


def test_masters_are_named_once() -> None:
    """And as often for tasks as for the agent."""
    with pytest.raises(ValueError, match="twice"):
        AgentSettings(master_url="http://one,http://one/")
    with pytest.raises(ValueError, match="as many"):
        AgentSettings(master_url="http://a,http://b,http://c", task_master_url="http://x,http://y")
    assert AgentSettings(master_url="http://a,http://b", task_master_url="http://x").task_master_urls == ("http://x",)


async def test_the_next_one_is_asked_where_nobody_listens() -> None:
    """And one alone is asked again and again."""

    async def answers(_: web.Request) -> web.Response:
        return web.Response(text="here")

    async with serving(answers) as there:
        gone = f"http://127.0.0.1:{free_port()}"
        async with opened(gone, there) as link, opened(gone) as alone:
            for each in (link, alone):
                with pytest.raises(MasterUnreachable, match=gone):
                    await each.post("/x", b"1")
            assert await link.post("/x", b"1") == b"here"
            with pytest.raises(MasterUnreachable, match=gone):
                await alone.post("/x", b"1")


async def test_one_that_hangs_is_not_waited_for_as_long_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections all the same; whoever comes to it first asks whether it is there."""
    monkeypatch.setattr(links, "ALIVE_S", 1.0)
    looks = []

    async def answers(request: web.Request) -> web.Response:
        looks.append(request.path)
        return web.Response(text="here")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with serving(answers, path="/{path}") as there, opened(hung, there) as link:
            with pytest.raises(MasterUnreachable, match=hung):
                await link.post("/x", b"1")
            # The other one answers as soon as the machine lets it.
            monkeypatch.setattr(links, "ALIVE_S", 60.0)
            assert await link.post("/x", b"1") == await link.post("/x", b"1") == b"here"
    assert looks == [ALIVE, "/x", "/x"]


def test_agents_begin_with_different_ones() -> None:
    """And each always with the same."""
    urls = "http://one,http://two,http://three"
    begun = [Link(AgentSettings(master_url=urls, agent_id=f"box{number}")).at for number in range(60)]
    assert {begun.count(at) > 10 for at in range(3)} == {True}
    assert begun == [Link(AgentSettings(master_url=urls, agent_id=f"box{number}")).at for number in range(60)]
