"""Webhooks as values: who is notified of which events over HTTP."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import List, Optional, Sequence, Tuple, Union

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, LiveAnswer, made, part
from tenax.client.connection.session import Session, at
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Trigger:
    """A kind of event that a webhook notifies of.

    ``kind``: EXPERIMENT_STATE_CHANGE (with ``{"state": ...}``), TASK_LOG (``{"regex": ...}``), MACHINE (``{"event":
    ...}``) or CUSTOM.
    """

    kind: str
    condition: JsonObject = field(default_factory=dict)

    @property
    def words(self) -> str:
        """In a line."""
        detail = next(filter(None, (reading.text(self.condition, name) for name in ("state", "regex", "event"))), "")
        return f"{self.kind} {detail}".rstrip()


@dataclass(frozen=True)
class Delivery(Answer):
    """A message that was sent, or is to be."""

    id: int = part(reading.integer, "id")
    event_id: str = part(reading.text, "eventId")
    event_type: str = part(reading.text, "eventType")
    #: WAITING, DELIVERED or FAILED.
    state: str = part(reading.text, "state")
    attempts: int = part(reading.integer, "attempts")
    outcome: str = part(reading.text, "outcome")
    created: Optional[datetime.datetime] = part(reading.moment, "createdAt")


@dataclass(frozen=True)
class Webhook(LiveAnswer):
    """An address, and the events that it is notified of."""

    id: int = part(reading.integer, "id")
    name: str = part(reading.text, "name")
    #: Without its path, unless it is yours to change.
    url: str = part(reading.text, "url")
    #: DEFAULT or SLACK.
    kind: str = made(lambda value: _short(value, "webhookType", "WEBHOOK_TYPE_"))
    #: WORKSPACE: all experiments there; SPECIFIC: those that name it.
    mode: str = made(lambda value: _short(value, "mode", "WEBHOOK_MODE_"))
    #: None: all workspaces.
    workspace_id: Optional[int] = made(lambda value: reading.integer(value, "workspaceId") or None)
    triggers: Tuple[Trigger, ...] = made(
        lambda value: tuple(_trigger(trigger) for trigger in reading.records(value, "triggers"))
    )

    def set_url(self, url: str) -> Webhook:
        """Send to another address from now on, also what waits already. Raises InvalidInput, Forbidden."""
        answer = self.session.call("PATCH", at("/api/v1/webhooks/{}", self.id), body={"url": url})
        return Webhook.read(reading.record(answer, "webhook"), self.session)

    def test(self) -> Tuple[bool, str]:
        """Send a message now: whether it was taken, and how the receiver answered. Raises Forbidden."""
        answer = self.session.call("POST", at("/api/v1/webhooks/{}/test", self.id), once=True)
        return reading.flag(answer, "completed"), reading.text(answer, "outcome")

    def delete(self) -> None:
        """Delete it, and what waits for it. Raises Forbidden."""
        self.session.call("DELETE", at("/api/v1/webhooks/{}", self.id))

    def deliveries(self, most: int = 50) -> List[Delivery]:
        """What was sent and what waits, the newest first. Raises Forbidden."""
        answer = self.session.get(at("/api/v1/webhooks/{}/deliveries", self.id), {"limit": most})
        return [Delivery.read(delivery) for delivery in reading.records(answer, "deliveries")]


def list_webhooks(session: Session) -> List[Webhook]:
    """All of them."""
    return [Webhook.read(webhook, session) for webhook in reading.records(session.get("/api/v1/webhooks"), "webhooks")]


def get_webhook(session: Session, which: Union[int, str]) -> Webhook:
    """A webhook by number or name. Raises NotFound."""
    if isinstance(which, int):
        answer = session.get(at("/api/v1/webhooks/{}", which))
        return Webhook.read(reading.record(answer, "webhook"), session)
    matches = [webhook for webhook in list_webhooks(session) if webhook.name.lower() == which.lower()]
    if not matches:
        raise NotFound(f"There is no webhook {which!r}.")
    if len(matches) > 1:
        numbers = ", ".join(str(webhook.id) for webhook in matches)
        raise NotFound(f"{which!r} is the name of several webhooks: give a number, one of {numbers}.")
    return matches[0]


def create_webhook(
    session: Session,
    name: str,
    url: str,
    triggers: Sequence[Trigger],
    *,
    kind: str = "DEFAULT",
    mode: str = "WORKSPACE",
    workspace_id: Optional[int] = None,
) -> Webhook:
    """Make a webhook. Raises InvalidInput, AlreadyExists, Forbidden."""
    body: JsonObject = {
        "name": name,
        "url": url,
        "webhookType": f"WEBHOOK_TYPE_{kind}",
        "mode": f"WEBHOOK_MODE_{mode}",
        "workspaceId": workspace_id,
        "triggers": [
            {"triggerType": f"TRIGGER_TYPE_{trigger.kind}", "condition": trigger.condition} for trigger in triggers
        ],
    }
    return Webhook.read(reading.record(session.create("/api/v1/webhooks", body), "webhook"), session)


def signing_key(session: Session) -> str:
    """What receivers check signatures with. Raises Forbidden for anyone but administrators."""
    return reading.text(session.get("/api/v1/webhooks/signing-key"), "signingKey")


def _trigger(value: JsonObject) -> Trigger:
    condition = reading.record(value, "condition")
    # Determined's client knows no word for it, so that answers have none.
    return Trigger("MACHINE" if "event" in condition else _short(value, "triggerType", "TRIGGER_TYPE_"), condition)


def _short(value: JsonObject, key: str, prefix: str) -> str:
    text = reading.text(value, key)
    return text[len(prefix) :] if text.startswith(prefix) else text
