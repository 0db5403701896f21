"""Pretended agents that are connected to a real master over the network: machines for thousands of trials.

    with pretend_fleet(master_url, token_file, pool="pretended", agents=50, slots=50) as started:
        ...

What each says and obeys is of `tests.kits.pretend_agent`. Their containers run until they are ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import msgspec

from tenax.wire.agents import ContainerSpec, JoinReply, JoinRequest
from tests.kits.pretend_agent import PretendAgent


@contextmanager
def pretend_fleet(
    master_url: str, token_file: Path, *, pool: str, agents: int, slots: int
) -> Iterator[Callable[[], list[str]]]:
    """In a thread; gives the names of all containers that were started so far, of all agents."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = [PretendAgent(slots, _until_ended) for _ in range(agents)]
    token = token_file.read_text().strip()
    # Nobody else may have the credential of an agent that is away, another fleet neither.
    fleet = uuid.uuid4().hex[:6]

    async def live() -> None:
        async with aiohttp.ClientSession(master_url, connector=aiohttp.TCPConnector(limit=0)) as http:
            each = (_live(http, agent, JoinRequest(f"{pool}-{fleet}-{n}", token, pool)) for n, agent in enumerate(made))
            await asyncio.gather(*each)

    living = asyncio.run_coroutine_threadsafe(live(), loop)
    try:
        yield lambda: [spec.container_id for agent in made for spec in list(agent.started)]
        assert not living.done(), living.exception()
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _until_ended(spec: ContainerSpec) -> int:
    await asyncio.Event().wait()
    return 0


async def _live(http: aiohttp.ClientSession, agent: PretendAgent, request: JoinRequest) -> None:
    """Join once, connect and connect again."""
    async with http.post("/agents/join", data=msgspec.json.encode(request)) as reply:
        assert reply.status == 200, await reply.text()
        joined = msgspec.json.decode(await reply.read(), type=JoinReply)
    headers = {"Authorization": f"Bearer {joined.credential}"}
    while True:
        with contextlib.suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
            async with http.ws_connect("/agents/session", headers=headers, heartbeat=10.0, max_msg_size=0) as socket:
                await _connected(agent, socket)
        agent.reconnect()
        await asyncio.sleep(0.5)


async def _connected(agent: PretendAgent, socket: aiohttp.ClientWebSocketResponse) -> None:
    channel = agent.channel

    async def hear() -> None:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                # Its data is the error with which the connection ended, such as a heartbeat that nobody answered.
                return
            channel.to_agent.put_nowait(str(message.data))

    async def say() -> None:
        while True:
            await socket.send_str(await channel.receive())

    ways = [asyncio.ensure_future(way) for way in (hear(), say(), agent.run())]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in done:
            way.result()
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
