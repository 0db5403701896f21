"""The loops and the hub on a real database with one pretended agent: searches run from end to end."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from tenax.config.master import MasterSettings
from tenax.config.resolve import parse_experiment
from tenax.errors import TryAgain
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master import loops
from tenax.master.agents.hub import Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.store.agents import rows as agents
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import searches
from tenax.master.store.trials import rows as trials
from tenax.master.store.workspaces import projects
from tenax.search.journal import Validated, encode
from tenax.wire.agents import ContainerSpec
from tests.kits.pretend_agent import PretendAgent, Script
from tests.kits.watchdog import watched

CONFIG: JsonObject = {
    "entrypoint": "python3 train.py",
    "checkpoint_storage": {"type": "directory", "container_path": "/tmp/checkpoints"},
    "hyperparameters": {"lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1}},
    "reproducibility": {"experiment_seed": 7},
    "max_restarts": 1,
}
ASHA: JsonObject = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "epochs",
    "max_time": 16,
    "max_trials": 8,
    "max_concurrent_trials": 4,
}


class Cluster:
    """A master's loops and one pretended agent."""

    def __init__(self, database: Database, agent: PretendAgent, start: Callable[[], loops.RunningLoops] | None) -> None:
        self.db = database
        self.agent = agent
        self._start = start
        self._loops = self._started()

    async def restart_loops(self) -> None:
        """End every loop wherever it is, and start them again."""
        await self.close()
        self._loops = self._started()

    def _started(self) -> loops.RunningLoops | None:
        with watched("the loops"):
            return None if self._start is None else self._start()

    async def close(self) -> None:
        if self._loops is not None:
            await self._loops.stop()

    async def value(self, sql: str, *arguments: object) -> object:
        async with self.db.connection() as conn:
            value: object = await conn.fetchval(sql, *arguments)
            return value

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something holds; the test's own time-out is the limit."""
        while not await holds():  # noqa: ASYNC110 - the database is asked, it has no event for this
            await asyncio.sleep(0.01)

    async def ended(self, experiment_id: int) -> str:
        """Wait for the end of an experiment; its state."""

        async def has_ended() -> bool:
            return await self.value("select ended_at is not null from experiments where id = $1", experiment_id) is True

        await self.until(has_ended)
        return str(await self.value("select state from experiments where id = $1", experiment_id))


@asynccontextmanager
async def running(
    database: Database, script: Callable[[Cluster], Script], slots: int = 2, *, with_loops: bool = True
) -> AsyncIterator[Cluster]:
    """A cluster whose containers are played by ``script``; without loops, others run them."""
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
        await projects.create_first(conn)
        await conn.execute("insert into users (username) values ('someone')")
        await agents.join(conn, "one", "default", b"x" * 32)
    listener = Listener(database)
    holder: list[Cluster] = []
    agent = PretendAgent(slots, lambda spec: script(holder[0])(spec))
    start = partial(loops.start, database, listener, MasterSettings(), identity)
    holder.append(Cluster(database, agent, start if with_loops else None))
    hub = Hub(database, listener, identity, {"default": PoolDefaults()})
    with watched("listener and hub"):
        tasks = [
            asyncio.create_task(listener.run()),
            asyncio.create_task(_connected(hub, agent)),
        ]
    try:
        yield holder[0]
    finally:
        await holder[0].close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connected(hub: Hub, agent: PretendAgent) -> None:
    """The agent connects, and again whenever it is cut off, as it is by a database that answers late."""
    while True:
        running = asyncio.create_task(agent.run())
        try:
            await hub.serve(agent.channel, "one", "127.0.0.1", asyncio.Event())
        except TryAgain:
            await asyncio.sleep(0.1)
        finally:
            running.cancel()
        agent.reconnect()


async def submit(database: Database, searcher: JsonObject, *, damage: bool = False, **changes: object) -> int:
    """An active experiment, as creation leaves it; with ``damage``, its stored configuration is none."""
    job = str(uuid.uuid4())
    document: JsonObject = {**CONFIG, "searcher": searcher, **changes}  # type: ignore[dict-item]
    resolved = parse_experiment(document, rng=random.Random(0))
    async with database.transaction() as conn:
        await conn.execute(
            "insert into jobs (job_id, pool, priority, max_slots, queue_position, owner_id)"
            " values ($2, 'default', 42, $1, 1, 1)",
            resolved.experiment.resources.max_slots,
            job,
        )
        experiment_id: int = await conn.fetchval(
            "insert into experiments (job_id, owner_id, project_id) values ($1, 1, 1) returning id", job
        )
        await conn.execute(
            "insert into experiment_documents (experiment_id, name, original_config, config, seed)"
            " values ($1, $2, '', $3, $4)",
            experiment_id,
            resolved.name,
            {} if damage else resolved.document,
            resolved.seed,
        )
        await experiments.ask(conn, experiment_id, ExperimentEvent.ACTIVATE)
    return experiment_id


async def report(place: Cluster, spec: ContainerSpec, epoch: int, loss: float) -> None:
    """What the intake of metrics does with a validation: a fact for the search."""
    experiment_id, trial_id = int(spec.env["DET_EXPERIMENT_ID"]), int(spec.env["DET_TRIAL_ID"])
    async with place.db.transaction() as conn:
        request_id = await conn.fetchval("select request_id from trials where id = $1", trial_id)
        fact = encode(Validated(request_id, epoch, loss, epoch))
        await trials.put_fact(conn, experiment_id, trial_id, "validation", epoch, fact)
        await notify(conn, searches.KIND, experiment_id)
