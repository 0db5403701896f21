"""How far experiments are: computed in one place, stored, and the same wherever it is read."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from tenax.ids import RequestId
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.ingest import states
from tenax.master.loops.loop import PassContext
from tenax.master.loops.progress import Progress
from tenax.master.loops.searching import Searching
from tenax.master.store.database import leases
from tenax.master.store.database.connection import prepare
from tenax.master.store.database.migrate import migrate, shipped
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.trials import rows as trials
from tenax.master.store.users.rows import UserRow
from tenax.master.store.users.sessions import TaskOf
from tenax.search.journal import Exited, ExitReason, Validated, encode
from tests.kits.api import Api
from tests.kits.database import database_in
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rows import add_experiment, request_attempt

EVERYTHING = Woken(frozenset(), full=True)
_ASHA = "searcher: {name: adaptive_asha, metric: loss, max_trials: 4, time_metric: epochs, max_time: 16, max_rungs: 2}"


@dataclass
class Searches:
    """A master whose loops step when the test says so."""

    api: Api
    context: PassContext
    searching: Searching
    progress_loop: Progress

    async def begin(self, searcher: str) -> int:
        """An experiment whose trials wait in the queue."""
        lines = [line for line in CONFIG.splitlines() if not line.startswith("searcher:")]
        made = (await create(self.api, "\n".join([*lines, searcher])))["experiment"]["id"]  # type: ignore[index]
        await self.step()
        async with self.api.master.db.transaction() as conn:
            for trial in await conn.fetch("select id from trials where experiment_id = $1", made):
                await request_attempt(conn, trial["id"])
        return int(made)

    async def step(self) -> None:
        await self.searching.make_pass(self.context, EVERYTHING)
        await self.progress_loop.make_pass(self.context, EVERYTHING)

    async def trials(self, experiment: int) -> list[tuple[int, RequestId]]:
        async with self.api.master.db.connection() as conn:
            rows = await conn.fetch(
                "select id, request_id from trials where experiment_id = $1 order by id", experiment
            )
        return [(row["id"], RequestId(row["request_id"])) for row in rows]

    async def tell(self, experiment: int, values: dict[int, float]) -> None:
        """Trials, by their place, say how far they are."""
        found = await self.trials(experiment)
        async with self.api.master.db.transaction() as conn:
            for place, value in values.items():
                # The first attempt of each.
                task = TaskOf("a", "t", 1, found[place][0], experiment, UserRow(1, "owner"))
                await states.progress_reported(conn, task, value)

    async def validate(self, experiment: int, place: int, epochs: int, metric: float) -> None:
        trial, request = (await self.trials(experiment))[place]
        async with self.api.master.db.transaction() as conn:
            fact = encode(Validated(request, epochs, metric, epochs))
            await trials.put_fact(conn, experiment, trial, "validation", epochs, fact)

    async def end(self, experiment: int, place: int, reason: ExitReason = ExitReason.FINISHED) -> None:
        trial, request = (await self.trials(experiment))[place]
        async with self.api.master.db.transaction() as conn:
            await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
            await trials.put_fact(conn, experiment, trial, "exit", 1, encode(Exited(request, reason)))

    async def progress(self, experiment: int) -> float:
        return float((await self.api.admin.get(f"/api/v1/experiments/{experiment}")).json()["experiment"]["progress"])


@pytest.fixture
async def searches(api: Api) -> Searches:
    """Both loops, which nothing else wakes."""
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "searching", "test", 3600.0)
    assert lease is not None
    return Searches(api, PassContext(api.master.db, lease), Searching(), Progress(pause_s=0.0))


async def test_list_search_detail_queue_and_runs_tell_one_progress(searches: Searches) -> None:
    """Of searches of every kind; and orders and filters go by that value."""
    single = await searches.begin("searcher: {name: single, metric: loss}")
    many = await searches.begin("searcher: {name: random, metric: loss, max_trials: 4, max_concurrent_trials: 3}")
    halving = await searches.begin(_ASHA)
    await searches.begin("searcher: {name: random, metric: loss, max_trials: 2}")
    await searches.tell(single, {0: 0.25})
    await searches.end(many, 0)
    await searches.tell(many, {1: 0.5, 2: 0.7})
    await searches.validate(halving, 0, 4, 0.5)
    await searches.validate(halving, 1, 4, 0.1)
    await searches.tell(halving, {0: 0.9})
    await searches.step()
    api = searches.api
    listed = (await api.admin.get("/api/v1/experiments", sortBy="SORT_BY_PROGRESS")).json()["experiments"]
    told = {one["id"]: one["progress"] for one in listed}
    assert list(told.values()) == sorted(told.values())
    assert (told[single], told[many]) == (0.25, pytest.approx(2.2 / 4))
    assert 0 < told[halving] < 1
    body = {"sort": "progress=asc", "limit": -1}
    found = (await api.admin.post("/api/v1/experiments-search", body)).json()["experiments"]
    assert [(one["experiment"]["id"], one["experiment"]["progress"]) for one in found] == list(told.items())
    runs = (await api.admin.post("/api/v1/runs", {"limit": -1})).json()["runs"]
    assert {one["experiment"]["id"]: one["experiment"]["progress"] for one in runs} == told
    jobs = [one["full"] for one in (await api.admin.get("/api/v1/job-queues-v2")).json()["jobs"]]
    assert {int(one["entityId"]): one["progress"] for one in jobs} == told
    for number, value in told.items():
        assert await searches.progress(number) == value
        searched = (await api.admin.get(f"/api/v1/experiments/{number}/search")).json()
        assert searched["progress"] == value
        assert await _at(api, round(100 * value)) >= {number}


async def test_what_has_ended_keeps_the_progress_that_it_had(searches: Searches) -> None:
    """A search that completed is at 1, one that was cut off or has failed stays where it was."""
    done = await searches.begin("searcher: {name: single, metric: loss}")
    cut = await searches.begin("searcher: {name: single, metric: loss}")
    failed = await searches.begin("searcher: {name: single, metric: loss}")
    for one in (done, cut, failed):
        await searches.tell(one, {0: 0.5})
    await searches.step()
    await searches.api.user.post(f"/api/v1/experiments/{cut}/kill")
    await searches.end(cut, 0, ExitReason.USER_CANCELED)
    await searches.end(done, 0)
    await searches.end(failed, 0, ExitReason.ERRORED)
    await searches.step()
    assert [await searches.progress(one) for one in (done, cut, failed)] == [1.0, 0.5, 0.5]


async def test_a_search_that_goes_on_begins_at_what_its_trials_have_done(searches: Searches) -> None:
    """At nothing at once, and at what its journal says as soon as somebody has looked into it."""
    one = await searches.begin("searcher: {name: random, metric: loss, max_trials: 2}")
    for place in (0, 1):
        await searches.end(one, place)
    await searches.step()
    assert await searches.progress(one) == 1.0
    async with searches.api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'ERROR', ended_at = now() where id = $1", one)
        last = (await searches.trials(one))[-1][0]
        await conn.execute("update trials set state = 'ERROR' where id = $1", last)
    reply = await searches.api.user.post("/api/v1/experiments/continue", {"id": one})
    assert reply.status_code == 200, reply.text
    assert await searches.progress(one) == 0.0
    await searches.step()
    assert await searches.progress(one) == 0.5


async def test_an_unmanaged_experiment_is_as_far_as_its_trials(searches: Searches) -> None:
    """Trials that are over count whole, the others as they tell; when all have completed it is at 1."""
    api = searches.api
    config = "name: x\nsearcher: {name: random, metric: loss, max_trials: 4}"
    made = await api.user.post("/api/v1/experiments", {"config": config, "unmanaged": True})
    one = made.json()["experiment"]["id"]
    numbers = []
    for _ in range(2):
        body = {"experimentId": one, "unmanaged": True}
        numbers.append((await api.user.post("/api/v1/trials", body)).json()["trial"]["id"])
        await api.user.post(f"/api/v1/trials/{numbers[-1]}/start", {})
    await api.user.post(f"/api/v1/trials/{numbers[0]}/progress", {"progress": 0.5})
    await searches.step()
    assert await searches.progress(one) == pytest.approx(0.5 / 4)
    await api.user.patch(f"/api/v1/trials/{numbers[0]}", {"state": "STATE_COMPLETED"})
    assert await searches.progress(one) == pytest.approx(1 / 4)
    await api.user.patch(f"/api/v1/trials/{numbers[1]}", {"state": "STATE_COMPLETED"})
    assert await searches.progress(one) == 1.0


async def test_a_trial_that_failed_counts_for_nothing(searches: Searches) -> None:
    """Of a search that makes its trials and of one that does not."""
    failing = await searches.begin("searcher: {name: random, metric: loss, max_trials: 4, max_concurrent_trials: 3}")
    for place in (0, 1):
        await searches.end(failing, place, ExitReason.ERRORED)
    await searches.step()
    assert await searches.progress(failing) == 0.0
    api = searches.api
    config = "name: x\nsearcher: {name: random, metric: loss, max_trials: 4}"
    made = await api.user.post("/api/v1/experiments", {"config": config, "unmanaged": True})
    one = made.json()["experiment"]["id"]
    for change in ({"state": "STATE_ERROR"}, None):
        body = {"experimentId": one, "unmanaged": True}
        number = (await api.user.post("/api/v1/trials", body)).json()["trial"]["id"]
        await api.user.post(f"/api/v1/trials/{number}/start", {})
        if change is not None:
            await api.user.patch(f"/api/v1/trials/{number}", change)
    await api.user.post(f"/api/v1/trials/{number}/progress", {"progress": 0.5})
    await searches.step()
    assert await searches.progress(one) == pytest.approx(0.5 / 3)


async def test_an_unmanaged_experiment_that_fails_stays_where_it_was(searches: Searches) -> None:
    """Its trial's end says nothing of how far it was."""
    api = searches.api
    config = "name: x\nsearcher: {name: single, metric: loss}"
    made = await api.user.post("/api/v1/experiments", {"config": config, "unmanaged": True})
    one = made.json()["experiment"]["id"]
    trial = (await api.user.post("/api/v1/trials", {"experimentId": one, "unmanaged": True})).json()["trial"]["id"]
    await api.user.post(f"/api/v1/trials/{trial}/start", {})
    await api.user.post(f"/api/v1/trials/{trial}/progress", {"progress": 0.5})
    await searches.step()
    await api.user.patch(f"/api/v1/trials/{trial}", {"state": "STATE_ERROR"})
    ended = (await api.admin.get(f"/api/v1/experiments/{one}")).json()["experiment"]
    assert (ended["state"], ended["progress"]) == ("STATE_ERROR", 0.5)


async def test_what_is_told_often_is_looked_at_together(searches: Searches) -> None:
    """Between two looks there is a pause, and nothing that was told in it is forgotten."""
    one = await searches.begin("searcher: {name: single, metric: loss}")
    hurried = Progress(pause_s=3600.0)
    assert await hurried.make_pass(searches.context, EVERYTHING) is None
    await searches.tell(one, {0: 0.5})
    rest = await hurried.make_pass(searches.context, Woken(frozenset({str(one)}), full=False))
    assert rest is not None
    assert rest > 3000
    assert await searches.progress(one) == 0.0
    hurried._pause_s = 0.0
    await hurried.make_pass(searches.context, Woken(frozenset(), full=False))
    assert await searches.progress(one) == 0.5


@pytest.fixture
async def before(postgres: EmbeddedPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A database without stored progress."""
    name = f"before_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute(f"create database {name}")
    conn = await asyncpg.connect(database_in(postgres.dsn, name))
    await prepare(conn)
    await migrate(conn, migrations=[one for one in shipped() if one.name < "0015"])
    yield conn
    await conn.close()
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


async def test_experiments_of_before_have_a_progress(before: asyncpg.Connection) -> None:
    """Those that have ended keep what was shown; where the others stand is for their search to say."""
    config = {"searcher": {"name": "random", "metric": "loss", "max_trials": 4}}
    for state in ("ACTIVE", "COMPLETED", "CANCELED"):
        number = await add_experiment(before, config=config)
        await before.execute(
            "insert into trials (experiment_id, request_id, journal_seq, task_id, state, hparams, seed, ended_at)"
            " values ($1, 'r', 1, $2, 'COMPLETED', '{}', 1, now())",
            number,
            f"t{number}",
        )
        await before.execute(
            "update experiments set state = $2, ended_at = case when $2 <> 'ACTIVE' then now() end where id = $1",
            number,
            state,
        )
    await migrate(before)
    rows = await before.fetch("select progress, settled, share from experiment_progress order by experiment_id")
    assert [tuple(row) for row in rows] == [(0.25, None, None), (1.0, 1.0, 0.0), (0.25, 0.25, 0.0)]


async def _at(api: Api, percent: int) -> set[int]:
    asked = {
        "kind": "field",
        "columnName": "progress",
        "operator": "=",
        "value": percent,
        "location": "LOCATION_TYPE_EXPERIMENT",
        "type": "COLUMN_TYPE_NUMBER",
    }
    wanted = {"filterGroup": {"kind": "group", "conjunction": "and", "children": [asked]}, "showArchived": True}
    found = await api.admin.post("/api/v1/experiments-search", {"filter": json.dumps(wanted), "limit": -1})
    return {one["experiment"]["id"] for one in found.json()["experiments"]}


async def test_a_length_tells_how_far_a_silent_script_is(searches: Searches) -> None:
    """By the newest step, or by the metric that the length counts; what a script says of itself counts instead."""
    steps = await searches.begin("searcher: {name: single, metric: loss, max_length: {batches: 200}}")
    plain = await searches.begin("searcher: {name: random, metric: loss, max_trials: 2, max_length: 100}")
    epochs = await searches.begin("searcher: {name: single, metric: loss, max_length: {epochs: 8}}")
    without = await searches.begin("searcher: {name: single, metric: loss}")
    async with searches.api.master.db.transaction() as conn:
        for number in (steps, plain, epochs, without):
            trial = (await searches.trials(number))[0][0]
            await conn.execute(
                "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
                " values ($1, 'training', 1, 1, 50, 1, 50, '')",
                trial,
            )
            await conn.execute(
                "insert into trial_telemetry (trial_id, latest_validation) values ($1, $2)",
                trial,
                {"step": 50, "run_id": 1, "at": "2026-01-01T00:00:00Z", "metrics": {"loss": 1.0, "epochs": 6}},
            )
    await searches.step()
    shown = [await searches.progress(number) for number in (steps, plain, epochs, without)]
    assert shown == [0.25, 0.25, 0.75, 0.0]
    await searches.tell(steps, {0: 0.9})
    await searches.step()
    assert await searches.progress(steps) == 0.9


async def test_what_metrics_tell_is_looked_at_again(searches: Searches) -> None:
    """Nobody names an experiment whose trials report metrics alone: a length has it looked at while it runs."""
    loop = searches.progress_loop
    counted = await searches.begin("searcher: {name: single, metric: loss, max_length: 200}")
    async with searches.api.master.db.transaction() as conn:
        trial = (await searches.trials(counted))[0][0]
        await conn.execute(
            "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
            " values ($1, 'training', 1, 1, 50, 1, 50, '')",
            trial,
        )
    loop._last_counted = -math.inf
    rest = await loop.make_pass(searches.context, Woken(frozenset(), full=False))
    assert rest is not None
    assert rest < 10
    assert await searches.progress(counted) == 0.25
    await searches.api.admin.post(f"/api/v1/experiments/{counted}/kill")
    await loop.make_pass(searches.context, EVERYTHING)
    assert await loop.make_pass(searches.context, Woken(frozenset(), full=False)) is None
