"""Webhooks through the client's bindings, and what a script tells with ``core_context.alert()``."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import RealClient
from tests.compat.experiments import CONFIG
from tests.kits.machine import Machine, wait_for
from tests.kits.receiver import Receiver, receiving

_MAKE = """
from determined.common.api import bindings as b
client.login(master, user, password)
session = client._determined._session
kinds = b.v1TriggerType
made = b.post_PostWebhook(session, body=b.v1Webhook(
    name=name, url=url, mode=b.v1WebhookMode.SPECIFIC, webhookType=b.v1WebhookType.DEFAULT, triggers=[
        b.v1Trigger(triggerType=kinds.EXPERIMENT_STATE_CHANGE, condition={"state": "COMPLETED"}),
        b.v1Trigger(triggerType=kinds.TASK_LOG, condition={"regex": "out of .*memory"}),
        b.v1Trigger(triggerType=kinds.CUSTOM, condition={})])).webhook
result = made.to_json()
"""
_LOOK = """
from determined.common.api import bindings as b
client.login(master, user, password)
session = client._determined._session
of_machines = {"triggerType": "TRIGGER_TYPE_MACHINE", "condition": {"event": "FAILED"}}
ours = session.post("api/v1/webhooks", json={
    "name": "ours", "url": url, "mode": "WEBHOOK_MODE_WORKSPACE", "webhookType": "WEBHOOK_TYPE_DEFAULT",
    "triggers": [of_machines]}).json()["webhook"]
[[shown]] = [one.triggers for one in b.get_GetWebhooks(session).webhooks if one.id == ours["id"]]
assert shown.condition == {"event": "FAILED"}
b.delete_DeleteWebhook(session, id=ours["id"])
before = [one.to_json() for one in b.get_GetWebhooks(session).webhooks if one.id == number]
tried = b.post_TestWebhook(session, id=number).completed
b.patch_PatchWebhook(session, id=number, body=b.v1PatchWebhook(url=url + "/moved"))
moved = [one.url for one in b.get_GetWebhooks(session).webhooks if one.id == number]
b.delete_DeleteWebhook(session, id=number)
result = [before, tried, moved, [one.id for one in b.get_GetWebhooks(session).webhooks if one.id == number]]
"""
_ALERT = """
from determined import core
with core.init() as context:
    print("the GPU is out of its memory", flush=True)
    context.alert(title="look", description="at this", level="warn")
    context.train.report_validation_metrics(steps_completed=1, metrics={"score": 1.0})
"""


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver that serves while the test looks elsewhere."""
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()
    found: list[Receiver] = []

    async def serve() -> None:
        async with receiving() as receiver:
            found.append(receiver)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def login(admin: RealClient) -> dict[str, Json]:
    return {"master": admin.url, "user": "admin", "password": admin.password}


def test_a_webhook_is_made_tried_moved_and_deleted(admin: RealClient) -> None:
    """As the page of 0.38.1 does it."""
    with receiver() as there:
        made = cast(JsonObject, admin.sdk(_MAKE, **login(admin), name="compat-a", url=there.url))
        before, tried, moved, left = cast(
            "tuple[list[JsonObject], bool, list[str], list[int]]",
            admin.sdk(_LOOK, **login(admin), number=made["id"], url=there.url),
        )
    assert before == [made]
    assert (tried, moved, left) == (True, [there.url + "/moved"], [])
    assert len(there.requests) == 1


def test_a_script_and_its_end_are_told(admin: RealClient, cluster: Machine) -> None:
    """The alert of the unmodified library, a line of its output and then the end of the experiment; all are signed."""
    key = cluster.tenax("webhook", "signing-key").stdout.strip()
    with receiver() as there:
        made = cast(JsonObject, admin.sdk(_MAKE, **login(admin), name="compat-b", url=there.url))
        code = (
            "client.login(master, user, password)\n"
            "import pathlib, tempfile\n"
            "place = pathlib.Path(tempfile.mkdtemp())\n"
            "(place / 'train.py').write_text(script)\n"
            "experiment = client.create_experiment(config, str(place))\n"
            "result = [experiment.id, experiment.wait(interval=0.2).value]\n"
        )
        named: Json = {"webhooks": {"webhook_name": ["compat-b"]}}
        config = {**CONFIG, "name": "told", "entrypoint": "python3 train.py", "integrations": named}
        number, state = cast("list[object]", admin.sdk(code, **login(admin), config=config, script=_ALERT))
        assert state == "STATE_COMPLETED", cluster.logs()
        wait_for(lambda: len(there.taken) >= 3, "all messages")
        admin.sdk(
            "from determined.common.api import bindings as b\n"
            "client.login(master, user, password)\n"
            "b.delete_DeleteWebhook(client._determined._session, id=number)",
            **login(admin),
            number=made["id"],
        )
    events = {str(one.event["event_type"]): cast(JsonObject, one.event["event_data"]) for one in there.taken}
    assert list(events)[2:] == ["EXPERIMENT_STATE_CHANGE"]
    assert events["CUSTOM"]["custom"] == {"title": "look", "description": "at this", "level": "WARNING"}
    assert cast(JsonObject, events["TASK_LOG"]["task_log"])["triggering_log"] == "the GPU is out of its memory"
    told = cast(JsonObject, events["EXPERIMENT_STATE_CHANGE"]["experiment"])
    assert (told["id"], told["name"], told["state"]) == (number, "told", "COMPLETED")
    for one in there.taken:
        seconds = one.headers["X-Determined-AI-Signature-Timestamp"]
        expected = hmac.new(key.encode(), f"{seconds},".encode() + one.body, hashlib.sha256).hexdigest()
        assert one.headers["X-Determined-AI-Signature"] == expected
