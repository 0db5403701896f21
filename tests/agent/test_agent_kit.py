"""The real agent and the one that tests of the master put in its place: both keep the same promises."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tenax.wire.agents import ContainerSpec
from tests.agent.host import WAIT, Host, spec
from tests.agent.master_double import MasterDouble
from tests.kits.agent_kit import AgentKit
from tests.kits.pretend_agent import PretendAgent


class RealAgent:
    """Of the process runtime; each start of a container leaves a line in a file."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._starts = host.directory.parent / "starts"

    async def start(self) -> None:
        self._host.start()

    def exits(self) -> ContainerSpec:
        return self._noted("raise SystemExit(3)")

    def waits(self) -> ContainerSpec:
        return self._noted(WAIT)

    def starts(self, spec: ContainerSpec) -> int:
        return self._starts.read_text().split().count(spec.container_id)

    def _noted(self, code: str) -> ContainerSpec:
        note = "import os; print(os.environ['DET_CONTAINER_ID'], file=open(" + repr(str(self._starts)) + ", 'a'))\n"
        return spec(note + code)


class PretendedAgent:
    """Its two queues lead to the small master over a real websocket."""

    def __init__(self, master: MasterDouble) -> None:
        self._master = master
        self._agent = PretendAgent(2, self._script)
        self._codes: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._connect_again())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._agent.reconnect(with_nothing=True)

    def exits(self) -> ContainerSpec:
        made = spec("")
        self._codes[made.container_id] = 3
        return made

    def waits(self) -> ContainerSpec:
        return spec("")

    def starts(self, spec: ContainerSpec) -> int:
        return [each.container_id for each in self._agent.started].count(spec.container_id)

    async def _script(self, spec: ContainerSpec) -> int:
        if spec.container_id not in self._codes:
            await asyncio.Event().wait()
        return self._codes[spec.container_id]

    async def _connect_again(self) -> None:
        headers = {"Authorization": f"Bearer {self._master.credential}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            while True:
                async with http.ws_connect(f"{self._master.url}/agents/session") as socket:
                    await self._connected(socket)
                self._agent.reconnect()

    async def _connected(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        channel = self._agent.channel

        async def out() -> None:
            while True:
                await socket.send_str(await channel.receive())

        tasks = [asyncio.create_task(self._agent.run()), asyncio.create_task(out())]
        try:
            async for message in socket:
                await channel.send(message.data)
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(ConnectionError):
                await asyncio.gather(*tasks, return_exceptions=True)


class TestAgent(AgentKit):
    @pytest.fixture
    def agent(self, host: Host) -> RealAgent:
        return RealAgent(host)


class TestPretendedAgent(AgentKit):
    @pytest.fixture
    async def agent(self, master: MasterDouble) -> AsyncIterator[PretendedAgent]:
        made = PretendedAgent(master)
        yield made
        await made.end()
