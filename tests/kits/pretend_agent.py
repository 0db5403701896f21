"""An agent that only pretends: it speaks the protocol to the real hub, and a script of the test plays containers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from tenax.wire.agents import (
    PROTOCOL,
    AgentReport,
    ContainerReport,
    ContainerSpec,
    DesiredGone,
    DesiredRun,
    DesiredStates,
    DesiredStop,
    Exit,
    FromMaster,
    Hello,
    Ping,
    ReportedState,
    SlotInfo,
    Welcome,
)

_decode = msgspec.json.Decoder(FromMaster).decode
_encode = msgspec.json.Encoder().encode

#: Plays one container: returns its exit code. Cancelled when the container is killed.
Script = Callable[[ContainerSpec], Awaitable[int]]


class PretendAgent:
    """Use ``channel`` as the hub's end; run ``run`` as a task; after ``reconnect`` there is another channel."""

    def __init__(self, slots: int, script: Script) -> None:
        self.channel = _Pipe()
        self._connected = False
        self._slots = slots
        self._script = script
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._states: dict[str, ContainerReport] = {}
        self._cluster = ("", 0)
        #: Every container that was started, in order.
        self.started: list[ContainerSpec] = []

    def reconnect(self, *, with_nothing: bool = False) -> None:
        """The connection is lost, and what was on its way; ``with_nothing``: and all that ran, with the machine."""
        self.channel = _Pipe()
        self._connected = False
        if with_nothing:
            for task in self._tasks.values():
                task.cancel()
            self._tasks.clear()
            self._states.clear()

    async def run(self) -> None:
        """Say hello, then obey wants until the master closes."""
        self._connected = True
        slots = [SlotInfo(n, "cpu", "pretended") for n in range(self._slots)]
        hello = Hello(PROTOCOL, "test", "pretend", "process", slots, list(self._states.values()))
        self._say(hello)
        channel = self.channel
        while True:
            message = _decode(await channel.to_agent.get())
            if isinstance(message, Welcome):
                self._cluster = (message.cluster_id, message.generation)
            elif isinstance(message, DesiredStates):
                self._obey(message)

    def beat(self) -> None:
        """A sign of life."""
        self._say(Ping())

    def _obey(self, wants: DesiredStates) -> None:
        for want in wants.containers:
            name = want.container_id
            if isinstance(want, DesiredGone):
                if name in self._tasks:
                    self._tasks.pop(name).cancel()
                self._states.pop(name, None)
                self._say(AgentReport(gone=[name]))
            elif name in self._states:
                if isinstance(want, DesiredStop) and name in self._tasks:
                    self._tasks[name].cancel()
            elif isinstance(want, DesiredRun) and want.spec is not None:
                self.started.append(want.spec)
                self._report(name, "starting")
                self._tasks[name] = asyncio.create_task(self._play(want.spec))
            else:
                self._report(
                    name, "exited", Exit(reason="nothing is left of it", platform=isinstance(want, DesiredRun))
                )

    async def _play(self, spec: ContainerSpec) -> None:
        self._report(spec.container_id, "running")
        try:
            ended = Exit(code=await self._script(spec))
        except asyncio.CancelledError:
            ended = Exit(signal=9, reason="killed by signal 9")
        if spec.container_id in self._states:
            self._report(spec.container_id, "exited", ended)

    def _report(self, name: str, state: ReportedState, ended: Exit | None = None) -> None:
        cluster_id, generation = self._cluster
        report = ContainerReport(name, cluster_id, generation, state, pid=1, address="127.0.0.1", exit=ended)
        self._states[name] = report
        self._say(AgentReport(containers=[report]))

    def _say(self, message: Hello | Ping | AgentReport) -> None:
        if not self._connected:
            # The next hello says it all.
            return
        self.channel.to_master.put_nowait(_encode(message).decode())


class _Pipe:
    """Two queues for a websocket."""

    def __init__(self) -> None:
        self.to_agent: asyncio.Queue[str] = asyncio.Queue()
        self.to_master: asyncio.Queue[str] = asyncio.Queue()

    async def send(self, frame: str) -> None:
        self.to_agent.put_nowait(frame)

    async def receive(self) -> str:
        return await self.to_master.get()
