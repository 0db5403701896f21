"""Messages about webhooks: addresses, triggers, deliveries, and events of a script's own."""

from __future__ import annotations

from enum import Enum

from tenax.master.api.logs.messages import LogLevel
from tenax.wire.message import Document, Message, Pagination, Timestamp


class WebhookType(str, Enum):
    """How the message looks."""

    UNSPECIFIED = "WEBHOOK_TYPE_UNSPECIFIED"
    DEFAULT = "WEBHOOK_TYPE_DEFAULT"
    SLACK = "WEBHOOK_TYPE_SLACK"


class WebhookMode(str, Enum):
    """Which experiments it is about."""

    UNSPECIFIED = "WEBHOOK_MODE_UNSPECIFIED"
    #: All of its workspace, or all there are.
    WORKSPACE = "WEBHOOK_MODE_WORKSPACE"
    #: Those that name it under ``integrations.webhooks``.
    SPECIFIC = "WEBHOOK_MODE_SPECIFIC"


class TriggerType(str, Enum):
    """What happens."""

    UNSPECIFIED = "TRIGGER_TYPE_UNSPECIFIED"
    EXPERIMENT_STATE_CHANGE = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"
    METRIC_THRESHOLD_EXCEEDED = "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED"
    TASK_LOG = "TRIGGER_TYPE_TASK_LOG"
    CUSTOM = "TRIGGER_TYPE_CUSTOM"
    #: Of rented machines. In answers it is UNSPECIFIED with an ``event``: Determined's client fails at other words.
    MACHINE = "TRIGGER_TYPE_MACHINE"


class Trigger(Message):
    """An event to notify of. ``condition``: ``{"state"}`` of an experiment, ``{"regex"}`` of a line of a task,
    ``{"event"}`` of rented machines."""

    id: int = 0
    webhook_id: int = 0
    trigger_type: TriggerType = TriggerType.UNSPECIFIED
    condition: Document = {}


class Webhook(Message):
    """An address, and the events that it is notified of."""

    id: int = 0
    name: str = ""
    url: str = ""
    webhook_type: WebhookType = WebhookType.UNSPECIFIED
    mode: WebhookMode = WebhookMode.UNSPECIFIED
    triggers: list[Trigger] = []
    #: None: of all workspaces.
    workspace_id: int | None = None


class GetWebhooksResponse(Message):
    """All of them."""

    webhooks: list[Webhook]


class WebhookResponse(Message):
    """One of them."""

    webhook: Webhook


class PatchWebhookRequest(Message):
    """The new address."""

    url: str = ""
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class TestWebhookResponse(Message):
    """Whether the receiver took a message, and how it answered."""

    completed: bool
    outcome: str = ""


class CustomWebhookEventData(Message):
    """The content of a custom event."""

    title: str = ""
    description: str = ""
    level: LogLevel = LogLevel.UNSPECIFIED


class PostWebhookEventDataRequest(Message):
    """An event of a script's own."""

    data: CustomWebhookEventData
    experiment_id: int
    trial_id: int | None = None


class Delivery(Message):
    """A message to a webhook, sent or to be sent."""

    id: int
    event_id: str
    event_type: str
    #: WAITING, DELIVERED or FAILED.
    state: str
    attempts: int
    #: How the latest attempt ended.
    outcome: str
    created_at: Timestamp
    ended_at: Timestamp | None = None


class GetWebhookDeliveriesResponse(Message):
    """A page of messages, the newest first."""

    deliveries: list[Delivery]
    pagination: Pagination


class GetWebhookSigningKeyResponse(Message):
    """What receivers check signatures with."""

    signing_key: str
