"""The live stream: what changes of some topics, told once, to those who may know it."""

from __future__ import annotations

import asyncio

import pytest

from tenax.jsonvalue import JsonObject
from tenax.master.api.events import stream
from tenax.master.reading.events import feed
from tenax.master.reading.events.ring import Ring
from tenax.master.reading.events.topics import MAX_TOPICS
from tenax.master.store.database.wakeups import notify
from tests.kits.api import Api, bearer
from tests.kits.master.follower import following
from tests.kits.master.server import serving
from tests.kits.telemetry import SINGLE, Book


@pytest.fixture
def desk(api: Api) -> Book:
    """That an experiment was made is no news to who follows it afterwards, however late word of it comes."""

    class Heard(Book):
        async def experiment(self, searcher: JsonObject = SINGLE) -> int:
            made = await super().experiment(searcher)
            await api.heard()
            return made

    return Heard(api.master.db, api.master.intake)


async def set_state(api: Api, experiment: int, state: str) -> None:
    """As whoever changes it does: the row, and in the same transaction the wake-up."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = $2 where id = $1", experiment, state)
        await notify(conn, "experiment", experiment)


async def test_a_change_comes_with_what_is_shown_of_it(api: Api, desk: Book) -> None:
    """Hello names version, contract and position; then what changed of what is followed, with its fields."""
    mine, other = await desk.experiment(), await desk.experiment()
    async with serving(api) as port, following(port, bearer(api.user), f"experiments/{mine}") as page:
        assert page.headers["content-type"].startswith("text/event-stream")
        hello = await page.hello()
        assert hello["topics"] == [f"experiments/{mine}"]
        assert hello["refused"] == {}
        assert all(hello[name] for name in ("version", "schema", "masterId", "cursor"))
        await set_state(api, other, "PAUSED")
        await set_state(api, mine, "PAUSED")
        sent = await page.event()
        assert sent is not None
        assert (sent.name, sent.data["kind"], sent.data["id"]) == ("change", "experiment", mine)
        assert sent.data["state"] == "STATE_PAUSED"
        assert sent.cursor


async def test_what_comes_is_what_lists_show(api: Api, desk: Book) -> None:
    """Each field of an experiment that failed, and of its trial: the same as the API says at that moment."""
    trial = await desk.trial()
    experiment = int((await api.user.get(f"/api/v1/trials/{trial}")).json()["trial"]["experimentId"])
    topics = (f"experiments/{experiment}", f"trials/{trial}")
    async with serving(api) as port, following(port, bearer(api.user), *topics) as page:
        await page.hello()
        await desk.report(trial, "training", 7, {"loss": 0.5})
        async with api.master.db.transaction() as conn:
            await conn.execute(
                "update trials set state = 'ERROR', reason = 'out of memory', ended_at = now() where id = $1", trial
            )
            await conn.execute(
                "update experiments set state = 'ERROR', reason = 'trial failed', ended_at = now() where id = $1",
                experiment,
            )
            await notify(conn, "experiment", experiment)
        for kind, id in (("experiment", experiment), ("trial", trial)):
            shown = (await api.user.get(f"/api/v1/{kind}s/{id}")).json()[kind]
            change = await page.change(kind, id, state="STATE_ERROR")
            assert {name: value for name, value in change.items() if name != "kind"} == {
                name: shown[name] for name in change if name != "kind"
            }
            assert change["endTime"]
        assert shown["totalBatchesProcessed"] == 7


@pytest.mark.parametrize("edit", [{"description": "why"}, {"labels": ["night"]}, {"notes": "what came of it"}])
async def test_what_people_write_is_told(api: Api, desk: Book, edit: dict[str, object]) -> None:
    """Each edit, though nothing else of the experiment is other than it was; notes, which may be long, by a digest."""
    experiment = await desk.experiment()
    at = f"/api/v1/experiments/{experiment}"
    async with serving(api) as port, following(port, bearer(api.user), f"experiments/{experiment}") as page:
        await page.hello()
        assert (await api.admin.patch(at, {"name": "known from now on"})).status_code == 200
        before = await page.change("experiment", experiment, name="known from now on")
        assert (await api.admin.patch(at, edit)).status_code == 200
        shown = (await api.user.get(at)).json()["experiment"]
        told = await page.change("experiment", experiment, notesDigest=shown["notesDigest"])
        assert {name: shown[name] for name in edit} == edit
        written = ("description", "labels", "notesDigest")
        assert {name: told[name] for name in written} == {name: shown[name] for name in written}
        assert told != before
        assert "notes" not in told


async def test_whoever_comes_back_has_missed_nothing(api: Api, desk: Book) -> None:
    """From its position, given either way, also with more topics than before; what is new among them is fetched."""
    one, two = await desk.experiment(), await desk.experiment()
    topics = (f"experiments/{one}", f"experiments/{two}")
    token = bearer(api.user)
    async with serving(api) as port:
        async with following(port, token, topics[0]) as page:
            first = str((await page.hello())["cursor"])
        async with following(port, token, topics[0]) as watching:
            await watching.hello()
            await set_state(api, one, "PAUSED")
            await watching.change("experiment", one)
            for how in ({"cursor": first}, {"last_event_id": first}):
                async with following(port, token, *topics, **how) as page:
                    assert (await page.hello())["topics"] == list(topics)
                    assert await page.until("reset") == {"topics": [topics[1]]}
                    assert (await page.change("experiment", one))["state"] == "STATE_PAUSED"
            async with following(port, token, topics[0], cursor=page.cursor) as page:
                # What it had is not sent again.
                await page.hello()
                await set_state(api, one, "ACTIVE")
                assert (await page.until("change"))["state"] == "STATE_QUEUED"


@pytest.mark.parametrize("cursor", ["deadbeef-1", "-", "1", "{epoch}-999999", "{epoch}-x", "{epoch}-"])
async def test_a_position_that_means_nothing_here_is_a_reset(api: Api, desk: Book, cursor: str) -> None:
    """Another master's, one of before a restart, one that is made up: what is in view is fetched again."""
    topic = f"experiments/{await desk.experiment()}"
    async with serving(api) as port:
        async with following(port, bearer(api.user), topic) as page:
            epoch = str((await page.hello())["cursor"]).partition("-")[0]
        async with following(port, bearer(api.user), topic, cursor=cursor.format(epoch=epoch)) as page:
            await page.hello()
            assert await page.until("reset") == {"topics": [topic]}


async def test_what_was_forgotten_is_a_reset(api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """A position older than what is remembered; and a topic that nobody followed for a while."""
    experiment = await desk.experiment()
    topic, token = f"experiments/{experiment}", bearer(api.user)
    api.master.feed._ring = Ring(remembered=2)
    async with serving(api) as port:
        async with following(port, token, topic) as page:
            old = str((await page.hello())["cursor"])
            for state in ("PAUSED", "ACTIVE", "PAUSED", "ACTIVE"):
                await set_state(api, experiment, state)
                await page.change("experiment", experiment)
            newest = page.cursor
            async with following(port, token, topic, cursor=old) as late:
                await late.hello()
                assert await late.until("reset") == {"topics": [topic]}
        monkeypatch.setattr(feed, "LINGER_S", -1.0)
        while api.master.feed.followers:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0)
        async with following(port, token, topic, cursor=newest) as page:
            await page.hello()
            assert await page.until("reset") == {"topics": [topic]}


async def test_what_the_listener_may_have_missed_is_a_reset(api: Api, desk: Book) -> None:
    """Its connection was lost and made again: nobody knows what was said meanwhile, and old positions are void."""
    topic, token = f"experiments/{await desk.experiment()}", bearer(api.user)
    async with serving(api) as port, following(port, token, topic) as page:
        old = str((await page.hello())["cursor"])
        async with api.master.db.connection() as conn:
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name like '%listener' and datname = current_database()"
            )
        assert await page.until("reset") == {"topics": [topic]}
        async with following(port, token, topic, cursor=old) as again:
            await again.hello()
            assert await again.until("reset") == {"topics": [topic]}


async def test_a_stream_ends_with_the_right_to_it(api: Api, desk: Book) -> None:
    """Logged out, deactivated: what changes after that is not sent, and the last event says why; others go on."""
    experiment = await desk.experiment()
    topic = f"experiments/{experiment}"
    leaving = await api.login("determined", api.passwords["determined"])
    async with (
        serving(api) as port,
        following(port, bearer(leaving), topic) as logged_out,
        following(port, bearer(api.user), topic) as deactivated,
        following(port, bearer(api.admin), topic) as stays,
    ):
        for page in (logged_out, deactivated, stays):
            await page.hello()
        assert (await leaving.post("/api/v1/auth/logout")).status_code == 200
        (last,) = await logged_out.rest()
        assert last.name == "end"
        assert (await api.admin.patch("/api/v1/users/2", {"active": False})).status_code == 200
        await set_state(api, experiment, "PAUSED")
        assert [sent.name for sent in await deactivated.rest()] == ["end"]
        await stays.change("experiment", experiment)


async def test_what_may_not_be_followed_is_refused_by_name(api: Api, desk: Book) -> None:
    """What is not there, a pool that there is not, another person, also for an administrator; the rest is followed."""
    mine = f"experiments/{await desk.experiment()}"
    refused = ["experiments/99", "experiments/99/trials", "projects/99/experiments", "trials/99", "tasks/x"]
    refused += ["job-queues/nowhere", "users/1", "users/9223372036854775807", "join-tokens"]
    async with serving(api) as port, following(port, bearer(api.user), mine, "users/2", *refused) as page:
        hello = await page.hello()
        assert hello["topics"] == [mine, "users/2"]
        assert sorted(hello["refused"]) == sorted(refused)
    assert (await api.user.get("/api/v1/events", topic="runs")).status_code == 400
    assert (await api.user.get("/api/v1/events")).status_code == 400
    many = [f"experiments/{number}" for number in range(1, MAX_TOPICS + 2)]
    assert (await api.user.get("/api/v1/events", topic=many)).status_code == 400


async def test_rights_are_asked_again_when_they_change(api: Api, desk: Book) -> None:
    """A topic that may not be followed any more is taken from the stream, which goes on with the rest."""
    gone, stays = await desk.experiment(), await desk.experiment()
    topics = (f"experiments/{gone}", f"experiments/{stays}")
    async with serving(api) as port, following(port, bearer(api.user), *topics) as page:
        await page.hello()
        async with api.master.db.transaction() as conn:
            await conn.execute("delete from experiments where id = $1", gone)
            await conn.execute("update users set display_name = 'D' where id = 2")
        assert list((await page.until("refused"))["topics"]) == [topics[0]]
        await set_state(api, stays, "PAUSED")
        await page.change("experiment", stays)


async def test_it_ends_with_its_master(api: Api) -> None:
    """In good order, without an error, so that a page tries again."""
    async with serving(api) as port, following(port, bearer(api.user), "experiments") as page:
        await page.hello()
        api.master.shutdown.set()
        assert await page.rest() == []


async def test_a_connection_where_nothing_happens_is_kept_open(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments, which nobody is told of, so that no proxy takes it for dead."""
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.01)
    async with serving(api) as port, following(port, bearer(api.user), "experiments") as page:
        await page.hello()
        while page.comments < 3:
            await page.comment()
