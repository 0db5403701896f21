"""A filled database of before the first release (`dumps/0014.sql`) becomes today's; one from in between is refused."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.access.bootstrap import CREDENTIALS_FILE, write_private
from tenax.master.store.database.connection import Database, prepare
from tenax.master.store.database.migrate import (
    LAST_SQUASHED,
    SQUASHED,
    Migration,
    MigrationChanged,
    MigrationsMissing,
    migrate,
    shipped,
)
from tenax.master.store.database.migration_steps import quiet
from tenax.master.store.database.post_migrations import upgrade
from tests.kits.api import Api, answering, settings_in
from tests.kits.catalogue import catalogue
from tests.kits.database import database_in
from tests.kits.world import CHECKPOINT, CONFIG, PASSWORD, asked

DUMP = Path(__file__).with_name("dumps") / "0014.sql"
FIRST_RELEASE = [each.name for each in shipped() if each.number <= LAST_SQUASHED]
NEXT = Migration("9999_pre_next", "create table next (x int)")
#: What the dump was filled with: a whole search, and the trial that most was reported of.
SEARCH, TRIAL = 1, 7


@pytest.fixture(scope="module")
def restored(postgres: EmbeddedPostgres) -> str:
    """Name of a database that the dump was read into, to be copied."""
    name = "before_first_release"
    asyncio.run(_restore(postgres.dsn, name))
    return name


async def _restore(dsn: str, name: str) -> None:
    admin = await asyncpg.connect(dsn)
    await admin.execute(f"create database {name}")
    await admin.close()
    conn = await asyncpg.connect(database_in(dsn, name))
    await conn.execute(DUMP.read_text())
    await conn.close()


@pytest.fixture
async def old_url(postgres: EmbeddedPostgres, restored: str) -> AsyncIterator[str]:
    """Where the database is, as it was left."""
    name = f"old_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute(f"create database {name} template {restored}")
    yield database_in(postgres.dsn, name)
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def old(old_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it."""
    conn = await asyncpg.connect(old_url)
    await prepare(conn)
    yield conn
    await conn.close()


@pytest.fixture
async def upgraded(old_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """A master on it, after its migrations."""
    await upgrade(old_url, quiet)
    settings = settings_in(tmp_path)
    # Its users are there already; the first one's password stands where it always stood.
    settings.dir.mkdir()
    write_private(settings.dir / CREDENTIALS_FILE, json.dumps({"username": "admin", "password": PASSWORD}))
    database = await Database.open(old_url, max_connections=8)
    try:
        async with answering(database, settings) as api:
            yield api
    finally:
        await database.close()


async def _recorded(conn: asyncpg.Connection) -> dict[str, str]:
    return {row["name"]: row["checksum"] for row in await conn.fetch("select name, checksum from schema_migrations")}


async def test_the_dump_has_a_row_in_every_table(old: asyncpg.Connection) -> None:
    """So that what the tests below show is shown of everything."""
    tables = [table.name for table in (await catalogue(old)).tables]
    assert [name for name in tables if not await old.fetchval(f"select exists (select 1 from {name})")] == []
    assert set(await _recorded(old)) == set(SQUASHED)


async def test_the_files_of_the_first_release_count_as_applied(old: asyncpg.Connection) -> None:
    """Nothing of them is run; they are recorded beside what they replaced, once; what comes after them is applied."""
    before = await _recorded(old)
    assert await migrate(old, migrations=[*shipped(), NEXT]) == [
        *(each.name for each in shipped() if each.number > LAST_SQUASHED and not each.post),
        NEXT.name,
    ]
    after = await _recorded(old)
    assert before.items() <= after.items()
    assert set(FIRST_RELEASE) <= after.keys()
    assert await migrate(old, migrations=[*shipped(), NEXT]) == []
    assert await _recorded(old) == after


async def test_its_schema_is_that_of_a_fresh_database(old: asyncpg.Connection, old_url: str, database_url: str) -> None:
    """The same tables, columns, constraints, indexes, triggers and functions, whatever the order of columns."""
    await upgrade(old_url, quiet)
    fresh = await asyncpg.connect(database_url)
    upgraded_catalogue, expected = (await catalogue(old)).without_order(), (await catalogue(fresh)).without_order()
    await fresh.close()
    assert [table.name for table in upgraded_catalogue.tables] == [table.name for table in expected.tables]
    for table, other in zip(upgraded_catalogue.tables, expected.tables):
        assert table == other
    assert upgraded_catalogue.functions == expected.functions


@pytest.mark.parametrize("stopped_at", ["0001_pre_state", "0009_pre_workspaces", "0013_pre_cheaper"])
async def test_a_database_from_in_between_is_refused(old: asyncpg.Connection, stopped_at: str) -> None:
    """The message names where it stopped and the version to start on it before; nothing is changed."""
    await old.execute("delete from schema_migrations where name > $1", stopped_at)
    before = await _recorded(old)
    with pytest.raises(MigrationsMissing, match=rf"{stopped_at}.*Tenax 0\.1\.0 as of commit \w+.*0014_pre_counts"):
        await migrate(old)
    assert await _recorded(old) == before


@pytest.mark.parametrize("name", ["0001_pre_state", "0014_pre_counts"])
async def test_a_replaced_migration_in_another_form_is_refused(old: asyncpg.Connection, name: str) -> None:
    """Whoever edited one before applying it has another schema; the new files are not recorded."""
    await old.execute("update schema_migrations set checksum = repeat('0', 64) where name = $1", name)
    with pytest.raises(MigrationChanged, match=name):
        await migrate(old)
    assert set(await _recorded(old)) == set(SQUASHED)


async def test_an_edited_file_of_the_first_release_is_refused(old: asyncpg.Connection) -> None:
    """Also where it was only taken as applied."""
    await migrate(old)
    first, *others = shipped()
    with pytest.raises(MigrationChanged, match=first.name):
        await migrate(old, migrations=[Migration(first.name, first.sql + ";"), *others])


async def test_names_of_leases_of_before_are_gone_when_nobody_holds_them(old: asyncpg.Connection, old_url: str) -> None:
    """A master does not need that; they go with the post migrations, and those that loops have now stay."""
    await migrate(old)
    renamed = "select array_agg(loop) from leases where holder like 'renamed to %'"
    assert "tending" in await old.fetchval(renamed)
    held = await old.fetchval("select count(*) from leases where holder not like 'renamed to %'")
    assert "0024_post_loop_names" in await upgrade(old_url, quiet)
    assert await old.fetchval(renamed) is None
    assert await old.fetchval("select count(*) from leases") == held


def test_no_file_has_the_name_of_one_that_was_replaced() -> None:
    """A name means one file, for ever."""
    assert not {each.name for each in shipped()} & SQUASHED.keys()


async def test_what_triggers_keep_agrees_with_the_rows(old: asyncpg.Connection) -> None:
    """Tallies and counts of experiments: counted anew they are what they were."""
    await migrate(old)
    tallies = await old.fetch("select * from experiment_tallies order by experiment_id")
    assert sum(row["trials"] for row in tallies) == await old.fetchval("select count(*) from trials")
    await old.execute("select tenax_tally(null)")
    assert await old.fetch("select * from experiment_tallies order by experiment_id") == tallies
    # A row counts what an update changes; an update that changes nothing makes the rows anew.
    hparams = await old.fetch("select * from run_hparams order by trial_id, key")
    await old.execute("update trials set hparams = hparams")
    assert await old.fetch("select * from run_hparams order by trial_id, key") == hparams
    by = "project_id, owner_id, state, archived"
    counted = f"select {by}, sum(change) n from experiment_counts group by {by} having sum(change) <> 0 order by {by}"
    assert await old.fetch(counted) == await old.fetch(
        f"select {by}, count(*) n from experiments group by {by} order by {by}"
    )


#: How a list is asked for, the key of its entries, and how many there were.
LISTS: list[tuple[str, str, object, str, int]] = [
    ("GET", "/api/v1/experiments", None, "experiments", 9),
    ("POST", "/api/v1/experiments-search", {}, "experiments", 9),
    ("GET", f"/api/v1/experiments/{SEARCH}/trials", None, "trials", 6),
    ("GET", f"/api/v1/experiments/{SEARCH}/checkpoints", None, "checkpoints", 8),
    ("GET", f"/api/v1/trials/{TRIAL}/checkpoints", None, "checkpoints", 3),
    ("POST", "/api/v1/runs", {}, "runs", 15),
    ("GET", "/api/v1/users", None, "users", 3),
    ("POST", "/api/v1/groups/search", {}, "groups", 1),
    ("GET", "/api/v1/tokens", None, "tokenInfo", 1),
    ("GET", "/api/v1/webhooks", None, "webhooks", 2),
    ("GET", "/api/v1/workspaces", None, "workspaces", 4),
    ("GET", "/api/v1/workspaces/2/projects", None, "projects", 3),
    ("GET", "/api/v1/models", None, "models", 2),
    ("GET", "/api/v1/models/model/versions", None, "modelVersions", 1),
    ("GET", "/api/v1/templates", None, "templates", 1),
    ("GET", "/api/v1/commands", None, "commands", 1),
    ("GET", "/api/v1/agents", None, "agents", 2),
    ("GET", "/api/v1/job-queues-v2?resourcePool=default", None, "jobs", 3),
]


async def test_lists_have_what_was_there(upgraded: Api) -> None:
    """As many of each kind as the database was filled with."""
    counts = {}
    for method, path, body, key, count in LISTS:
        answer = await asked(upgraded.admin, method, path, body)
        counts[path] = (len(answer[key]), count)  # type: ignore[arg-type]
    assert {path: both for path, both in counts.items() if both[0] != both[1]} == {}


async def test_metrics_and_output_are_read(upgraded: Api) -> None:
    """A series whose beginning is packed and whose end is not, what it comes to, and lines in their order."""
    user = upgraded.user
    series = await asked(user, "GET", f"/api/v1/trials/{TRIAL}/series?metric=loss&max_points=0")
    assert series["steps"] == list(range(47))
    assert series["values"] == [1, *(1 / step for step in range(1, 46)), 0.02]
    summary = await asked(user, "GET", f"/api/v1/trials/{TRIAL}/metric-summaries")
    assert summary["training"]["loss"]["count"] == 47  # type: ignore[index]
    reply = await user.get("/api/v1/trials/metrics/trial_metrics", trialIds=[TRIAL], group="validation")
    assert [
        line["totalBatches"] for each in reply.text.splitlines() for line in json.loads(each)["result"]["metrics"]
    ] == [10, 20, 30, 40]
    lines = [json.loads(line)["result"] for line in (await user.get(f"/api/v1/trials/{TRIAL}/logs")).text.splitlines()]
    assert [line["log"] for line in lines] == [f"line {number}\n" for number in range(300)]
    assert {(line["level"], line["rankId"]) for line in lines} == {("LOG_LEVEL_INFO", 0)}
    found = (await user.get(f"/api/v1/trials/{TRIAL}/logs", searchText="line 29.$", enableRegex=True)).text.splitlines()
    assert len(found) == 10


async def test_the_search_is_told_as_it_went(upgraded: Api) -> None:
    """An experiment that a search has ended: its state and best trial, and its whole journal replayed."""
    answer = await asked(upgraded.user, "GET", f"/api/v1/experiments/{SEARCH}")
    expected = {
        "name": "search",
        "state": "STATE_COMPLETED",
        "reason": "all 6 trials are over: 6 finished",
        "progress": 1.0,
        "trialIds": [1, 2, 3, 4, 5, 6],
        "bestTrialId": 3,
        "checkpointCount": 8,
    }
    experiment: dict[str, object] = answer["experiment"]  # type: ignore[assignment]
    assert {key: experiment[key] for key in expected} == expected
    view = await asked(upgraded.user, "GET", f"/api/v1/experiments/{SEARCH}/search")
    assert (view["created"], view["finished"], view["shutDown"]) == (6, 6, True)
    journal: list[dict[str, object]] = view["journal"]  # type: ignore[assignment]
    assert [entry["seq"] for entry in journal] == list(range(1, 101))
    tree = await asked(upgraded.user, "GET", f"/api/v1/experiments/{SEARCH}/file_tree")
    assert [file["path"] for file in tree["files"]] == ["train.py"]  # type: ignore[attr-defined]


async def test_the_cluster_goes_on(upgraded: Api, old: asyncpg.Connection) -> None:
    """What is reported, submitted and written afterwards stands beside what was there."""
    user = upgraded.user
    attempt = await old.fetchval(
        "select allocation_id from allocations join tasks using (task_id) where trial_id = $1", TRIAL
    )
    task = await upgraded.task(attempt)
    values = {"trialId": TRIAL, "trialRunId": 1, "stepsCompleted": 47, "metrics": {"avgMetrics": {"loss": 0.01}}}
    await asked(task, "POST", f"/api/v1/trials/{TRIAL}/metrics", {"group": "training", "metrics": values})
    series = await asked(user, "GET", f"/api/v1/trials/{TRIAL}/series?metric=loss&max_points=0")
    assert series["values"][-2:] == [0.02, 0.01]  # type: ignore[index]
    made = await asked(user, "POST", "/api/v1/experiments", {"config": CONFIG, "activate": True})
    assert made["experiment"]["id"] == 10  # type: ignore[index]
    version = await asked(user, "POST", "/api/v1/models/model/versions", {"checkpointUuid": CHECKPOINT})
    assert version["modelVersion"]["version"] == 2  # type: ignore[index]


async def test_a_trial_that_was_continued_before_has_one_task_until_it_is_again(
    upgraded: Api, old: asyncpg.Connection
) -> None:
    """All its runs and lines until then are of that one."""
    user, path = upgraded.user, f"/api/v1/trials/{TRIAL}"
    (first,) = (await asked(user, "GET", path))["trial"]["taskIds"]  # type: ignore[index, call-overload]
    await old.execute("update allocations set state = 'TERMINATED', ended_at = now() where state <> 'TERMINATED'")
    await old.execute(
        "insert into allocations (allocation_id, task_id, run_id, slots, state, ended_at)"
        " values ($1, $2, 2, 1, 'TERMINATED', now())",
        f"{first}.2",
        first,
    )
    await old.execute("update trials set state = 'ERROR', run_id = 2, ended_at = now() where id = $1", TRIAL)
    of = await old.fetchval("select experiment_id from trials where id = $1", TRIAL)
    await old.execute("update experiments set state = 'ERROR', ended_at = now() where id = $1", of)
    await asked(user, "POST", "/api/v1/experiments/continue", {"id": of})
    assert (await asked(user, "GET", path))["trial"]["taskIds"] == [first, f"{first}-1"]  # type: ignore[index, call-overload]
    runs = (await asked(user, "GET", f"/api/v1/tasks/{first}"))["task"]["allocations"]  # type: ignore[index, call-overload]
    assert [run["allocationId"] for run in runs] == [f"{first}.2", f"{first}.1"]  # type: ignore[index, call-overload, union-attr]
    for source, lines in ((path, 300), (f"/api/v1/tasks/{first}", 300), (f"/api/v1/tasks/{first}-1", 0)):
        assert len((await user.get(f"{source}/logs", sources="task")).text.splitlines()) == lines


async def test_validations_are_read_from_a_place_of_their_own(upgraded: Api, old: asyncpg.Connection) -> None:
    """Those that stood in the inbox of a search are found as validations, each once."""
    rows = await old.fetch(
        "select i.trial_id, i.at_key, i.fact ->> 'metric' as reported, v.metric from search_inbox i"
        " left join validations v on (v.trial_id, v.step) = (i.trial_id, i.at_key) where i.kind = 'validation'"
    )
    assert rows
    assert all(row["metric"] == pytest.approx(float(row["reported"]), nan_ok=True) for row in rows)
