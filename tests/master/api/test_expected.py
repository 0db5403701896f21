"""Two who edit the same thing: the second is told, and nothing is lost to another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from tenax.config.master import MasterSettings, WebhookSettings
from tenax.jsonvalue import JsonObject
from tests.kits.api import Api
from tests.kits.database import until_somebody_waits
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.master.workspaces import project, workspace


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """Webhooks may go to this machine."""
    return master_settings.model_copy(update={"webhooks": WebhookSettings(allowed_networks=("127.0.0.0/8",))})


@dataclass(frozen=True)
class Case:
    """One kind of thing, and how it is edited."""

    make: Callable[[Api], Awaitable[object]]
    path: str
    #: As it is, as the first makes it, and as the second would.
    begun: JsonObject
    first: JsonObject
    second: JsonObject
    method: str = "PATCH"
    #: Where the answer of the GET shows it.
    shown: str = ""
    #: What else a change has to say.
    always: JsonObject | None = None


async def _experiment(api: Api) -> object:
    return await create(api, CONFIG)


async def _project(api: Api) -> object:
    await workspace(api)
    return await project(api, 2, "begun")


async def _model(api: Api) -> object:
    return await api.user.post("/api/v1/models", {"name": "begun", "notes": "begun"})


async def _version(api: Api) -> object:
    await report(await running(api), UUID, 1)
    await _model(api)
    return await api.user.post("/api/v1/models/1/versions", {"checkpointUuid": UUID, "notes": "begun"})


async def _webhook(api: Api) -> object:
    await workspace(api)
    url = "http://127.0.0.1:9/begun"
    body = {"url": url, "webhookType": "WEBHOOK_TYPE_DEFAULT", "name": "w", "workspaceId": 2}
    trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}
    return await api.user.post("/api/v1/webhooks", {**body, "triggers": [trigger]})


def _address(name: str) -> JsonObject:
    return {"url": f"http://127.0.0.1:9/{name}"}


CASES = {
    "the name of an experiment": Case(
        _experiment,
        "/api/v1/experiments/1",
        {"name": "digits", "labels": ["vision", "small"]},
        {"name": "first", "labels": ["b"]},
        {"name": "second", "labels": []},
        shown="experiment",
    ),
    "a project": Case(
        _project, "/api/v1/projects/2", {"name": "begun"}, {"name": "first"}, {"name": "second"}, shown="project"
    ),
    "a workspace": Case(
        workspace,
        "/api/v1/workspaces/2",
        {"name": "vision"},
        {"name": "first"},
        {"name": "second"},
        shown="workspace",
    ),
    "a model": Case(
        _model, "/api/v1/models/1", {"notes": "begun"}, {"notes": "first"}, {"notes": "second"}, shown="model"
    ),
    "a version": Case(
        _version,
        "/api/v1/models/1/versions/1",
        {"notes": "begun"},
        {"notes": "first"},
        {"notes": "second"},
        shown="modelVersion",
    ),
    "a user": Case(
        lambda api: api.admin.get("/api/v1/users/2"),
        "/api/v1/users/2",
        {"displayName": ""},
        {"displayName": "first"},
        {"displayName": "second"},
        shown="user",
    ),
    "a group": Case(
        lambda api: api.admin.post("/api/v1/groups", {"name": "begun"}),
        "/api/v1/groups/1",
        {"name": "begun"},
        {"name": "first"},
        {"name": "second"},
        method="PUT",
        shown="group",
    ),
    "a token": Case(
        lambda api: api.admin.post("/api/v1/tokens", {"userId": 1, "description": "begun"}),
        "/api/v1/tokens/1",
        {"description": "begun"},
        {"description": "first"},
        {"description": "second"},
    ),
    "a webhook": Case(_webhook, "/api/v1/webhooks/1", _address("begun"), _address("first"), _address("second")),
    "a template": Case(
        lambda api: api.admin.post("/api/v1/templates/t", {"config": {"name": "begun"}}),
        "/api/v1/templates/t",
        {"config": {"name": "begun"}},
        {"config": {"name": "first"}},
        {"config": {"name": "second"}},
        method="PUT",
        shown="template",
    ),
}


async def _now(api: Api, case: Case) -> JsonObject:
    """The fields of a case, as the master shows them."""
    if "tokens" in case.path:
        shown = (await api.admin.get("/api/v1/tokens")).json()["tokenInfo"][0]
    elif "webhooks" in case.path:
        shown = (await api.admin.get("/api/v1/webhooks")).json()["webhooks"][0]
    else:
        shown = (await api.admin.get(case.path)).json()[case.shown]
    return {name: shown[name] for name in case.begun}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_second_is_told_and_changes_nothing(api: Api, case: Case) -> None:
    """Who has read it again may save; who expects nothing, as Determined's clients, replaces what is there."""
    await case.make(api)
    assert await _now(api, case) == case.begun
    done = await api.admin.ask(case.method, case.path, {**case.first, "expected": case.begun})
    assert done.status_code == 200, done.text
    late = await api.admin.ask(case.method, case.path, {**case.second, "expected": case.begun})
    assert (late.status_code, "changed meanwhile" in refusal(late)) == (412, True), late.text
    for name in case.begun:
        assert name in refusal(late)
    assert await _now(api, case) == case.first
    again = await api.admin.ask(case.method, case.path, {**case.second, "expected": case.first})
    assert again.status_code == 200, again.text
    assert await _now(api, case) == case.second
    whatever = await api.admin.ask(case.method, case.path, case.first)
    assert (whatever.status_code, await _now(api, case)) == (200, case.first)


async def test_only_what_is_named_is_compared(api: Api) -> None:
    """Who changes the notes does not hold up who changes the name; a field that there is none of is no agreement."""
    await _experiment(api)
    path = "/api/v1/experiments/1"
    assert (await api.user.patch(path, {"notes": "theirs", "expected": {"notes": ""}})).status_code == 200
    assert (await api.user.patch(path, {"name": "mine", "expected": {"name": "digits"}})).status_code == 200
    nested = {"config.resources.priority": 42, "config.resources.nothing.such": None}
    assert (await api.user.patch(path, {"resources": {"priority": 7}, "expected": nested})).status_code == 200
    late = await api.user.patch(path, {"resources": {"priority": 8}, "expected": nested})
    assert (late.status_code, "config.resources.priority" in refusal(late)) == (412, True)
    odd = await api.user.patch(path, {"name": "x", "expected": {"nmae": "mine"}})
    assert (odd.status_code, "expected.nmae" in refusal(odd)) == (400, True)


async def test_what_is_replaced_as_a_whole_is_compared_as_one(api: Api) -> None:
    """What somebody else added to it would be lost."""
    await api.user.post("/api/v1/models", {"name": "m", "metadata": {"a": 1}})
    path, begun = "/api/v1/models/m", {"metadata": {"a": 1}}
    assert (await api.user.patch(path, {"metadata": {"a": 1, "b": 2}, "expected": begun})).status_code == 200
    assert (await api.user.patch(path, {"metadata": {"a": 3}, "expected": begun})).status_code == 412
    assert (await api.user.get(path)).json()["model"]["metadata"] == {"a": 1, "b": 2}


async def test_a_place_in_the_queue_is_that_which_was_seen(api: Api) -> None:
    """Of several changes none is made where one is overtaken."""
    for _ in range(2):
        await create(api)
    async with api.master.db.connection() as conn:
        jobs = [row["job_id"] for row in await conn.fetch("select job_id from jobs")]

    async def change(*updates: JsonObject) -> int:
        return (await api.user.post("/api/v1/job-queues", {"updates": list(updates)})).status_code

    first = {"jobId": jobs[0], "priority": 10, "expected": {"priority": 42, "weight": 1, "resourcePool": "default"}}
    assert await change(first) == 200
    assert await change({"jobId": jobs[1], "priority": 20}, {**first, "priority": 30}) == 412
    async with api.master.db.connection() as conn:
        stored = dict(await conn.fetch("select job_id, priority from jobs"))
    assert stored == {jobs[0]: 10, jobs[1]: 42}
    assert await change({"jobId": jobs[0], "expected": {"priority": 10}}) == 400


async def test_the_message_to_everyone_is_that_which_was_seen(api: Api) -> None:
    """Two that are set at once, where there was none: one of them is."""
    path = "/api/v1/master/cluster_message"
    none: JsonObject = {"clusterMessage": None}

    async def put(message: str, expected: JsonObject) -> int:
        return (await api.admin.ask("PUT", path, {"message": message, "expected": expected})).status_code

    statuses = await asyncio.gather(put("first", none), put("second", none))
    assert sorted(statuses) == [200, 412]
    shown = (await api.admin.get(path)).json()["clusterMessage"]
    seen: JsonObject = {"clusterMessage.createdTime": shown["createdTime"]}
    assert await put("third", seen) == 200
    assert await put("fourth", seen) == 412
    assert (await api.admin.get(path)).json()["clusterMessage"]["message"] == "third"


async def test_a_template_that_is_gone_is_not_made_again(api: Api) -> None:
    """By who only wanted to change it."""
    reply = await api.admin.ask("PUT", "/api/v1/templates/t", {"config": {"name": "x"}, "expected": {"name": "t"}})
    assert (reply.status_code, "meanwhile" in refusal(reply)) == (404, True)
    assert (await api.admin.get("/api/v1/templates/t")).status_code == 404


async def test_nobody_writes_between_the_check_and_the_change(api: Api) -> None:
    """Of two that save at the same instant one is told."""
    await _experiment(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("select 1 from experiments where id = 1 for update")
        body = {"expected": {"name": "digits"}}
        saves = [
            asyncio.create_task(api.user.patch("/api/v1/experiments/1", {**body, "name": name}))
            for name in ("one", "other")
        ]
        await until_somebody_waits(api.master.db)
    assert sorted([(await save).status_code for save in saves]) == [200, 412]
