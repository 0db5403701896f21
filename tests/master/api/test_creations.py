"""Requests that create something, and an answer that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tenax.master.api.http.routing import creates
from tenax.master.app import ROUTES
from tenax.master.store.database import idempotency
from tenax.master.store.database.connection import Database
from tests.kits.api import Api, Client
from tests.kits.master.unmanaged import trial
from tests.kits.proxy import Proxy, proxied

PATH = "/api/v1/experiments"
CONFIG = "name: e\nentrypoint: x\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 0}\n"
BODY = {"config": CONFIG, "unmanaged": True}
HOOK = {
    "name": "hook",
    "url": "http://192.0.2.1/",
    "webhookType": "WEBHOOK_TYPE_DEFAULT",
    "mode": "WEBHOOK_MODE_SPECIFIC",
    "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM"}],
}
#: POSTs whose names sound like it, and that make nothing new when they are sent again, with what makes them one.
ONE_BY_THEMSELVES = {
    "LaunchNotebook": "it is not offered",
    "LaunchShell": "it is not offered",
    "LaunchTensorboard": "it is not offered",
    "PostAllocationAcceleratorData": "the allocation",
    "PostAllocationProxyAddress": "the allocation",
    "PostCheckpointMetadata": "the checkpoint",
    "PostPageTicket": "half a minute: one that nobody got is good for nothing, and its answer is kept nowhere",
    "PostRunMetadata": "the run",
    "PostTaskLogs": "output, whose sender goes by what was answered",
    "PostTrialProfilerMetricsBatch": "group and step",
    "PostTrialRunnerMetadata": "the trial",
    "PostUnmanagedLogs": "output, whose sender goes by what was answered",
    "PostUserActivity": "the user",
    "PostUserSetting": "the user",
}


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    """Before the database of this test."""
    async with proxied(database_url) as made:
        yield made


@pytest.fixture
async def database(proxy: Proxy) -> AsyncIterator[Database]:
    """Through the proxy."""
    opened = await Database.open(proxy.url, max_connections=16)
    yield opened
    await opened.close()


def keyed(api: Api, client: Client, key: str) -> Client:
    """The same caller, who gives a key."""
    return api.client({"Authorization": client._http.headers["authorization"], "Idempotency-Key": key})


async def experiments(api: Api) -> int:
    async with api.master.db.connection() as conn:
        return int(await conn.fetchval("select count(*) from experiments"))


async def test_a_lost_answer_is_not_an_invitation_to_create_it_again(api: Api, proxy: Proxy) -> None:
    """It is there, and nobody can know that: the answer says so, and is none that clients try again by themselves."""
    proxy.lose_next_commit()
    reply = await api.admin.post("/api/v1/webhooks", HOOK)
    assert reply.status_code == 500, reply.text
    assert "retry-after" not in reply.headers
    assert "look whether it is there" in reply.json()["error"]["message"]
    assert len((await api.admin.get("/api/v1/webhooks")).json()["webhooks"]) == 1


async def test_with_a_key_it_is_sent_again_and_made_once(api: Api, proxy: Proxy) -> None:
    """The answer that was lost is given when it is sent again."""
    user = keyed(api, api.user, "k1")
    proxy.lose_next_commit()
    reply = await user.post(PATH, BODY)
    assert reply.status_code == 503, reply.text
    assert int(reply.headers["retry-after"]) >= 1
    again = await user.post(PATH, BODY)
    assert again.status_code == 200, again.text
    assert await experiments(api) == 1
    assert (await user.post(PATH, BODY)).json() == again.json()
    assert await experiments(api) == 1


async def test_what_was_not_committed_was_not_done(api: Api, proxy: Proxy) -> None:
    """A connection that is lost before that is "try again", with a key and without."""
    await proxy.drop()
    for client in (api.admin, keyed(api, api.admin, "k1")):
        reply = await client.post("/api/v1/webhooks", HOOK)
        assert reply.status_code == 503, reply.text
        assert int(reply.headers["retry-after"]) >= 1
    proxy.restore()
    assert (await api.admin.get("/api/v1/webhooks")).json()["webhooks"] == []


async def test_the_start_of_a_run_is_one_however_often_it_is_sent(api: Api, proxy: Proxy) -> None:
    """No client gives a key for it: until something is reported of the run, its maker's start is that of the run."""
    number = await trial(api, start=False)
    start = f"/api/v1/trials/{number}/start"
    proxy.lose_next_commit()
    assert (await api.user.post(start, {})).status_code == 503
    sent = await asyncio.gather(*(api.user.post(start, {"resume": True}) for _ in range(3)))
    assert [reply.json()["trialRunId"] for reply in sent] == [1, 1, 1]
    # Somebody else's is another one, and so is what comes after a sign of life, a report, or a while.
    assert (await api.admin.post(start, {})).json()["trialRunId"] == 2
    assert (await api.user.post(start, {})).json()["trialRunId"] == 3
    assert (await api.user.patch(f"/api/v1/trials/{number}", {})).status_code == 200
    assert (await api.user.post(start, {})).json()["trialRunId"] == 4
    metrics = {"trialId": number, "trialRunId": 4, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}}
    reported = await api.user.post(f"/api/v1/trials/{number}/metrics", {"group": "training", "metrics": metrics})
    assert reported.status_code == 200, reported.text
    assert (await api.user.post(start, {})).json()["trialRunId"] == 5
    async with api.master.db.transaction() as conn:
        await conn.execute("update unmanaged_trials set begun_at = now() - interval '11 minutes'")
    assert (await api.user.post(start, {})).json()["trialRunId"] == 6


async def test_two_at_once_with_one_key_are_one(api: Api) -> None:
    """The second waits for the first, and gets its answer."""
    user = keyed(api, api.user, "k1")
    replies = await asyncio.gather(*(user.post(PATH, BODY) for _ in range(3)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["experiment"]["id"] for reply in replies}) == 1
    assert await experiments(api) == 1


async def test_only_a_key_makes_a_repeat(api: Api) -> None:
    """The same content twice is two; so are two users' equal keys."""
    for client in (api.user, api.user, keyed(api, api.user, "k1"), keyed(api, api.admin, "k1")):
        assert (await client.post(PATH, BODY)).status_code == 200
    assert await experiments(api) == 4


async def test_a_key_is_of_one_request(api: Api) -> None:
    """With another one it is refused; what was refused has used up nothing."""
    user = keyed(api, api.user, "k1")
    assert (await user.post(PATH, {**BODY, "config": "name: ["})).status_code == 400
    assert (await user.post(PATH, BODY)).status_code == 200
    reply = await user.post(PATH, {**BODY, "projectId": 1})
    assert reply.status_code == 400
    assert "use a new one" in reply.json()["error"]["message"]
    assert (await keyed(api, api.user, "k" * 256).post(PATH, BODY)).status_code == 400
    assert await experiments(api) == 1


async def test_a_key_is_kept_for_a_day(api: Api) -> None:
    """Then it is forgotten, and what comes with it is new."""
    user = keyed(api, api.user, "k1")
    assert (await user.post(PATH, BODY)).status_code == 200
    async with api.master.db.transaction() as conn:
        assert not await idempotency.any_due(conn)
        await conn.execute("update idempotency_keys set created_at = now() - interval '25 hours'")
        assert await idempotency.any_due(conn)
        await idempotency.forget(conn)
    assert (await user.post(PATH, BODY)).status_code == 200
    assert await experiments(api) == 2


async def test_a_secret_is_kept_nowhere(api: Api) -> None:
    """A token that is asked for again is not told again."""
    user = keyed(api, api.user, "k1")
    body = {"userId": 2}
    token = (await user.post("/api/v1/tokens", body)).json()["token"]
    reply = await user.post("/api/v1/tokens", body)
    assert reply.status_code == 409
    async with api.master.db.connection() as conn:
        assert token.encode() not in await conn.fetchval("select answer from idempotency_keys")


def test_whatever_makes_something_new_says_so() -> None:
    """Of a POST whose name sounds like making, it is declared, or stands above with its reason."""
    sounding = ("Create", "Post", "Add", "Launch", "Continue", "Legacy")
    posts = [route for routes in ROUTES for route in routes.declared if route.method == "POST"]
    silent = {route.operation for route in posts if route.operation.startswith(sounding) and not creates(route.handler)}
    assert silent - {"LegacyLogin", "LegacyLogout"} == set(ONE_BY_THEMSELVES)
