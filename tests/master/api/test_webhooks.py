"""Webhooks over the wire: made, seen, changed and tried by whom they belong to; what is wrong is refused in words."""

from __future__ import annotations

import pytest

from tenax.config.master import MasterSettings, WebhookSettings
from tests.kits.api import Api
from tests.kits.master.experiments import create
from tests.kits.master.refusals import refusal
from tests.kits.receiver import receiving

HOOK: dict[str, object] = {
    "name": "team",
    "url": "http://hooks.example/services/T0/s3cr3t",
    "webhookType": "WEBHOOK_TYPE_DEFAULT",
    "mode": "WEBHOOK_MODE_SPECIFIC",
    "triggers": [
        {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}},
        {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "out of .*memory"}},
        {"triggerType": "TRIGGER_TYPE_CUSTOM"},
    ],
}


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """Messages may go to this machine."""
    return master_settings.model_copy(update={"webhooks": WebhookSettings(allowed_networks=("127.0.0.0/8",))})


async def made(api: Api, **more: object) -> dict[str, object]:
    reply = await api.admin.post("/api/v1/webhooks", {**HOOK, **more})
    assert reply.status_code == 200, reply.text
    webhook: dict[str, object] = reply.json()["webhook"]
    return webhook


async def test_a_webhook_comes_back_as_it_was_made(api: Api) -> None:
    """With its triggers, each with a number; then it has another address; then it is gone."""
    webhook = await made(api)
    triggers = webhook.pop("triggers")
    assert [(t["triggerType"], t["condition"]) for t in triggers] == [
        ("TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", {"state": "COMPLETED"}),
        ("TRIGGER_TYPE_TASK_LOG", {"regex": "out of .*memory"}),
        ("TRIGGER_TYPE_CUSTOM", {}),
    ]
    assert {t["webhookId"] for t in triggers} == {webhook["id"]}
    assert webhook == {"id": webhook["id"], "workspaceId": None, **{k: v for k, v in HOOK.items() if k != "triggers"}}
    path = f"/api/v1/webhooks/{webhook['id']}"
    assert (await api.admin.patch(path, {"url": "https://other.example/"})).status_code == 200
    assert (await api.admin.get(path)).json()["webhook"]["url"] == "https://other.example/"
    assert [w["id"] for w in (await api.admin.get("/api/v1/webhooks")).json()["webhooks"]] == [webhook["id"]]
    assert (await api.admin.delete(path)).status_code == 200
    assert (await api.admin.get(path)).status_code == 404
    assert (await api.admin.get("/api/v1/webhooks")).json() == {"webhooks": []}


async def test_an_address_is_shown_to_those_who_may_change_it(api: Api) -> None:
    """Whoever knows it may write there; all others see the host."""
    webhook = await made(api)
    for path in ("/api/v1/webhooks", f"/api/v1/webhooks/{webhook['id']}"):
        assert "s3cr3t" in (await api.admin.get(path)).text
        shown = (await api.user.get(path)).text
        assert "s3cr3t" not in shown
        assert "http://hooks.example/********" in shown


async def test_a_workspace_has_its_owners_webhooks(api: Api) -> None:
    """Its owner makes, tries and deletes them; one of all workspaces is the administrators'."""
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into workspaces (id, name, owner_id) values (77, 'mine', 2), (78, 'theirs', 1)")
    assert (await api.user.post("/api/v1/webhooks", HOOK)).status_code == 403
    assert (await api.user.post("/api/v1/webhooks", {**HOOK, "workspaceId": 78})).status_code == 403
    assert (await api.user.post("/api/v1/webhooks", {**HOOK, "workspaceId": 79})).status_code == 404
    mine = (await api.user.post("/api/v1/webhooks", {**HOOK, "workspaceId": 77})).json()["webhook"]
    assert mine["url"] == HOOK["url"]
    theirs = await made(api, workspaceId=78)
    for number, status in ((mine["id"], 200), (theirs["id"], 403)):
        path = f"/api/v1/webhooks/{number}"
        assert (await api.user.patch(path, {"url": "http://192.0.2.7/"})).status_code == status
        assert (await api.user.get(f"{path}/deliveries")).status_code == status
        assert (await api.user.delete(path)).status_code == status


async def test_an_archived_workspace_takes_no_webhook(api: Api) -> None:
    """As it takes nothing else; whoever unarchives it may make one."""
    number = (await api.user.post("/api/v1/workspaces", {"name": "w"})).json()["workspace"]["id"]
    for verb, status in (("archive", 400), ("unarchive", 200)):
        assert (await api.user.post(f"/api/v1/workspaces/{number}/{verb}")).status_code == 200
        assert (await api.user.post("/api/v1/webhooks", {**HOOK, "workspaceId": number})).status_code == status


async def test_a_name_is_given_once_in_a_workspace(api: Api) -> None:
    """Experiments name webhooks by it."""
    await made(api)
    again = await api.admin.post("/api/v1/webhooks", {**HOOK, "name": "Team"})
    assert (again.status_code, "already exists" in refusal(again)) == (409, True)
    await made(api, workspaceId=1)


async def test_a_webhook_needs_no_name(api: Api) -> None:
    """Nor is the second one without a name refused."""
    assert [(await made(api, name=""))["name"] for _ in range(2)] == ["", ""]


async def test_whose_webhooks_are_listed(api: Api) -> None:
    """Those of all workspaces and of one's own; administrators see every one."""
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into workspaces (id, name, owner_id) values (77, 'mine', 2), (78, 'theirs', 1)")
    every = [(await made(api, **more))["id"] for more in ({}, {"workspaceId": 77}, {"workspaceId": 78})]
    for caller, seen in ((api.admin, every), (api.user, every[:2])):
        assert [hook["id"] for hook in (await caller.get("/api/v1/webhooks")).json()["webhooks"]] == seen


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"url": "hooks.example"}, "url"),
    ({"url": "http://user:pw@hooks.example"}, "url"),
    ({"name": "a\nb"}, "name"),
    ({"mode": "WEBHOOK_MODE_WORKSPACE"}, "works only with mode 'SPECIFIC'"),
    ({"triggers": []}, "triggers"),
    ({"triggers": [{}]}, "triggerType"),
    ({"triggers": [{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "("}}]}, "regex"),
    ({"triggers": [{"triggerType": "TRIGGER_TYPE_TASK_LOG"}]}, "regex"),
    ({"triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"}]}, "state"),
    ({"triggers": [{"triggerType": "TRIGGER_TYPE_NONE"}]}, "triggerType"),
    ({"webhookType": None}, "webhookType"),
    ({"mode": "WEBHOOK_MODE_ALL"}, "mode"),
)


async def test_what_is_wrong_is_named(api: Api) -> None:
    """The field is in the refusal, and nothing is stored."""
    for change, word in WRONG:
        reply = await api.admin.post("/api/v1/webhooks", {**HOOK, **change})
        assert reply.status_code == 400, change
        assert word in refusal(reply)
    assert (await api.admin.get("/api/v1/webhooks")).json() == {"webhooks": []}


async def test_metrics_trigger_nothing(api: Api) -> None:
    """It is said so, rather than kept and never sent."""
    triggers = [{"triggerType": "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED", "condition": {"metric": "loss"}}]
    reply = await api.admin.post("/api/v1/webhooks", {**HOOK, "triggers": triggers})
    assert reply.status_code == 501
    assert "alert()" in refusal(reply)


async def test_a_webhook_is_tried(api: Api) -> None:
    """Once, at once, and how the receiver answered is told; nothing is left in its queue."""
    async with receiving(200, 500) as receiver:
        webhook = await made(api, url=receiver.url)
        path = f"/api/v1/webhooks/{webhook['id']}"
        replies = [(await api.admin.post(f"{path}/test")).json() for _ in range(2)]
    assert replies == [
        {"completed": True, "outcome": "the receiver answered 200"},
        {"completed": False, "outcome": "the receiver answered 500"},
    ]
    assert [received.event["event_type"] for received in receiver.requests] == ["CUSTOM", "CUSTOM"]
    assert (await api.admin.get(f"{path}/deliveries")).json()["pagination"]["total"] == 0


async def test_an_event_of_a_script_is_its_owners(api: Api) -> None:
    """Another user's experiment, or a trial of another experiment, is refused."""
    experiment = (await create(api))["experiment"]["id"]
    body = {"experimentId": experiment, "data": {"title": "t"}}
    assert (await api.user.post("/api/v1/webhooks/custom", body)).status_code == 200
    assert (await api.user.post("/api/v1/webhooks/custom", {**body, "trialId": 4711})).status_code == 404
    assert (await api.user.post("/api/v1/webhooks/custom", {**body, "experimentId": 4711})).status_code == 404
    person = {"user": {"username": "eve"}, "password": "Passw0rd"}
    assert (await api.admin.post("/api/v1/users", person)).status_code == 200
    eve = await api.login("eve", "Passw0rd")
    assert (await eve.post("/api/v1/webhooks/custom", body)).status_code == 403


async def test_the_signing_key_is_for_administrators(api: Api) -> None:
    """It is the same at every start and at every master of the cluster."""
    keys = {(await api.admin.get("/api/v1/webhooks/signing-key")).json()["signingKey"] for _ in range(2)}
    assert len(keys) == 1
    assert len(keys.pop()) == 64
    assert (await api.user.get("/api/v1/webhooks/signing-key")).status_code == 403


@pytest.mark.parametrize("url", ["http://[::1]/x", "http://169.254.169.254/latest"])
async def test_where_nothing_is_sent_no_webhook_is_made(api: Api, url: str) -> None:
    """It is refused when it is made or changed, with the setting that would allow it; a name may mean nothing yet."""
    webhook = await made(api, url="http://not-there-yet.invalid/x")
    for reply in (
        await api.admin.post("/api/v1/webhooks", {**HOOK, "url": url}),
        await api.admin.patch(f"/api/v1/webhooks/{webhook['id']}", {"url": url}),
    ):
        assert reply.status_code == 400, reply.text
        assert "webhooks.allowed_networks" in reply.text


async def test_of_machines_only_webhooks_of_all_workspaces_are_told(api: Api) -> None:
    """Which administrators make; an event that there is not is refused with those that there are."""
    trigger = {"triggerType": "TRIGGER_TYPE_MACHINE", "condition": {"event": "FAILED"}}
    body = {**HOOK, "mode": "WEBHOOK_MODE_WORKSPACE", "triggers": [trigger]}
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into workspaces (id, name, owner_id) values (77, 'mine', 2)")
    for more in ({"workspaceId": 77}, {"mode": "WEBHOOK_MODE_SPECIFIC"}):
        reply = await api.admin.post("/api/v1/webhooks", {**body, **more})
        assert "machines belong to no workspace" in refusal(reply)
    wrong = {**body, "triggers": [{**trigger, "condition": {"event": "failed"}}]}
    assert "is 'failed': one of LAUNCHED, FAILED" in refusal(await api.admin.post("/api/v1/webhooks", wrong))
    assert (await api.user.post("/api/v1/webhooks", body)).status_code == 403
    [kept] = (await api.admin.post("/api/v1/webhooks", body)).json()["webhook"]["triggers"]
    assert (kept["triggerType"], kept["condition"]) == ("TRIGGER_TYPE_UNSPECIFIED", {"event": "FAILED"})
