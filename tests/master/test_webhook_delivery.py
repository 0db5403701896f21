"""Messages to webhooks, from the event to a real receiver: kept, repeated, in order, signed, and sent nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from tenax.backoff import Backoff
from tenax.config.master import MasterSettings, WebhookSettings
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent, ExperimentState
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.loops.loop import PassContext, run
from tenax.master.loops.webhook_delivery import WebhookDelivery
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.webhooks import events as webhook_events
from tenax.master.webhooks.payloads import body_of
from tenax.master.webhooks.sender import Sender, check_url, signature
from tests.kits.api import Api
from tests.kits.cases import answers
from tests.kits.master.experiments import CONFIG, create
from tests.kits.receiver import Receiver, receiving
from tests.kits.rows import add_trial

KEY = "a key that receivers know"
HERE = WebhookSettings(allowed_networks=("127.0.0.0/8",), signing_key=SecretStr(KEY), base_url="https://tenax.example")
EVERYTHING = Woken(frozenset(), full=True)


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """Messages may go to this machine."""
    return master_settings.model_copy(update={"webhooks": HERE})


async def hook(api: Api, receiver: Receiver, *conditions: dict[str, object], **more: object) -> int:
    """A webhook of all workspaces."""
    triggers = conditions or ({"triggerType": "TRIGGER_TYPE_CUSTOM"},)
    body = {"name": f"hook-{id(receiver)}", "url": receiver.url, "webhookType": "WEBHOOK_TYPE_DEFAULT"}
    mode = "WEBHOOK_MODE_WORKSPACE" if conditions else "WEBHOOK_MODE_SPECIFIC"
    reply = await api.admin.post("/api/v1/webhooks", {**body, "mode": mode, "triggers": list(triggers), **more})
    assert reply.status_code == 200, reply.text
    number: int = reply.json()["webhook"]["id"]
    return number


async def naming(api: Api, *receivers: Receiver) -> dict[str, object]:
    """An experiment that names their webhooks."""
    names = ", ".join(f"hook-{id(receiver)}" for receiver in receivers)
    made = await create(api, CONFIG + f"\nintegrations: {{webhooks: {{webhook_name: [{names}]}}}}\n")
    experiment = made["experiment"]
    assert isinstance(experiment, dict)
    return experiment


def on_state(state: str) -> dict[str, object]:
    return {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": state}}


async def alert(api: Api, experiment: object, title: str, **more: object) -> None:
    body = {"experimentId": experiment, "data": {"title": title, "description": "d", "level": "LOG_LEVEL_WARNING"}}
    reply = await api.user.post("/api/v1/webhooks/custom", {**body, **more})
    assert reply.status_code == 200, reply.text


@asynccontextmanager
async def telling(api: Api, settings: WebhookSettings = HERE) -> AsyncIterator[WebhookDelivery]:
    """The loop as it lives in a master."""
    loop = WebhookDelivery(Sender(settings, api.master.cluster.secret), settings.give_up_after, settings.keep_days)
    keeper = LeaseKeeper(api.master.db, api.master.listener)
    works = (run(loop, api.master.db, api.master.listener, keeper), keeper.run())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield loop
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await loop.close()


async def context(api: Api) -> PassContext:
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "webhook_delivery", "test", 3600.0)
    assert lease is not None
    return PassContext(api.master.db, lease)


async def log_of(api: Api, number: int, ended: int = 0) -> list[dict[str, object]]:
    """What is known of the messages of a webhook, the oldest first, once so many have ended."""
    async with asyncio.timeout(60):
        while True:
            shown = (await api.admin.get(f"/api/v1/webhooks/{number}/deliveries")).json()["deliveries"]
            if sum(delivery["state"] != "WAITING" for delivery in shown) >= ended:
                return list(reversed(shown))
            await asyncio.sleep(0.02)


async def test_an_ended_experiment_is_told_with_all_that_a_reader_needs(api: Api) -> None:
    """One message, in the shape that Determined sends, signed over its time and its body."""
    async with receiving() as receiver:
        number = await hook(api, receiver, on_state("CANCELED"), on_state("COMPLETED"))
        experiment = (await create(api))["experiment"]
        async with api.master.db.transaction() as conn:
            await experiments.ask(conn, experiment["id"], ExperimentEvent.KILL, "killed")
            locked = await experiments.lock(conn, experiment["id"])
            await experiments.happen(conn, locked, ExperimentEvent.TRIALS_ENDED)
        async with telling(api):
            await receiver.wait_for(1)
            [entry] = await log_of(api, number, ended=1)
    [received] = receiver.requests
    event = received.event
    assert event.keys() == {"event_id", "event_type", "timestamp", "condition", "event_data"}
    assert (event["event_type"], event["condition"]) == ("EXPERIMENT_STATE_CHANGE", {"state": "CANCELED"})
    shown = event["event_data"]["experiment"]
    assert shown.pop("duration") >= 0
    assert shown == {
        "id": experiment["id"],
        "state": "CANCELED",
        "name": "digits",
        "resource_pool": "default",
        "slots_per_trial": 1,
        "workspace": "Uncategorized",
        "project": "Uncategorized",
    }
    seconds = received.headers["X-Determined-AI-Signature-Timestamp"]
    expected = hmac.new(KEY.encode(), f"{seconds},".encode() + received.body, hashlib.sha256).hexdigest()
    assert received.headers["X-Determined-AI-Signature"] == expected == signature(KEY, int(seconds), received.body)
    assert (entry["state"], entry["attempts"], entry["eventId"]) == ("DELIVERED", 1, event["event_id"])


@answers(
    "webhooks/delivery", "HTTP status >= 500 or connection error: retried with exponential backoff", "below 400: done"
)
async def test_a_receiver_that_fails_first_gets_every_message_in_order(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refusals and a broken connection: repeated with the same id, and nothing overtakes."""
    monkeypatch.setattr("tenax.lifecycle.delivery.BACKOFF", Backoff(first=0.01, ceiling=60.0))
    async with receiving(500, 0, 503) as receiver:
        number = await hook(api, receiver)
        experiment = await naming(api, receiver)
        for title in ("first", "second", "third"):
            await alert(api, experiment["id"], title)
        async with telling(api):
            await receiver.wait_for(6)
            log = await log_of(api, number, ended=3)
    assert [request.event["event_data"]["custom"]["title"] for request in receiver.requests] == ["first"] * 4 + [
        "second",
        "third",
    ]
    assert len({request.event["event_id"] for request in receiver.requests[:4]}) == 1
    assert [(delivery["state"], delivery["attempts"]) for delivery in log] == [
        ("DELIVERED", 4),
        ("DELIVERED", 1),
        ("DELIVERED", 1),
    ]


@answers("webhooks/delivery", "status 400-499: dropped, no retry")
async def test_a_refusal_is_final_and_the_next_message_goes_on(api: Api) -> None:
    """404 is not repeated; what came after it is sent; the log says why."""
    async with receiving(404) as receiver:
        number = await hook(api, receiver)
        experiment = await naming(api, receiver)
        for title in ("first", "second"):
            await alert(api, experiment["id"], title)
        async with telling(api):
            log = await log_of(api, number, ended=2)
    assert [(delivery["state"], delivery["outcome"]) for delivery in log] == [
        ("FAILED", "the receiver answered 404"),
        ("DELIVERED", "the receiver answered 200"),
    ]


async def test_one_receiver_that_fails_does_not_hold_the_others(api: Api) -> None:
    """Each webhook has its own queue."""
    async with receiving(*[503] * 50) as broken, receiving() as sound:
        await hook(api, broken)
        await hook(api, sound)
        experiment = await naming(api, broken, sound)
        for title in ("first", "second"):
            await alert(api, experiment["id"], title)
        async with telling(api):
            await sound.wait_for(2)
            await broken.wait_for(1)
    assert {request.event["event_data"]["custom"]["title"] for request in broken.requests} == {"first"}


async def test_an_event_that_is_rolled_back_is_told_to_nobody(api: Api) -> None:
    """The message is a row of the same transaction."""
    async with receiving() as receiver:
        number = await hook(api, receiver, on_state("CANCELED"))
        experiment = (await create(api))["experiment"]
        with contextlib.suppress(ZeroDivisionError):
            async with api.master.db.transaction() as conn:
                await experiments.ask(conn, experiment["id"], ExperimentEvent.KILL, "killed")
                locked = await experiments.lock(conn, experiment["id"])
                await experiments.happen(conn, locked, ExperimentEvent.TRIALS_ENDED)
                assert await conn.fetchval("select count(*) from webhook_deliveries") == 1
                raise ZeroDivisionError
        assert await log_of(api, number) == []


@answers(
    "webhooks/delivery",
    "events queued while the shipper is down are delivered after it returns; at least once (last batch may repeat)",
)
async def test_an_attempt_whose_master_died_is_made_again(api: Api) -> None:
    """It was counted and nothing more: the next master sends it; the one that lost its lease writes nothing."""
    async with receiving() as receiver:
        number = await hook(api, receiver)
        await alert(api, (await naming(api, receiver))["id"], "first")
        async with api.master.db.transaction() as conn:
            await conn.execute("update webhook_deliveries set attempts = 1")
        lost = await context(api)
        async with api.master.db.transaction() as conn:
            await conn.execute(
                "update leases set epoch = epoch + 1, expires_at = now() where loop = 'webhook_delivery'"
            )
        late = WebhookDelivery(Sender(HERE, b"x"), 60.0, 7)
        late._swept = float("inf")
        await late.make_pass(lost, EVERYTHING)
        await late.close()
        assert receiver.requests == []
        async with telling(api):
            [entry] = await log_of(api, number, ended=1)
    assert (entry["state"], entry["attempts"]) == ("DELIVERED", 2)


async def test_no_script_fills_the_disk(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what may wait for a receiver that takes nothing, events are dropped; the script goes on."""
    monkeypatch.setattr(webhook_events, "MAX_WAITING", 2)
    async with receiving() as receiver:
        number = await hook(api, receiver)
        experiment = (await naming(api, receiver))["id"]
        for title in ("first", "second", "third"):
            await alert(api, experiment, title)
        assert len(await log_of(api, number)) == 2
        async with telling(api):
            await log_of(api, number, ended=2)
        await alert(api, experiment, "fourth")
        assert len(await log_of(api, number)) == 3


async def test_which_webhooks_hear_of_an_experiment(api: Api) -> None:
    """All of its workspace, unless it excludes them; those of one kind only where it names them, by name or number."""
    base = {"url": "http://192.0.2.1/", "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": [on_state("COMPLETED")]}
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into workspaces (id, name) values (77, 'other')")
    numbers = {}
    for name, more in {
        "all": {"mode": "WEBHOOK_MODE_WORKSPACE"},
        "here": {"mode": "WEBHOOK_MODE_WORKSPACE", "workspaceId": 1},
        "there": {"mode": "WEBHOOK_MODE_WORKSPACE", "workspaceId": 77},
        "named": {"mode": "WEBHOOK_MODE_SPECIFIC"},
        "numbered": {"mode": "WEBHOOK_MODE_SPECIFIC", "workspaceId": 1},
    }.items():
        reply = await api.admin.post("/api/v1/webhooks", {"name": name, **base, **more})
        numbers[reply.json()["webhook"]["id"]] = name
    number_of = {name: number for number, name in numbers.items()}
    wishes = {
        "{}": {"all", "here"},
        "{exclude: true}": set(),
        "{webhook_name: [named, there], exclude: true}": {"named"},
        f"{{webhook_id: [{number_of['numbered']}]}}": {"all", "here", "numbered"},
    }
    for wish, expected in wishes.items():
        made = await create(api, CONFIG + f"\nintegrations: {{webhooks: {wish}}}\n")
        async with api.master.db.transaction() as conn:
            await conn.execute("delete from webhook_deliveries")
            await webhook_events.experiment_changed(conn, made["experiment"]["id"], ExperimentState.COMPLETED)
            receivers = {numbers[row["webhook_id"]] for row in await conn.fetch("select * from webhook_deliveries")}
        assert receivers == expected, wish


async def test_a_line_of_output_is_told_once_for_each_task(api: Api) -> None:
    """Patterns are those of webhooks that hear of the experiment; found once, they are not looked for any more."""
    async with receiving() as receiver:
        pattern = {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": ".*CUDA out of memory.*"}}
        await hook(api, receiver, pattern)
        experiment = (await create(api))["experiment"]["id"]
        async with api.master.db.transaction() as conn:
            trial = await add_trial(conn, experiment)
            task = await conn.fetchval("select task_id from trials where id = $1", trial)
            await conn.execute(
                "insert into tasks (task_id, kind, job_id, trial_id) select $1, 'TRIAL', job_id, $2 from experiments"
                " where id = $3 on conflict do nothing",
                task,
                trial,
                experiment,
            )
            [trigger] = await webhook_events.log_triggers(conn, task)
            assert trigger.regex == ".*CUDA out of memory.*"
            results = [
                await webhook_events.log_line_matched(conn, trigger.trigger_id, task, "CUDA out of memory", "a1")
                for _ in range(2)
            ]
            assert results == [True, False]
            assert await webhook_events.log_triggers(conn, task) == []
            assert not await webhook_events.log_line_matched(conn, 4711, task, "x", "a1")
        async with telling(api):
            await receiver.wait_for(1)
    event = receiver.requests[0].event
    assert event["event_type"] == "TASK_LOG"
    line = {"task_id": task, "node_name": "a1", "triggering_log": "CUDA out of memory"}
    assert event["event_data"] == {"task_log": line}


async def test_slack_gets_words_and_a_link_and_no_calls_to_everyone(api: Api) -> None:
    """Markup in a title stays text."""
    async with receiving() as receiver:
        await hook(api, receiver, webhookType="WEBHOOK_TYPE_SLACK")
        experiment = await naming(api, receiver)
        await alert(api, experiment["id"], "<!everyone> look")
        async with telling(api):
            await receiver.wait_for(1)
    message = json.loads(receiver.requests[0].body)
    [block] = message["blocks"]
    assert block["fields"][1]["text"] == "*Title*: &lt;!everyone&gt; look"
    assert "<!everyone>" not in receiver.requests[0].body.decode()
    [about] = message["attachments"][0]["blocks"]
    link = f"<https://tenax.example/det/experiments/{experiment['id']}/overview | digits (#{experiment['id']})>"
    assert about["text"]["text"] == link


async def test_an_alert_says_in_which_state_its_experiment_is(api: Api) -> None:
    """As the condition of its event."""
    async with receiving() as receiver:
        await hook(api, receiver)
        experiment = await naming(api, receiver)
        await alert(api, experiment["id"], "look")
        async with telling(api):
            await receiver.wait_for(1)
    event = receiver.requests[0].event
    assert (event["event_type"], event["condition"]) == ("CUSTOM", {"state": "ACTIVE"})


@pytest.mark.parametrize("alerted", [False, True])
def test_slack_gets_blocks_attachments_and_a_colour(alerted: bool) -> None:
    """As from Determined, to the letter, but for the text of notifications: of a state, and of a script's own event."""
    base, links = "https://tenax.example", {"workspace_id": 1, "project_id": 2}
    experiment = {"id": 3, "name": "a<b", "duration": 3725, "workspace": "W", "project": "P", **links}
    custom = {"title": "look", "description": "at this", "level": "WARNING"}
    for state, words, colour, sign, status in (
        ("COMPLETED", "Your experiment completed successfully 🎉", "#13B670", "✅ ", "Completed"),
        ("ERROR", "Your experiment has stopped with errors", "#DD5040", "❌ ", "Errored"),
        ("ACTIVE", "The status of your experiment is ACTIVE", "#13B670", "", "ACTIVE"),
    ):
        data: dict[str, object] = {"experiment": {**experiment, "state": state}}
        block: dict[str, object] = {"type": "section", "text": {"type": "plain_text", "text": words}}
        if alerted:
            data = {"experiment": {**experiment, "state": state, "trial_id": 5}, "custom": custom}
            own = ("*Level*: WARNING", "*Title*: look", "*Description*: at this")
            block["text"] = {"type": "plain_text", "text": "Event Data"}
            block["fields"] = [{"type": "mrkdwn", "text": field} for field in own]
        message = json.loads(body_of("SLACK", {"event_data": data}, base))
        fields = [
            f"*Status*: {status}",
            "*Duration*: 1h 2min",
            f"*Workspace*: <{base}/det/workspaces/1/projects | W>",
            f"*Project*: <{base}/det/projects/2 | P>",
            *(["*Trial ID*: 5"] if alerted else []),
        ]
        head = f"{sign}<{base}/det/experiments/3/overview | a&lt;b (#3)>"
        about = {
            "type": "section",
            "text": {"type": "mrkdwn", "text": head},
            "fields": [{"type": "mrkdwn", "text": field} for field in fields],
        }
        assert message == {
            "text": ":warning: look" if alerted else words,
            "blocks": [block],
            "attachments": [{"color": colour, "blocks": [about]}],
        }


@pytest.mark.parametrize(
    ("event", "data", "head"),
    [
        ("NOTICE", {"machine": {"id": "m-1", "offer": "a"}}, "Machine m-1 of pool p has a notice of its cloud: a"),
        ("OFFER_OFF", {"offer": {"name": "a"}}, "Offer a of pool p is off until the settings of its provider change"),
        ("BUDGET_NEARLY", {"budget": {}}, "The budget of pool p for machines is nearly spent"),
    ],
)
def test_slack_gets_what_happened_to_machines_in_a_line(event: str, data: dict[str, JsonObject], head: str) -> None:
    """And below it why; what people and clouds write is no link there."""
    [(noun, about)] = data.items()
    shown: JsonObject = {noun: {**about, "resource_pool": "p", "why": "as <!here> says"}}
    sent: JsonObject = {"event_type": "MACHINE", "condition": {"event": event}, "event_data": shown}
    message = json.loads(body_of("SLACK", sent, "https://tenax.example"))
    text = {"type": "mrkdwn", "text": f"{head}\nas &lt;!here&gt; says"}
    assert message == {"text": head, "blocks": [{"type": "section", "text": text}]}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x",
        "http://localhost:1/x",
        "http://[::1]:1/x",
        "http://[::ffff:127.0.0.1]:1/x",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/latest/meta-data",
        "http://[64:ff9b::a9fe:a9fe]/latest/meta-data",
        "http://0.0.0.0:1/x",
        "http://2130706433:1/x",
        "http://[fe80::1]/x",
        "http://224.0.0.1/x",
    ],
)
async def test_nothing_is_sent_to_this_machine_or_its_own_link(url: str) -> None:
    """Nor to where clouds hand out credentials, however the address is written; the words hold no path."""
    outcome = await Sender(WebhookSettings(), b"s").send(url, "DEFAULT", {}, 0)
    assert outcome.final
    assert outcome.status is None
    assert outcome.reason.startswith(("the address is one of this machine", "the address cannot be read"))
    assert "/x" not in outcome.reason


async def test_what_a_name_stands_for_is_not_told() -> None:
    """The words of a failure hold no address of a machine behind it."""
    async with receiving() as gone:
        port = gone.url.rpartition(":")[2].partition("/")[0]
    settings = WebhookSettings(allowed_networks=("127.0.0.0/8", "::1/128"))
    outcome = await Sender(settings, b"s").send(f"http://localhost:{port}/x", "DEFAULT", {}, 0)
    assert outcome.reason == "the receiver cannot be reached: connection refused"


async def test_a_redirection_is_not_followed(api: Api) -> None:
    """It would lead to where the address was not looked at."""
    async with receiving(302) as receiver:
        outcome = await Sender(HERE, b"s").send(receiver.url, "DEFAULT", {}, 0)
    assert outcome.status == 302
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://h/x", "file:///etc/passwd", "http://", "http://u:p@h/", "http://h/ x", "http://h:99999/"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """Without repeating it: it may be a secret."""
    with pytest.raises(InvalidInput) as refused:
        check_url(url)
    assert len(url) < 8 or url not in str(refused.value)
