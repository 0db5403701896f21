"""Experiments that go on after their end: loops, hub and database are real, containers are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.lifecycle.trial import Wish
from tenax.master.store.database.connection import Database
from tenax.master.store.experiments import continuing
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.trials import rows as trials
from tenax.master.submission.continuing import check_offered, continued, overlaid
from tenax.wire.agents import ContainerSpec
from tests.kits.master.cluster import ASHA, Cluster, running, submit
from tests.kits.pretend_agent import Script

SINGLE: JsonObject = {"name": "single", "metric": "loss"}
RANDOM: JsonObject = {"name": "random", "metric": "loss", "max_trials": 6, "max_concurrent_trials": 2}


async def go_on(database: Database, experiment_id: int, override: str = "") -> None:
    """What the API does."""
    pool = MasterSettings().pool("default")
    assert pool is not None
    async with database.transaction() as conn:
        stored = (await experiments.plan(conn, experiment_id)).config
        check_offered(experiment_id, stored)
        found = await continuing.trials_of(conn, experiment_id)
        new = continued(experiment_id, stored, overlaid(stored, override, pool), pool, found)
        await continuing.go_on(conn, await experiments.lock(conn, experiment_id), new)


async def ask(database: Database, experiment_id: int, event: ExperimentEvent) -> None:
    """A user's verb."""
    async with database.transaction() as conn:
        await experiments.ask(conn, experiment_id, event)


class Scripted:
    """Scripts that do what ``code`` says at the moment: an exit code, or None to run until they are ended."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.specs: list[ContainerSpec] = []

    def __call__(self, place: Cluster) -> Script:
        async def script(spec: ContainerSpec) -> int:
            self.specs.append(spec)
            if self.code is None:
                await asyncio.Event().wait()
            return self.code or 0

        return script


def busy(place: Cluster, count: int) -> Callable[[], object]:
    """Whether so many containers run."""

    async def holds() -> bool:
        return await place.value("select count(*) from containers where state = 'RUNNING'") == count

    return holds


async def test_a_failed_trial_goes_on_with_other_settings(database: Database) -> None:
    """The same experiment and trial, another task: the next run, restarts from nought, constants as they are now."""
    scripts = Scripted(3)
    async with running(database, scripts) as place:
        one = await submit(database, SINGLE, hyperparameters={"lr": 0.1, "net": {"width": 4}})
        assert await place.ended(one) == "ERROR"
        scripts.code = 0
        await go_on(database, one, "name: better\nhyperparameters: {lr: 0.5}\nmax_restarts: 0\n")
        assert await place.value("select ended_at is null and state = 'ACTIVE' from experiments") is True
        assert await place.value("select ended_at is null from jobs") is True
        assert await place.ended(one) == "COMPLETED"
        assert await place.value("select hparams from trials") == {"lr": 0.5, "net": {"width": 4}}
        assert await place.value("select (count(*), max(run_id), max(restarts)) from trials") == (1, 3, 0)
        assert await place.value("select name from experiment_documents") == "better"
        assert await place.value("select config ->> 'max_restarts' from experiment_documents") == "0"
        assert await place.value("select bool_and(ended_at is not null) from tasks") is True
        assert [spec.env["DET_TRIAL_RUN_ID"] for spec in scripts.specs] == ["1", "2", "3"]
        first, _, newest = (spec.env["DET_TASK_ID"] for spec in scripts.specs)
        assert newest == f"{first}-1"
        assert scripts.specs[2].env["DET_ALLOCATION_ID"] == f"{newest}.3"
        assert await place.value("select trials_ended from experiment_tallies") == 1


async def test_a_completed_trial_can_go_on_and_be_killed_again(database: Database) -> None:
    """Also before its next attempt has begun: its end is told to the search each time."""
    scripts = Scripted(0)
    async with running(database, scripts) as place:
        one = await submit(database, SINGLE)
        for times in range(1, 4):
            assert await place.ended(one) == ("COMPLETED" if times == 1 else "CANCELED")
            await go_on(database, one)
            await ask(database, one, ExperimentEvent.KILL)
        assert await place.ended(one) == "CANCELED"
        assert await place.value("select state from trials") == "CANCELED"


async def test_a_killed_search_goes_on_to_all_its_trials(database: Database) -> None:
    """Those that had completed stay so, those that were killed run again, and the rest are made."""
    scripts = Scripted(None)
    async with running(database, scripts) as place:
        one = await submit(database, RANDOM)
        await place.until(busy(place, 2))  # type: ignore[arg-type]
        await ask(database, one, ExperimentEvent.KILL)
        assert await place.ended(one) == "CANCELED"
        assert await place.value("select count(*) from trials") == 2
        scripts.code = 0
        await go_on(database, one)
        assert await place.ended(one) == "COMPLETED"
        assert await place.value("select count(*) from trials where state = 'COMPLETED'") == 6
        assert await place.value("select array_agg(run_id order by id) from trials") == [2, 2, 1, 1, 1, 1]
        gapless = "select max(seq) = count(*) from search_journal"
        assert await place.value(gapless) is True
        with pytest.raises(NotNow, match="all trials"):
            await go_on(database, one)


async def test_of_many_trials_that_go_on_no_more_run_than_the_search_lets(database: Database) -> None:
    """All had failed; the next goes on when one of them ends, and those that wait say for what."""
    scripts = Scripted(3)
    async with running(database, scripts) as place:
        one = await submit(database, RANDOM, max_restarts=0)
        assert await place.ended(one) == "ERROR"
        assert await place.value("select count(*) from trials where state = 'ERROR'") == 6
        scripts.code = None
        await go_on(database, one)
        await place.until(busy(place, 2))  # type: ignore[arg-type]
        assert await place.value("select array_agg(run_id order by id) from trials") == [2, 2, 1, 1, 1, 1]
        told = await place.value("select array_agg(distinct reason order by reason) from trials where run_id = 1")
        assert told == ["it waits for its turn: at most 2 run at once (max_concurrent_trials)"]
        scripts.code = 0
        async with database.transaction() as conn:
            for row in await conn.fetch("select id from trials where run_id = 2"):
                await trials.raise_wish(conn, row["id"], one, Wish.KILL)
        assert await place.ended(one) == "COMPLETED"
        states = await place.value("select array_agg(state order by id) from trials")
        assert states == ["CANCELED", "CANCELED", "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED"]


async def test_an_experiment_that_ended_before_its_search_began_goes_on(database: Database) -> None:
    """Killed while it was paused, without a trial: it begins."""
    scripts = Scripted(0)
    one = 0
    async with running(database, scripts) as place:
        one = await submit(database, RANDOM)
        await ask(database, one, ExperimentEvent.PAUSE)
        await ask(database, one, ExperimentEvent.KILL)
        await place.ended(one)
        await go_on(database, one)
        assert await place.ended(one) == "COMPLETED"
        assert await place.value("select count(*) from trials where state = 'COMPLETED'") == 6


async def test_what_cannot_be_continued_is_refused(database: Database) -> None:
    """What runs, searches that stop trials, and settings that decisions hang on; nothing is changed by it."""
    scripts = Scripted(None)
    async with running(database, scripts) as place:
        one = await submit(database, RANDOM)
        with pytest.raises(NotNow, match="has not ended"):
            await go_on(database, one)
        asha = await submit(database, ASHA)
        for number in (one, asha):
            await ask(database, number, ExperimentEvent.KILL)
            await place.ended(number)
        with pytest.raises(NotNow, match="stops trials early"):
            await go_on(database, asha)
        for override in ("searcher: {metric: accuracy}", "searcher: {max_trials: 9}", "hyperparameters: {lr: 1}",
                         "reproducibility: {experiment_seed: 1}", "resources: {weight: 0}"):  # fmt: skip
            with pytest.raises(InvalidInput):
                await go_on(database, one, override)
        assert await place.value("select count(*) from experiments where state = 'CANCELED'") == 2
