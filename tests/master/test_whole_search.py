"""The loops and the hub together, on a real database: a search from its first trial to its end.

Containers are played by the test; everything from the journal to the slots is real.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.connection import Database
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import lists as trial_lists
from tenax.wire.agents import ContainerSpec
from tests.kits.master.cluster import ASHA, Cluster, report, running, submit
from tests.kits.pretend_agent import Script


async def asked_to_leave(place: Cluster, spec: ContainerSpec) -> bool:
    """Acknowledges when it is so, as a script does."""
    name = spec.allocation_id
    asked = await place.value("select preemption <> 'NONE' from allocations where allocation_id = $1", name)
    if asked is True:
        async with place.db.transaction() as conn:
            await allocations.acknowledge(conn, name)
    return asked is True


async def decided(place: Cluster, spec: ContainerSpec) -> None:
    """Wait until the search has seen all that the trial reported, or wants no more of it: an epoch takes far longer."""
    seen = """
        select e.state not in ('ACTIVE', 'PAUSED')
            or not exists (select 1 from search_inbox where trial_id = $1 and seq is null)
        from experiments e join trials t on t.experiment_id = e.id where t.id = $1"""

    async def is_seen() -> bool:
        return await place.value(seen, int(spec.env["DET_TRIAL_ID"])) is not False

    await place.until(is_seen)


def training(place: Cluster) -> Script:
    """Trains 16 epochs; leaves when asked."""

    async def script(spec: ContainerSpec) -> int:
        lr = float(str(spec.env["DET_HPARAMS"].split(":")[1].rstrip("}")))
        for epoch in range(1, 17):
            await report(place, spec, epoch, lr / epoch)
            await decided(place, spec)
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


async def test_no_more_trials_run_at_once_than_the_search_may(database: Database) -> None:
    """Not with more brackets than that, nor while those that were stopped leave: the next one waits, and says so."""
    most, waited = 0, False

    def counting(place: Cluster) -> Script:
        play = training(place)

        async def script(spec: ContainerSpec) -> int:
            nonlocal most, waited
            open_attempts = await place.value("select count(*) from allocations where state <> 'TERMINATED'")
            most = max(most, int(str(open_attempts)))
            async with place.db.connection() as conn:
                ids = [row["id"] for row in await conn.fetch("select id from trials where state = 'ACTIVE'")]
                views = await trial_lists.views(conn, ids) if ids else []
            waited = waited or any("waits for its turn: at most 2" in (view.wait_reason or "") for view in views)
            return await play(spec)

        return script

    async with running(database, counting, slots=4) as place:
        searcher: JsonObject = {**ASHA, "bracket_rungs": [3, 2, 1], "max_concurrent_trials": 2}
        assert await place.ended(await submit(database, searcher)) == "COMPLETED"
    assert most == 2
    assert waited


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


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))])
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
        assert await place.value("select bool_and(state = 'ERROR' and restarts = 1) from trials") is True
        assert "max_restarts is 1" in str(await place.value("select reason from trials limit 1"))
