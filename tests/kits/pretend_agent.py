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
    DesiredStates,
    DesiredStop,
    Exit,
    FromMaster,
    Hello,
    Ping,
    ReportedState,
    SessionRefused,
    SlotInfo,
    Welcome,
)

_decode = msgspec.json.Decoder(FromMaster).decode
_encode = msgspec.json.Encoder().encode

#: Plays one container: returns its exit code. Cancelled when the container is killed.
Script = Callable[[ContainerSpec], Awaitable[int]]


class PretendAgent:
    """Use ``channel`` as the hub's end; run ``run`` as a task; after ``reconnect`` there is another channel.

    It passes the kit of the real one (``tests/kits/agent_kit.py``).
    """

    def __init__(self, slots: int, script: Script) -> None:
        self.channel = Pipe()
        self._connected = False
        self._slots = slots
        self._script = script
        self._plays: set[asyncio.Task[None]] = set()
        self._scripts: dict[str, asyncio.Future[int]] = {}
        self._states: dict[str, ContainerReport] = {}
        #: By which signal a script is being ended.
        self._signals: dict[str, int] = {}
        self._cluster_id = ""
        #: Of the desired states that were obeyed last.
        self._generation, self._revision = 0, -1
        self._proof = ""
        #: Every container that was started, in order.
        self.started: list[ContainerSpec] = []

    def reconnect(self, *, with_nothing: bool = False) -> None:
        """The connection is lost, and what was on its way; ``with_nothing``: and all that ran, with the machine."""
        self.channel = Pipe()
        self._connected = False
        if with_nothing:
            self._states.clear()
            for script in self._scripts.values():
                script.cancel()
            self._scripts.clear()
            self._signals.clear()
            self._revision = -1

    async def run(self) -> None:
        """Say hello, then obey desired states until the connection ends. Raises ConnectionError when refused."""
        self._connected = True
        channel = self.channel
        self._say(self._hello())
        talking: asyncio.Task[None] | None = None
        try:
            while True:
                message = _decode(await channel.to_agent.get())
                if isinstance(message, SessionRefused):
                    raise ConnectionError(message.message)
                if isinstance(message, Welcome):
                    self._welcomed(message)
                    talking = asyncio.create_task(self._talk(channel, message.heartbeat_s / 2))
                elif self._is_for_us(message):
                    self._revision, self._proof = message.revision, message.proof
                    self._obey(message)
        finally:
            if talking is not None:
                talking.cancel()

    def beat(self) -> None:
        """A sign of life, before it is due."""
        self._say(Ping())

    def _hello(self) -> Hello:
        slots = [SlotInfo(n, "cpu", "pretended") for n in range(self._slots)]
        obeyed = self._generation if self._revision >= 0 else -1
        states = list(self._states.values())
        return Hello(PROTOCOL, "test", "pretend", "process", slots, states, obeyed, self._revision, proof=self._proof)

    def _welcomed(self, welcome: Welcome) -> None:
        self._cluster_id = self._cluster_id or welcome.cluster_id
        if welcome.generation != self._generation:
            self._generation, self._revision = welcome.generation, -1

    async def _talk(self, channel: Pipe, interval_s: float) -> None:
        while channel is self.channel:
            self._say(Ping())
            await asyncio.sleep(interval_s)

    def _is_for_us(self, desired: DesiredStates) -> bool:
        ours = (desired.cluster_id, desired.generation) == (self._cluster_id, self._generation)
        return ours and desired.revision >= self._revision

    def _obey(self, wants: DesiredStates) -> None:
        for want in wants.containers:
            name = want.container_id
            if isinstance(want, DesiredGone):
                self._remove(name)
            elif name in self._states:
                if isinstance(want, DesiredStop):
                    # No script is stubborn: each ends by the first signal.
                    self._end(name, 15 if want.within_s > 0 else 9)
            elif isinstance(want, DesiredStop):
                self._report(name, "exited", Exit(reason="stopped before it was started"))
            elif want.spec is not None:
                self.started.append(want.spec)
                self._report(name, "starting")
                play = asyncio.create_task(self._play(want.spec))
                self._plays.add(play)
                play.add_done_callback(self._plays.discard)
            else:
                self._report(name, "exited", Exit(reason="nothing is left of it", platform=True))

    def _end(self, name: str, number: int) -> None:
        self._signals.setdefault(name, number)
        if name in self._scripts:
            self._scripts[name].cancel()

    def _remove(self, name: str) -> None:
        """Gone is what runs no more."""
        self._end(name, 9)
        script = self._scripts.get(name)
        if script is None or script.done():
            self._gone(name)
        else:
            script.add_done_callback(lambda _: self._gone(name))

    def _gone(self, name: str) -> None:
        for about in (self._scripts, self._states, self._signals):
            about.pop(name, None)  # type: ignore[attr-defined]
        self._say(AgentReport(gone=[name]))

    async def _play(self, spec: ContainerSpec) -> None:
        name = spec.container_id
        script: asyncio.Future[int] | None = None
        if name in self._states and name not in self._signals:
            self._report(name, "running")
            script = self._scripts[name] = asyncio.ensure_future(self._script(spec))
            await asyncio.wait({script})
        if name not in self._states:
            return
        if script is None or script.cancelled():
            number = self._signals.get(name, 9)
            self._report(name, "exited", Exit(signal=number, reason=f"killed by signal {number}, as asked"))
        else:
            self._report(name, "exited", Exit(code=script.result()))

    def _report(self, name: str, state: ReportedState, ended: Exit | None = None) -> None:
        known = self._states.get(name)
        generation = self._generation if known is None else known.generation
        report = ContainerReport(name, self._cluster_id, generation, state, pid=1, address="127.0.0.1", exit=ended)
        self._states[name] = report
        self._say(AgentReport(containers=[report]))

    def _say(self, message: Hello | Ping | AgentReport) -> None:
        if not self._connected:
            # The next hello says it all.
            return
        self.channel.to_master.put_nowait(_encode(message).decode())


class Pipe:
    """Two queues for a websocket."""

    def __init__(self) -> None:
        self.to_agent: asyncio.Queue[str] = asyncio.Queue()
        self.to_master: asyncio.Queue[str] = asyncio.Queue()

    async def send(self, frame: str) -> None:
        self.to_agent.put_nowait(frame)

    async def receive(self) -> str:
        return await self.to_master.get()
