"""Rows of webhooks, and the queue of what is to be sent to them.

Rules: a message is a row before anyone tries to send it; an attempt is counted before it is made; of one webhook only
the oldest message that waits is tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from asyncpg import Connection

from tenax.errors import AlreadyExists, NotFound
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.delivery import DeliveryVerdict, pause
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load

Q = load("webhooks")


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A kind of event that a webhook is sent."""

    #: EXPERIMENT_STATE_CHANGE, TASK_LOG, CUSTOM, MACHINE.
    kind: str
    condition: JsonObject = field(default_factory=dict)
    id: int = 0


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """An address, and which events are sent there."""

    name: str
    #: Often a secret: whoever knows it may write there.
    url: str = field(repr=False)
    #: DEFAULT, SLACK.
    kind: str
    #: WORKSPACE, SPECIFIC.
    mode: str
    #: None: all workspaces.
    workspace_id: int | None
    triggers: tuple[TriggerRow, ...]
    id: int = 0
    #: Who may change it beside administrators.
    workspace_owner_id: int | None = None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A message that is to be sent now."""

    id: int
    event_id: str
    webhook_id: int
    url: str = field(repr=False)
    kind: str
    event: JsonObject
    #: Made so far.
    attempts: int


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A message, for people."""

    id: int
    event_id: str
    event: JsonObject
    state: str
    attempts: int
    outcome: str
    created_at: datetime
    ended_at: datetime | None


async def create(conn: Connection, webhook: WebhookRow, made_by: int) -> int:
    """The id of a new webhook. In a transaction. Raises AlreadyExists."""
    new: int | None = await conn.fetchval(
        Q.create, webhook.name, webhook.url, webhook.kind, webhook.mode, webhook.workspace_id, made_by
    )
    if new is None:
        raise AlreadyExists(f"webhook {webhook.name!r} already exists: choose another name")
    for trigger in webhook.triggers:
        await conn.execute(Q.add_trigger, new, trigger.kind, trigger.condition)
    return new


async def listed(conn: Connection, webhook_id: int | None = None, workspaces_of: int | None = None) -> list[WebhookRow]:
    """All of them, or one; ``workspaces_of``: only those of all workspaces, and of this user's own."""
    rows = await conn.fetch(Q.all, webhook_id, workspaces_of)
    triggers: dict[int, list[TriggerRow]] = defaultdict(list)
    for row in await conn.fetch(Q.triggers, [row["id"] for row in rows]):
        triggers[row["webhook_id"]].append(TriggerRow(row["kind"], row["condition"], row["id"]))
    return [WebhookRow(**dict(row), triggers=tuple(triggers[row["id"]])) for row in rows]


async def get(conn: Connection, webhook_id: int) -> WebhookRow:
    """Raises NotFound."""
    webhooks = await listed(conn, webhook_id)
    if not webhooks:
        raise _missing(webhook_id)
    return webhooks[0]


async def lock(conn: Connection, webhook_id: int) -> WebhookRow:
    """As it stays until the transaction ends. Raises NotFound."""
    await conn.execute(Q.lock, webhook_id)
    return await get(conn, webhook_id)


async def set_url(conn: Connection, webhook_id: int, url: str) -> None:
    """Send to another address from now on. Raises NotFound."""
    if await conn.fetchval(Q.set_url, webhook_id, url) is None:
        raise _missing(webhook_id)


async def delete(conn: Connection, webhook_id: int) -> None:
    """Delete it, and what waits for it. Raises NotFound."""
    if await conn.fetchval(Q.delete, webhook_id) is None:
        raise _missing(webhook_id)


async def due(conn: Connection, webhook_id: int | None = None) -> list[DeliveryRow]:
    """Of each webhook, or of one, the message whose turn it is and whose time has come."""
    return [DeliveryRow(**dict(row)) for row in await conn.fetch(Q.due, webhook_id)]


async def next_due_s(conn: Connection) -> float | None:
    """Seconds until the next message is to be tried; None: there is none."""
    seconds: float | None = await conn.fetchval(Q.next_due)
    return None if seconds is None else max(0.0, seconds)


async def begin(conn: Connection, delivery: DeliveryRow) -> float | None:
    """Count the attempt that is to be made; how old the message is in seconds, None: it is somebody else's."""
    age: float | None = await conn.fetchval(Q.begin, delivery.id, delivery.attempts, pause(delivery.attempts + 1))
    return age


async def finish(conn: Connection, delivery: DeliveryRow, verdict: DeliveryVerdict) -> None:
    """What became of the attempt that was begun."""
    attempts, state = delivery.attempts + 1, verdict.state.value
    await conn.execute(Q.finish, delivery.id, attempts, state, verdict.reason, verdict.wait_s)


async def forget(conn: Connection, days: int) -> None:
    """Delete what was sent, or given up, before that."""
    await conn.execute(Q.forget, days)


async def count_deliveries(conn: Connection, webhook_id: int) -> int:
    """How many messages of a webhook are remembered."""
    total: int = await conn.fetchval(Q.count_deliveries, webhook_id)
    return total


async def deliveries(conn: Connection, webhook_id: int, window: Page) -> Sequence[DeliveryView]:
    """A page of them, the newest first."""
    rows = await conn.fetch(Q.deliveries, webhook_id, window.limit, window.offset)
    return [DeliveryView(**dict(row)) for row in rows]


def _missing(webhook_id: int) -> NotFound:
    return NotFound(f"webhook {webhook_id} not found")
