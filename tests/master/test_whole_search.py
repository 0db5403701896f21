"""The loops and the hub together, on a real database: a search from its first trial to its end.

Containers are played by the test; everything from the journal to the slots is real.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tenax.config.master import MasterSettings
from tenax.config.resolve import parse_experiment
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master import loops
from tenax.master.hub import Hub
from tenax.master.store import agents, allocations, cluster, experiments, projects, trials
from tenax.master.store.database import Database
from tenax.master.store.wakeups import Listener
from tenax.search.journal import Validated, encode
from tenax.wire.agents import ContainerSpec
from tests.kits.pretend_agent import PretendAgent, Script

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


Stop = Callable[[], Awaitable[None]]


class Cluster:
    """A master's loops and one pretended agent."""

    def __init__(self, database: Database, agent: PretendAgent, start: Callable[[], Stop]) -> None:
        self.db = database
        self.agent = agent
        self._start = start
        self._stop = start()

    async def restart_loops(self) -> None:
        """End every loop wherever it is, and start them again."""
        await self._stop()
        self._stop = self._start()

    async def close(self) -> None:
        await self._stop()

    async def value(self, sql: str, *arguments: object) -> object:
        async with self.db.connection() as conn:
            found: object = await conn.fetchval(sql, *arguments)
            return found

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
async def running(database: Database, script: Callable[[Cluster], Script], slots: int = 2) -> AsyncIterator[Cluster]:
    """A cluster whose containers are played by ``script``."""
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
        await projects.create_first(conn)
        await conn.execute("insert into users (username) values ('someone')")
        await agents.join(conn, "one", "default", b"x" * 32)
    listener = Listener(database)
    holder: list[Cluster] = []
    agent = PretendAgent(slots, lambda spec: script(holder[0])(spec))
    start = partial(loops.start, database, listener, MasterSettings(), identity.secret)
    holder.append(Cluster(database, agent, start))
    hub = Hub(database, listener, identity, ("default",))
    tasks = [
        asyncio.create_task(listener.run()),
        asyncio.create_task(hub.serve(agent.channel, "one", "127.0.0.1", asyncio.Event())),
        asyncio.create_task(agent.run()),
    ]
    try:
        yield holder[0]
    finally:
        await holder[0].close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
        await experiments.announce(conn, experiment_id)


async def asked_to_leave(place: Cluster, spec: ContainerSpec) -> bool:
    """Acknowledges when it is so, as a script does."""
    name = spec.allocation_id
    asked = await place.value("select preemption <> 'NONE' from allocations where allocation_id = $1", name)
    if asked is True:
        async with place.db.transaction() as conn:
            await allocations.acknowledge(conn, name)
    return asked is True


def training(place: Cluster) -> Script:
    """Trains 16 epochs; leaves when asked."""

    async def script(spec: ContainerSpec) -> int:
        lr = float(str(spec.env["DET_HPARAMS"].split(":")[1].rstrip("}")))
        for epoch in range(1, 17):
            await report(place, spec, epoch, lr / epoch)
            await asyncio.sleep(0.02)
            if await asked_to_leave(place, spec):
                return 0
        return 0

    return script


async def test_a_search_runs_to_its_end_and_leaves_nothing(database: Database) -> None:
    """Exactly max_trials trials, all over; some stopped early; every slot and container let go of."""
    async with running(database, training) as place:
        experiment_id = await submit(database, ASHA)
        assert await place.ended(experiment_id) == "COMPLETED"
        assert await place.value("select count(*) from trials") == 8
        assert await place.value("select count(*) from trials where state = 'COMPLETED'") == 8
        assert await place.value("select count(*) from trials where reason like 'stopped early%'") != 0

        async def let_go() -> bool:
            return await place.value("select count(*) from slots_in_use") == 0

        await place.until(let_go)
        assert await place.value("select count(*) from allocations where state <> 'TERMINATED'") == 0
        assert await place.value("select count(*) from allocation_waits") == 0


async def test_pause_frees_the_slots_and_activate_goes_on(database: Database) -> None:
    """Every trial leaves when asked, nothing runs while paused, and the next attempt has the next run id."""
    async with running(database, training) as place:
        experiment_id = await submit(database, ASHA)

        async def runs() -> bool:
            return await place.value("select count(*) from containers where state = 'RUNNING'") == 2

        async def rests() -> bool:
            return await place.value("select count(*) from slots_in_use") == 0

        await place.until(runs)
        async with database.transaction() as conn:
            await experiments.ask(conn, experiment_id, ExperimentEvent.PAUSE)
        await place.until(rests)
        assert await place.value("select count(*) from allocations where state <> 'TERMINATED'") == 0
        async with database.transaction() as conn:
            await experiments.ask(conn, experiment_id, ExperimentEvent.ACTIVATE)
        assert await place.ended(experiment_id) == "COMPLETED"
        assert await place.value("select max(run_id) from trials") == 2
        assert await place.value("select max(restarts) from trials") == 0


@pytest.mark.parametrize("seed", range(3))
async def test_a_master_that_dies_again_and_again_decides_nothing_twice(database: Database, seed: int) -> None:
    """Loops that end at seeded instants, inside any transaction, and begin anew: exactly max_trials, one run each."""
    instants = random.Random(seed)
    async with running(database, training) as place:
        experiment_id = await submit(database, ASHA)
        for _ in range(8):
            await asyncio.sleep(instants.uniform(0.0, 0.4))
            await place.restart_loops()
        assert await place.ended(experiment_id) == "COMPLETED"
        assert await place.value("select count(*) from trials") == 8
        assert await place.value("select count(*) from allocations") == 8
        gapless = "select max(seq) = count(*) from search_journal where experiment_id = $1"
        assert await place.value(gapless, experiment_id) is True


async def test_kill_ends_everything_at_once(database: Database) -> None:
    """A killed experiment is CANCELED, and its containers did not get to leave by themselves."""

    def endless(place: Cluster) -> Script:
        async def script(spec: ContainerSpec) -> int:
            await asyncio.Event().wait()
            return 0

        return script

    async with running(database, endless) as place:
        experiment_id = await submit(database, ASHA)

        async def runs() -> bool:
            return await place.value("select count(*) from containers where state = 'RUNNING'") == 2

        await place.until(runs)
        async with database.transaction() as conn:
            await experiments.ask(conn, experiment_id, ExperimentEvent.KILL)
        assert await place.ended(experiment_id) == "CANCELED"
        assert await place.value("select bool_and(state = 'CANCELED') from trials") is True


async def test_what_cannot_be_handled_is_set_aside_and_the_others_go_on(database: Database) -> None:
    """An experiment whose documents are damaged ends as an ERROR that tells its story; the loops go on."""
    async with running(database, training) as place:
        damaged = await submit(database, ASHA, damage=True)
        assert await place.ended(damaged) == "ERROR"
        assert "an error of the platform" in str(
            await place.value("select reason from experiments where id = $1", damaged)
        )
        sound = await submit(database, ASHA)
        assert await place.ended(sound) == "COMPLETED"


async def test_a_script_that_fails_is_tried_again_and_then_given_up(database: Database) -> None:
    """max_restarts 1: two attempts each, then ERROR; a search whose trials all failed is an ERROR."""

    def failing(place: Cluster) -> Script:
        async def script(spec: ContainerSpec) -> int:
            return 3

        return script

    async with running(database, failing) as place:
        experiment_id = await submit(database, {"name": "random", "metric": "loss", "max_trials": 3})
        assert await place.ended(experiment_id) == "ERROR"
        assert await place.value("select count(*) from allocations") == 6
        assert await place.value("select bool_and(state = 'ERROR' and restarts = 2) from trials") is True
        assert "max_restarts is 1" in str(await place.value("select reason from trials limit 1"))
