"""The source of the live stream: each change is read once however many follow it, and reports cost nothing more."""

from __future__ import annotations

import asyncio
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from tenax.config.master import BudgetSettings
from tenax.errors import TooOften
from tenax.jsonvalue import JsonObject
from tenax.master.ingest.intake import Intake
from tenax.master.reading.events import feed as feeds
from tenax.master.reading.events import ring
from tenax.master.reading.events.feed import Feed
from tenax.master.reading.events.ring import Change, StreamFollower
from tenax.master.reading.events.topics import parse
from tenax.master.store.cluster.rows import clear_message
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, notify
from tenax.master.store.users.sessions import TaskOf
from tests.kits.slow_link import CountingDatabase
from tests.kits.telemetry import Book


@dataclass
class Desk:
    """One master's feed, on connections of its own whose statements are counted; others write."""

    feed: Feed
    counted: CountingDatabase
    others: Database
    listener: Listener

    async def follow(self, stack: ExitStack, *names: str, user_id: int = 1) -> StreamFollower:
        topics = parse(names)
        prepared = await self.feed.look_up(topics)
        return stack.enter_context(self.feed.follow(topics, prepared, user_id, (), ""))

    async def wake(self, kind: str, id: object) -> None:
        async with self.others.transaction() as conn:
            await notify(conn, kind, str(id))

    async def wake_and_hear(self, kind: str, id: object) -> None:
        """Until the feed has heard of it: its listener hears what was said after it."""
        with self.listener.subscribe(kind) as heard:
            await self.wake(kind, id)
            await self.wake(kind, "after")
            async with asyncio.timeout(60):
                while "after" not in (await heard.wait()).ids:
                    pass


@asynccontextmanager
async def master(database: Database, url: str) -> AsyncIterator[Desk]:
    """Listening, with its feed running."""
    counted = await CountingDatabase.open(url, max_connections=8)
    assert isinstance(counted, CountingDatabase)
    listener = Listener(counted)
    feed = Feed(counted, listener, period_s=0.01)
    tasks = [asyncio.create_task(listener.run()), asyncio.create_task(feed.run())]
    try:
        await listener.connected()
        yield Desk(feed, counted, database, listener)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await counted.close()


@pytest.fixture
async def desk(database: Database, database_url: str) -> AsyncIterator[Desk]:
    async with master(database, database_url) as made:
        yield made


async def put_out(intake: Intake, task: TaskOf, line: int) -> None:
    """One line of ten bytes."""
    await intake.logs.output("a1", task.allocation_id, "stdout", line * 10, zlib.compress(b"123456789\n"))


async def news(follower: StreamFollower, count: int = 1) -> list[JsonObject]:
    """The next changes, in the order in which they are sent."""
    taken: list[JsonObject] = []
    async with asyncio.timeout(60):
        while len(taken) < count:
            await follower.wait(60)
            assert not follower.stale
            taken += [json.loads(text.partition(b"data: ")[2]) for text in follower.take()]
    return taken


async def until_kind(follower: StreamFollower, kind: str, **fields: object) -> JsonObject:
    """The next change of a kind that says so."""
    while True:
        for each in await news(follower):
            if each["kind"] == kind and all(each.get(name) == fields[name] for name in fields):
                return each


async def test_a_change_is_read_once_however_many_follow_it(desk: Desk, book: Book) -> None:
    """Fifty followers, by different topics: one statement; without followers none."""
    experiment = await book.experiment()
    await desk.wake_and_hear("experiment", experiment)
    with ExitStack() as stack:
        ways = (f"experiments/{experiment}", "experiments", "projects/1/experiments", "users/1")
        followers = [
            await desk.follow(stack, way, user_id=number)
            for number, way in zip(range(50), itertools.cycle(ways), strict=False)
        ]
        assert desk.counted.reads == []
        await desk.wake("experiment", experiment)
        for follower in followers:
            (change,) = await news(follower)
            assert (change["kind"], change["id"]) == ("experiment", experiment)
        assert len(desk.counted.reads) == 1


async def test_reports_and_output_cost_no_statement_more(desk: Desk, database: Database) -> None:
    """The same transactions with followers as without; metrics of this master are not even read."""
    intake = Intake(desk.counted, BudgetSettings(min_free_bytes=0))
    intake.metrics.on_stored = desk.feed.stored
    async with intake.running():
        book = Book(desk.counted, intake)
        trial = await book.trial()
        task = await book.run(trial, 1)
        await book.report(trial, "training", 1, {"loss": 1.0})
        await book.report(trial, "validation", 1, {"loss": 1.0})

        async def cost(step: int) -> list[int]:
            desk.counted.transactions.clear()
            await book.report(trial, "training", step, {"loss": 1.0})
            await put_out(intake, task, step)
            return [transaction.statements for transaction in desk.counted.transactions]

        await put_out(intake, task, 0)
        await put_out(intake, task, 1)
        unfollowed = await cost(2)
        with ExitStack() as stack:
            followers = [await desk.follow(stack, f"trials/{trial}", user_id=number) for number in range(20)]
            desk.counted.reads.clear()
            assert await cost(3) == unfollowed
            for follower in followers:
                assert (await until_kind(follower, "metrics"))["steps"] == {"training": 3}
        of_metrics = [query for query in desk.counted.reads if "metric_groups" in query]
        assert of_metrics == []


async def test_metrics_that_another_master_stored(
    desk: Desk, book: Book, database: Database, database_url: str
) -> None:
    """Are told of as well: it knows by a wake-up which trials are followed elsewhere, and names those that had some."""
    trial, alone = await book.trial(), await book.trial()
    async with master(database, database_url) as other:
        book.intake.metrics.on_stored = other.feed.stored
        # Just before it is followed: said as soon as the other master knows that it is.
        await book.report(trial, "training", 1, {"loss": 1.0})
        with ExitStack() as stack:
            follower = await desk.follow(stack, f"trials/{trial}")
            assert (await until_kind(follower, "metrics"))["steps"] == {"training": 1}
            for step in range(2, 6):
                await book.report(trial, "training", step, {"loss": 1.0})
                await book.report(alone, "training", step, {"loss": 1.0})
            await until_kind(follower, "metrics", steps={"training": 5})
        written = [query for query in other.counted.reads if "pg_notify" in query]
        # Fewer than there were reports of the trial, and none of the other one.
        assert 1 <= len(written) <= 5


async def test_a_change_made_at_another_master(desk: Desk, book: Book, database: Database, database_url: str) -> None:
    """Wake-ups are the database's, so that followers of both masters are told."""
    experiment = await book.experiment()
    async with master(database, database_url) as other:
        with ExitStack() as stack:
            here = await desk.follow(stack, "experiments")
            there = await other.follow(stack, "experiments")
            await desk.wake("experiment", experiment)
            for follower in (here, there):
                assert (await until_kind(follower, "experiment"))["id"] == experiment


async def test_each_topic(desk: Desk, book: Book) -> None:
    """What its wake-ups are about is told under its name, with what a page shows of it."""
    experiment = await book.experiment()
    trial = await book.trial(experiment=experiment)
    task = await book.run(trial, 1)
    with ExitStack() as stack:

        async def told(topic: str, kind: str, id: object, **fields: object) -> None:
            follower = followers[topic]
            change = await until_kind(follower, kind, **fields)
            assert change["id"] == id

        names = ["agents", "workspaces", "models", "master", "job-queues/default", "experiments"]
        names += [f"experiments/{experiment}"]
        names += [f"experiments/{experiment}/trials", f"trials/{trial}", "projects/1/experiments", "users/1"]
        followers = {name: await desk.follow(stack, name) for name in names}
        async with desk.others.transaction() as conn:
            await conn.execute("update allocations set state = 'ASSIGNED' where allocation_id = $1", task.allocation_id)
            await notify(conn, "allocation", task.allocation_id)
            await conn.execute("update agents set state = 'DRAINING' where agent_id = 'a1'")
            await notify(conn, "agent", "a1")
            await conn.execute("update workspaces set name = 'other' where id = 1")
            await conn.execute("insert into models (name, workspace_id, owner_id) values ('m', 1, 1)")
            await clear_message(conn)
        for topic in (f"trials/{trial}", f"experiments/{experiment}/trials"):
            await told(topic, "trial", trial, state="STATE_STARTING", experimentId=experiment)
        for topic in ("experiments", f"experiments/{experiment}", "projects/1/experiments", "users/1"):
            await told(topic, "experiment", experiment, state="STATE_STARTING", numTrials=1)
        await told("agents", "agent", "a1", draining=True)
        await told("workspaces", "workspace", 1)
        await told("models", "model", 1)
        await told("master", "cluster_message", 1)
        await told("job-queues/default", "job_queue", "default")
        async with desk.others.transaction() as conn:
            await conn.execute("update experiment_documents set name = 'renamed' where experiment_id = $1", experiment)
        await told("experiments", "experiment", experiment, name="renamed")
        await put_out(book.intake, task, 0)
        await told(f"trials/{trial}", "output", task.task_id, trialId=trial)
        async with desk.others.transaction() as conn:
            await conn.execute(
                "update allocations set state = 'TERMINATED', ended_at = now() where task_id = $1", task.task_id
            )
            await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
            await notify(conn, "experiment", experiment)
        for topic in (f"trials/{trial}", f"experiments/{experiment}/trials"):
            await told(topic, "trial", trial, state="STATE_COMPLETED")
        async with desk.others.transaction() as conn:
            await conn.execute("delete from experiments where id = $1", experiment)
        await told(f"experiments/{experiment}", "experiment", experiment, deleted=True)


#: What somebody does, the topic of those who are told, and what they are told of.
EDITS = [
    ("insert into users (id, username) values (7, 'ada')", "users", "user", 7),
    ("update users set display_name = 'Ada' where id = 1", "users", "user", 1),
    ("insert into user_groups (name) values ('lab')", "groups", "group", 1),
    ("insert into user_group_members (group_id, user_id) values (1, 1)", "groups", "group", 1),
    ("delete from user_group_members", "groups", "group", 1),
    (
        "insert into access_tokens (user_id, token_hash, expires_at) values (1, sha256('a'), now() + interval '1 day')",
        *("tokens", "token", 1),
    ),
    ("update access_tokens set revoked_at = now()", "tokens", "token", 1),
    (
        "insert into join_tokens (token_hash, expires_at) values (sha256('b'), now() + interval '1 day')",
        *("join-tokens", "join_token", 1),
    ),
    (
        "insert into templates (name, workspace_id, owner_id, config) values ('t', 1, 1, '{}')",
        "templates",
        "template",
        1,
    ),
    ("delete from templates", "templates", "template", 1),
    (
        "insert into webhooks (name, url, kind, mode) values ('w', 'http://a', 'DEFAULT', 'WORKSPACE')",
        *("webhooks", "webhook", 1),
    ),
    (
        "insert into webhook_deliveries (event_id, webhook_id, event) values (gen_random_uuid(), 1, '{}')",
        *("webhooks", "delivery", 1),
    ),
    ("delete from webhooks", "webhooks", "webhook", 1),
]


async def test_what_people_set_up(desk: Desk, book: Book) -> None:
    """Whoever is told of it has its kind and its number, and nothing of what is in it."""
    await book.experiment()
    with ExitStack() as stack:
        names = dict.fromkeys(topic for _, topic, _, _ in EDITS)
        followers = {name: await desk.follow(stack, name) for name in names}
        for statement, topic, kind, id in EDITS:
            async with desk.others.transaction() as conn:
                await conn.execute(statement)
            expected = {"kind": kind, "id": id}
            changes: list[JsonObject] = []
            while expected not in changes:
                changes += await news(followers[topic])
            # The user whom the experiment was made with may still have been on the way.
            assert all(change in (expected, {"kind": "user", "id": 1}) for change in changes), statement


async def test_the_progress_of_a_running_experiment(desk: Desk, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is read when it is stored, which is a while after its trials said something."""
    monkeypatch.setattr("tenax.master.reading.events.marks._PROGRESS_S", 0.01)
    experiment = await book.experiment()
    with ExitStack() as stack:
        follower = await desk.follow(stack, f"experiments/{experiment}")
        async with desk.others.transaction() as conn:
            await conn.execute("update experiment_progress set progress = 0.5 where experiment_id = $1", experiment)
            await notify(conn, "progress", experiment)
        await until_kind(follower, "experiment", progress=0.5)


async def test_a_list_that_changes_too_much(desk: Desk, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is fetched again: nobody is sent a thousand trials of it."""
    monkeypatch.setattr("tenax.master.reading.events.news.MAX_LIVE_TRIALS", 2)
    experiment = await book.experiment()
    for _ in range(3):
        await book.trial(experiment=experiment)
    with ExitStack() as stack:
        follower = await desk.follow(stack, f"experiments/{experiment}/trials")
        await desk.wake("experiment", experiment)
        await follower.wait(60)
        assert follower.stale == {f"experiments/{experiment}/trials"}
        assert follower.take() == []


def changes(ids: Iterable[int]) -> list[Change]:
    return [Change(number, ("trial", str(id)), ("t",), str(id).encode()) for number, id in enumerate(ids, start=1)]


def test_what_waits_for_a_slow_reader_is_bounded() -> None:
    """The newest of each thing, in turn; beyond the bound nothing, and everything is fetched again."""
    follower = StreamFollower({"t"}, 1, ())
    for change in changes([1, 2, 1, 3, 1]):
        follower.push(change)
    assert follower.position(5) == 0
    assert follower.take() == [b"1", b"2", b"3"]
    assert follower.position(5) == 5
    for change in changes(range(ring.MAX_AT_ONCE + 1)):
        follower.push(change)
    assert len(follower.take()) == ring.MAX_AT_ONCE
    # The last one waits: whoever comes back from here is sent it.
    assert follower.position(ring.MAX_AT_ONCE + 1) == ring.MAX_AT_ONCE
    for change in changes(range(2 * ring.MAX_WAITING)):
        follower.push(change)
        assert len(follower._waiting) <= ring.MAX_WAITING
    assert follower.stale == {"t"}


async def test_streams_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person, and in all; one that ended leaves its place."""
    monkeypatch.setattr(feeds, "MAX_PER_USER", 2)
    monkeypatch.setattr(feeds, "MAX_FOLLOWERS", 3)
    with ExitStack() as stack:
        for _ in range(2):
            await desk.follow(stack, "experiments")
        with pytest.raises(TooOften, match="close some pages"):
            await desk.follow(stack, "experiments")
        await desk.follow(stack, "experiments", user_id=2)
        with pytest.raises(TooOften, match="too many"):
            await desk.follow(stack, "experiments", user_id=3)
    with ExitStack() as stack:
        await desk.follow(stack, "experiments")
    assert desk.feed.followers == 0


async def test_what_nobody_follows_any_more_is_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, in which it still counts."""
    with ExitStack() as stack:
        await desk.follow(stack, "trials/1", "experiments/1/trials", "experiments/1")
    assert len(desk.feed._followed) == 3
    monkeypatch.setattr(feeds, "LINGER_S", -1.0)
    with ExitStack() as stack:
        await desk.follow(stack, "agents")
        assert list(desk.feed._followed) == ["agents"]
