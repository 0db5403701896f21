"""Webhooks: which addresses are notified of what.

Rules it keeps: a workspace's webhook is made and changed by its owner, one of all workspaces by administrators;
everyone else sees that it exists, and only the host of its address, which is often a secret; a custom event is sent by
the owner of the experiment, and by its tasks; of machines only webhooks of all workspaces are told.
"""

from __future__ import annotations

import time
import uuid
from urllib.parse import urlsplit

from fastapi import Response

from tenax.config.names import check_pattern
from tenax.display.terminal import is_name
from tenax.errors import InvalidInput, Unsupported
from tenax.lifecycle.machine import MachineNews
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.requests import MAX_NAME
from tenax.master.api.http.routing import Routes
from tenax.master.api.logs.messages import LogLevel
from tenax.master.api.webhooks import messages
from tenax.master.context import Master
from tenax.master.store.webhooks import events as webhook_events
from tenax.master.store.webhooks import rows as webhooks
from tenax.master.store.webhooks.events import STATES
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.webhooks.payloads import sample_event
from tenax.master.webhooks.sender import Sender, check_url, signing_key
from tenax.wire.message import Empty

routes = Routes("Webhooks")

#: Characters of a title and a description, and of a pattern.
MAX_TITLE, MAX_DESCRIPTION, MAX_PATTERN = 1000, 100_000, 1000
_MAX_TRIGGERS = 100


@routes.get("/api/v1/webhooks", "GetWebhooks", allow=Allow.USER)
async def get_webhooks(master: MasterDep, caller: CallerDep) -> messages.GetWebhooksResponse:
    """Those of all workspaces, and of one's own; administrators see every one."""
    async with master.db.snapshot() as conn:
        rows = await webhooks.listed(conn, workspaces_of=None if caller.is_admin else caller.person.id)
    return messages.GetWebhooksResponse(webhooks=[_message(webhook, caller) for webhook in rows])


@routes.post("/api/v1/webhooks", "PostWebhook", allow=Allow.USER, creates=True)
async def post_webhook(master: MasterDep, caller: CallerDep, body: messages.Webhook) -> messages.WebhookResponse:
    """Make a webhook."""
    made = _checked(body)
    await _sender(master).check_receiver(made.url)
    async with master.db.transaction() as conn:
        owner = None if made.workspace_id is None else (await workspaces.hold(conn, made.workspace_id)).owner_id
        caller.may_change(owner, _whose(made.workspace_id))
        new = await webhooks.create(conn, made, caller.person.id)
        return messages.WebhookResponse(webhook=_message(await webhooks.get(conn, new), caller))


@routes.post("/api/v1/webhooks/custom", "PostWebhookEventData", allow=Allow.USER, creates=True)
async def post_webhook_event_data(
    master: MasterDep, caller: CallerDep, body: messages.PostWebhookEventDataRequest
) -> Empty:
    """Send a custom event to every webhook of its experiment that has a trigger for one."""
    data = body.data
    if len(data.title) > MAX_TITLE or len(data.description) > MAX_DESCRIPTION:
        raise InvalidInput(
            f"data.title may have {MAX_TITLE} characters and data.description {MAX_DESCRIPTION}: shorten them"
        )
    level = LogLevel.INFO if data.level is LogLevel.UNSPECIFIED else data.level
    level_name = level.value.removeprefix("LOG_LEVEL_")
    async with master.db.transaction() as conn:
        owner = await webhook_events.owner_of(conn, body.experiment_id)
        caller.may_change(owner, f"experiment {body.experiment_id}")
        await webhook_events.custom(conn, body.experiment_id, body.trial_id, data.title, data.description, level_name)
    return Empty()


@routes.get("/api/v1/webhooks/signing-key", "GetWebhookSigningKey", allow=Allow.ADMIN)
async def get_webhook_signing_key(master: MasterDep, response: Response) -> messages.GetWebhookSigningKeyResponse:
    """What receivers check signatures with."""
    response.headers["Cache-Control"] = "no-store"
    return messages.GetWebhookSigningKeyResponse(
        signing_key=signing_key(master.settings.webhooks, master.cluster.secret)
    )


@routes.get("/api/v1/webhooks/{webhook_id}", "GetWebhook", allow=Allow.USER)
async def get_webhook(master: MasterDep, caller: CallerDep, webhook_id: int) -> messages.WebhookResponse:
    """One webhook."""
    async with master.db.snapshot() as conn:
        return messages.WebhookResponse(webhook=_message(await webhooks.get(conn, webhook_id), caller))


@routes.patch("/api/v1/webhooks/{webhook_id}", "PatchWebhook", allow=Allow.USER)
async def patch_webhook(
    master: MasterDep, caller: CallerDep, webhook_id: int, body: messages.PatchWebhookRequest
) -> messages.WebhookResponse:
    """Send to another address, including what is waiting already."""
    check_url(body.url)
    await _may_change(master, caller, webhook_id)
    await _sender(master).check_receiver(body.url)
    async with master.db.transaction() as conn:
        if body.expected is not None:
            present = _message(await webhooks.lock(conn, webhook_id), caller)
            check_expected(body.expected, present, f"webhook {webhook_id}")
        await webhooks.set_url(conn, webhook_id, body.url)
        return messages.WebhookResponse(webhook=_message(await webhooks.get(conn, webhook_id), caller))


@routes.delete("/api/v1/webhooks/{webhook_id}", "DeleteWebhook", allow=Allow.USER)
async def delete_webhook(master: MasterDep, caller: CallerDep, webhook_id: int) -> Empty:
    """Delete a webhook, and what waits for it."""
    await _may_change(master, caller, webhook_id)
    async with master.db.transaction() as conn:
        await webhooks.delete(conn, webhook_id)
    return Empty()


@routes.post("/api/v1/webhooks/{webhook_id}/test", "TestWebhook", allow=Allow.USER)
async def test_webhook(master: MasterDep, caller: CallerDep, webhook_id: int) -> messages.TestWebhookResponse:
    """Send it one message now, and say how that went."""
    webhook = await _may_change(master, caller, webhook_id)
    sender = _sender(master)
    now = int(time.time())
    outcome = await sender.send(webhook.url, webhook.kind, sample_event(str(uuid.uuid4()), now), now)
    done = outcome.status is not None and 200 <= outcome.status < 300
    return messages.TestWebhookResponse(completed=done, outcome=outcome.reason)


@routes.get("/api/v1/webhooks/{webhook_id}/deliveries", "GetWebhookDeliveries", allow=Allow.USER)
async def get_webhook_deliveries(
    master: MasterDep, caller: CallerDep, window: WindowDep, webhook_id: int
) -> messages.GetWebhookDeliveriesResponse:
    """What was sent, what waits, and what was given up and why; the newest first."""
    await _may_change(master, caller, webhook_id)
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await webhooks.count_deliveries(conn, webhook_id))
        rows = await webhooks.deliveries(conn, webhook_id, page)
    shown = [
        messages.Delivery(
            id=delivery.id,
            event_id=delivery.event_id,
            event_type=str(delivery.event.get("event_type", "")),
            state=delivery.state,
            attempts=delivery.attempts,
            outcome=delivery.outcome,
            created_at=delivery.created_at,
            ended_at=delivery.ended_at,
        )
        for delivery in rows
    ]
    return messages.GetWebhookDeliveriesResponse(deliveries=shown, pagination=pagination)


async def _may_change(master: Master, caller: Caller, webhook_id: int) -> webhooks.WebhookRow:
    async with master.db.snapshot() as conn:
        webhook = await webhooks.get(conn, webhook_id)
    caller.may_change(webhook.workspace_owner_id, _whose(webhook.workspace_id))
    return webhook


def _sender(master: Master) -> Sender:
    return Sender(master.settings.webhooks, master.cluster.secret)


def _whose(workspace_id: int | None) -> str:
    return "a webhook of all workspaces" if workspace_id is None else f"a webhook of workspace {workspace_id}"


def _checked(body: messages.Webhook) -> webhooks.WebhookRow:
    """What was asked for, as it is stored. Raises InvalidInput, Unsupported."""
    check_url(body.url)
    if body.name and (len(body.name) > MAX_NAME or not is_name(body.name)):
        raise InvalidInput(f"name may have {MAX_NAME} characters that can be shown in a line")
    if body.webhook_type is messages.WebhookType.UNSPECIFIED:
        raise InvalidInput("webhookType must be WEBHOOK_TYPE_DEFAULT or WEBHOOK_TYPE_SLACK")
    if not body.triggers:
        raise InvalidInput("triggers is empty: say what it is to be told of")
    if len(body.triggers) > _MAX_TRIGGERS:
        raise InvalidInput(f"triggers: there are {len(body.triggers)}, and at most {_MAX_TRIGGERS} are taken")
    # Before there were modes, every webhook was of its workspace.
    mode = messages.WebhookMode.WORKSPACE if body.mode is messages.WebhookMode.UNSPECIFIED else body.mode
    kinds = [trigger.trigger_type for trigger in body.triggers]
    if messages.TriggerType.CUSTOM in kinds and mode is not messages.WebhookMode.SPECIFIC:
        raise InvalidInput(
            "mode: a custom trigger works only with mode 'SPECIFIC': experiments name such a webhook under "
            "integrations.webhooks"
        )
    if messages.TriggerType.MACHINE in kinds and (body.workspace_id or mode is messages.WebhookMode.SPECIFIC):
        raise InvalidInput(
            "triggers: machines belong to no workspace and to no experiment: a trigger for them works only with mode "
            "'WORKSPACE' and without workspaceId"
        )
    return webhooks.WebhookRow(
        name=body.name.strip(),
        url=body.url,
        kind=body.webhook_type.value.removeprefix("WEBHOOK_TYPE_"),
        mode=mode.value.removeprefix("WEBHOOK_MODE_"),
        workspace_id=body.workspace_id or None,
        triggers=tuple(_trigger(trigger) for trigger in body.triggers),
    )


def _trigger(trigger: messages.Trigger) -> webhooks.TriggerRow:
    kind = trigger.trigger_type
    if kind is messages.TriggerType.EXPERIMENT_STATE_CHANGE:
        state = str(trigger.condition.get("state", "")).removeprefix("STATE_")
        possible = [known.value for known in STATES]
        if state not in possible:
            raise InvalidInput(f"triggers.condition.state is {state[:40]!r}: one of {', '.join(possible)} is possible")
        return webhooks.TriggerRow("EXPERIMENT_STATE_CHANGE", {"state": state})
    if kind is messages.TriggerType.TASK_LOG:
        regex = trigger.condition.get("regex")
        if not isinstance(regex, str) or not 0 < len(regex) <= MAX_PATTERN:
            raise InvalidInput(f"triggers.condition.regex must be a pattern of 1 to {MAX_PATTERN} characters")
        wrong = check_pattern(regex)
        if wrong is not None:
            raise InvalidInput(f"triggers.condition.regex cannot be used: {wrong}")
        return webhooks.TriggerRow("TASK_LOG", {"regex": regex})
    if kind is messages.TriggerType.CUSTOM:
        return webhooks.TriggerRow("CUSTOM")
    if kind is messages.TriggerType.MACHINE:
        event = str(trigger.condition.get("event", ""))
        possible = [known.value for known in MachineNews]
        if event not in possible:
            raise InvalidInput(f"triggers.condition.event is {event[:40]!r}: one of {', '.join(possible)} is possible")
        return webhooks.TriggerRow("MACHINE", {"event": event})
    if kind is messages.TriggerType.METRIC_THRESHOLD_EXCEEDED:
        raise Unsupported("metrics trigger nothing here: send an event from the script, with core_context.alert()")
    raise InvalidInput("triggers.triggerType is missing: say what the webhook is to be told of")


def _type_of(trigger: webhooks.TriggerRow) -> messages.TriggerType:
    kind = messages.TriggerType(f"TRIGGER_TYPE_{trigger.kind}")
    return messages.TriggerType.UNSPECIFIED if kind is messages.TriggerType.MACHINE else kind


def _message(webhook: webhooks.WebhookRow, caller: Caller) -> messages.Webhook:
    owner = webhook.workspace_owner_id
    may_see = caller.is_admin or (owner is not None and caller.person.id == owner)
    triggers = [
        messages.Trigger(
            id=trigger.id,
            webhook_id=webhook.id,
            trigger_type=_type_of(trigger),
            condition=dict(trigger.condition),
        )
        for trigger in webhook.triggers
    ]
    return messages.Webhook(
        id=webhook.id,
        name=webhook.name,
        url=webhook.url if may_see else _host_of(webhook.url),
        webhook_type=messages.WebhookType(f"WEBHOOK_TYPE_{webhook.kind}"),
        mode=messages.WebhookMode(f"WEBHOOK_MODE_{webhook.mode}"),
        triggers=triggers,
        workspace_id=webhook.workspace_id,
    )


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/********"
