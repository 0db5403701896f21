"""Whatever happens to an experiment, it ends: the loops, the hub and a database, under random verbs and misfortunes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tenax.config.master import MasterSettings
from tenax.errors import NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.lifecycle.trial import Wish
from tenax.master import loops
from tenax.master.agents.hub import Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.allocations import events as allocation_events
from tenax.master.loops import loop
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import barriers
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database import wakeups
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import rows as trials
from tenax.master.store.workspaces import projects
from tenax.wire.agents import ContainerSpec
from tests.kits.master.cluster import ASHA, report, submit
from tests.kits.pretend_agent import PretendAgent

STEPS = 20
#: Far more than it takes.
_PATIENCE_S = 120.0
#: What is looked at when it does not end.
_TABLES = {
    "experiments": "true",
    "trials": "state = 'ACTIVE'",
    "allocations": "state <> 'TERMINATED'",
    "containers": "gone_at is null",
    "agents": "true",
    "agent_presence": "true",
    "leases": "true",
}
NAMES = ("one", "two")


class World:
    """A master, two agents, one experiment; and chance."""

    def __init__(self, database: Database, chance: random.Random, listener: Listener, identity: ClusterRow) -> None:
        self.db = database
        self.chance = chance
        self._hub = Hub(database, listener, identity, {"default": PoolDefaults()})
        self._start = partial(loops.start, database, listener, MasterSettings(), identity)
        self.loops = self._start()
        self.agents = {name: PretendAgent(2, self.script) for name in NAMES}
        self._links: dict[str, list[asyncio.Task[None]]] = {}

    # Agents

    def connect(self, name: str) -> None:
        agent = self.agents[name]
        serving = self._hub.serve(agent.channel, name, "127.0.0.1", asyncio.Event())
        self._links[name] = [asyncio.create_task(serving), asyncio.create_task(agent.run())]

    async def disconnect(self, name: str, *, with_nothing: bool = False) -> None:
        links = self._links.pop(name, [])
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
        self.agents[name].reconnect(with_nothing=with_nothing)

    async def give_up(self, name: str) -> None:
        """What the loop `timeouts` does to an agent that was silent for too long."""
        async with self.db.connection() as conn:
            lost = await agents.live_containers(conn, name)
        async with self.db.transaction() as conn:
            await allocation_events.members_lost(conn, lost, name, "node lost")

    # Containers

    async def script(self, spec: ContainerSpec) -> int:
        """Trains, meets its peers, reports, leaves when asked or does not, fails now and then."""
        trial_id, run_id = int(spec.env["DET_TRIAL_ID"]), int(spec.env["DET_TRIAL_RUN_ID"])
        if spec.members > 1:
            async with self.db.transaction() as conn:
                await barriers.arrive(conn, spec.allocation_id, spec.container_id)
        for epoch in range(1, 17):
            luck = self.chance.random()
            if spec.rank == 0 and await self._is_current(trial_id, run_id):
                await report(self, spec, epoch, luck)  # type: ignore[arg-type]
            await asyncio.sleep(0.005)
            if luck < 0.02:
                return 1
            if luck < 0.03:
                async with self.db.transaction() as conn:
                    await trials.set_invalid_hp(conn, trial_id, run_id)
                    await experiments.announce(conn, int(spec.env["DET_EXPERIMENT_ID"]))
            if luck < 0.6 and await self._leaves(spec.allocation_id):
                return 0
        return 0

    async def _is_current(self, trial_id: int, run_id: int) -> bool:
        return await self.value("select run_id = $2 and state = 'ACTIVE' from trials where id = $1", trial_id, run_id)

    async def _leaves(self, allocation_id: str) -> bool:
        async with self.db.transaction() as conn:
            asked = (await barriers.signal(conn, allocation_id)).leave
            if asked:
                await allocations.acknowledge(conn, allocation_id)
        return asked

    # Chance

    async def something(self, experiment_id: int) -> None:
        """One of all that may happen."""
        verbs: list[Callable[[int], Awaitable[None]]] = [
            self._verb, self._verb, self._verb, self._kill_trial, self._preempt, self._restart, self._lose, self._lose,
        ]  # fmt: skip
        await self.chance.choice(verbs)(experiment_id)

    async def _verb(self, experiment_id: int) -> None:
        event = self.chance.choice(
            [ExperimentEvent.PAUSE] * 4 + [ExperimentEvent.ACTIVATE] * 6 + [ExperimentEvent.CANCEL]
        )
        with contextlib.suppress(NotNow):
            async with self.db.transaction() as conn:
                await experiments.ask(conn, experiment_id, event)

    async def _kill_trial(self, experiment_id: int) -> None:
        async with self.db.transaction() as conn:
            rows = await conn.fetch("select id from trials where state = 'ACTIVE' order by id")
            if rows:
                await trials.raise_wish(conn, self.chance.choice(rows)["id"], experiment_id, Wish.KILL)

    async def _preempt(self, experiment_id: int) -> None:
        async with self.db.transaction() as conn:
            rows = await conn.fetch("select allocation_id from allocations where state <> 'TERMINATED' order by 1")
            if rows:
                chosen = self.chance.choice(rows)["allocation_id"]
                request = LeaveRequest(chosen, "preempted", self.chance.uniform(0.0, 0.2))
                await allocations.ask_to_leave(conn, [request])

    async def _restart(self, experiment_id: int) -> None:
        await self.loops.stop()
        self.loops = self._start()

    async def _lose(self, experiment_id: int) -> None:
        name = self.chance.choice(NAMES)
        if name not in self._links:
            self.connect(name)
            return
        await self.disconnect(name, with_nothing=self.chance.random() < 0.3)
        if self.chance.random() < 0.5:
            await self.give_up(name)
        if self.chance.random() < 0.6:
            self.connect(name)

    async def end(self, experiment_id: int) -> None:
        """All agents are there, and the experiment is killed."""
        for name in NAMES:
            if name not in self._links:
                self.connect(name)
        async with self.db.transaction() as conn:
            await experiments.ask(conn, experiment_id, ExperimentEvent.KILL)

    async def close(self) -> None:
        await self.loops.stop()
        for name in NAMES:
            await self.disconnect(name, with_nothing=True)

    async def value(self, sql: str, *arguments: object) -> bool:
        async with self.db.connection() as conn:
            return bool(await conn.fetchval(sql, *arguments))

    async def until(self, sql: str) -> None:
        """Until a question is answered with yes. Raises AssertionError, with the whole story, when it is not."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not await self.value(sql):  # noqa: ASYNC110 - the database is asked, it has no event for this
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"not so: {sql}\n{await self._story()}") from None

    async def _story(self) -> str:
        async with self.db.connection() as conn:
            lines = [
                f"{table}: {dict(row)}"
                for table, open_only in _TABLES.items()
                for row in await conn.fetch(f"select * from {table} where {open_only}")
            ]
        return "\n".join(lines)


@asynccontextmanager
async def world(database: Database, seed: int) -> AsyncIterator[World]:
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
        await projects.create_first(conn)
        await conn.execute("insert into users (username) values ('someone')")
        for name in NAMES:
            await agents.join(conn, name, "default", name.encode().ljust(32))
    listener = Listener(database)
    listening = asyncio.create_task(listener.run())
    made = World(database, random.Random(seed), listener, identity)
    try:
        for name in NAMES:
            made.connect(name)
        yield made
    finally:
        await made.close()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop looks at everything now and then: a wake-up that is lost costs more than a delay, and is seen."""
    for module in (loop, wakeups):
        monkeypatch.setattr(module, "MAX_WAIT_S", 3600.0)


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 100))])
async def test_every_life_ends_and_leaves_nothing(database: Database, seed: int, slots: int) -> None:
    """After a last kill nothing lives, no slot is taken, no attempt is open, and the journal has no gap."""
    resources: JsonObject = {"slots_per_trial": slots}
    async with world(database, seed) as place:
        experiment_id = await submit(database, ASHA, resources=resources)
        for _ in range(STEPS):
            await asyncio.sleep(place.chance.uniform(0.0, 0.15))
            await place.something(experiment_id)
        await place.end(experiment_id)
        await place.until("select state in ('COMPLETED', 'CANCELED', 'ERROR') from experiments")
        await place.until("select not exists (select 1 from slots_in_use)")
        await place.until("select bool_and(gone_at is not null) is not false from containers")
        assert not await place.value("select count(*) from trials where state = 'ACTIVE'")
        assert not await place.value("select count(*) from allocations where state <> 'TERMINATED'")
        assert not await place.value("select count(*) from user_sessions where allocation_id is not null")
        # Nothing stands there where it was canceled before its search had begun.
        assert await place.value("select coalesce(max(seq), 0) = count(*) from search_journal")
        runs = "select bool_and(n = t.run_id) is not false from trials t, lateral (select count(*) n from allocations a"
        assert await place.value(f"{runs} where a.task_id = t.task_id) c")
