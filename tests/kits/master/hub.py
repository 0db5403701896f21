"""The hub with two agents whose part the test plays (fixture ``place``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import pytest

from tenax.master.agents.bounds import proof_of
from tenax.master.agents.hub import Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.wire.agents import (
    PROTOCOL,
    AgentReport,
    ContainerReport,
    DesiredStates,
    Exit,
    FromMaster,
    Hello,
    MachineNotices,
    Ping,
    ReportedState,
    SlotInfo,
)
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, run_attempt
from tests.kits.watchdog import watched

_decode = msgspec.json.Decoder(FromMaster).decode
_encode = msgspec.json.Encoder().encode


@dataclass
class Talk:
    """One connection, the test being the agent."""

    cluster: ClusterRow
    to_agent: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    to_master: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def send(self, frame: str) -> None:
        self.to_agent.put_nowait(frame)

    async def receive(self) -> str:
        return await self.to_master.get()

    def report(self, container_id: str, state: ReportedState, code: int | None = None) -> ContainerReport:
        exit_report = None if code is None else Exit(code=code)
        return ContainerReport(
            container_id, self.cluster.cluster_id, self.cluster.generation, state, address="127.0.0.1", exit=exit_report
        )

    def say(self, message: Hello | AgentReport | Ping | MachineNotices) -> None:
        self.to_master.put_nowait(_encode(message).decode())

    def hello(
        self,
        *containers: ContainerReport,
        obeyed: tuple[int, int] = (-1, -1),
        slots: int = 2,
        place: str = "",
        agent_id: str = "a1",
    ) -> None:
        """``obeyed``: generation and revision, which ``agent_id`` was sent."""
        devices = [SlotInfo(number, "cpu", "pretended") for number in range(slots)]
        hello = Hello(PROTOCOL, "test", "host", "process", devices, list(containers), *obeyed, place=place)
        self.say(msgspec.structs.replace(hello, proof=proof_of(self.cluster.secret, agent_id, *obeyed)))

    async def wants(self) -> dict[str, object]:
        """The next wants, by container."""
        while True:
            message = _decode(await self.to_agent.get())
            if isinstance(message, DesiredStates):
                return {want.container_id: want for want in message.containers}


@dataclass
class Place:
    """A hub on a database with two agents, a1 and a2, and one running attempt on a1."""

    db: Database
    hub: Hub
    cluster: ClusterRow
    attempt: Attempt
    tasks: list[asyncio.Task[None]]

    @property
    def container(self) -> str:
        return self.attempt.containers[0]

    def connect(self, agent_id: str) -> Talk:
        talk = Talk(self.cluster)
        with watched("the hub"):
            self.tasks.append(asyncio.create_task(self.hub.serve(talk, agent_id, "127.0.0.1", asyncio.Event())))
        return talk

    async def state(self) -> str:
        async with self.db.connection() as conn:
            return str(await conn.fetchval("select state from containers where container_id = $1", self.container))


@pytest.fixture
async def place(database: Database) -> AsyncIterator[Place]:
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
        for name in ("a1", "a2"):
            await add_agent(conn, name)
        attempt = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    listener = Listener(database)
    hub = Hub(database, listener, identity, {"default": PoolDefaults()})
    made = Place(database, hub, identity, attempt, [asyncio.create_task(listener.run())])
    try:
        yield made
    finally:
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
