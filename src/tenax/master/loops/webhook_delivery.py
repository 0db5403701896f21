"""Webhook delivery: sends the messages that wait for webhooks.

Rules it keeps: the messages of one webhook are sent one after the other, in the order of the events; webhooks do not
wait for each other; an attempt is counted before it is made, in a transaction that holds the loop's lease, and what
became of it is written after it: whoever is killed in between makes the attempt again, so a message may arrive twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import structlog

from tenax.errors import TryAgain
from tenax.lifecycle.delivery import DeliveryOutcome, DeliveryState, before, decide
from tenax.master.loops.loop import PassContext
from tenax.master.store.database.leases import LeaseLost
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.webhooks import events as webhook_events
from tenax.master.store.webhooks import rows as webhooks
from tenax.master.store.webhooks.rows import DeliveryRow
from tenax.master.webhooks.sender import Sender

log = structlog.get_logger("tenax.webhook_delivery")

#: Webhooks that are sent to at a time.
AT_ONCE = 32
#: How long a pass waits for what it began; the rest goes on beside the next passes.
_PASS_WAIT_S = 0.5
#: How often old messages are deleted.
_SWEEP_S = 600.0


class WebhookDelivery:
    """Sends messages to webhooks. `close` ends what is under way."""

    name = "webhook_delivery"
    kind = webhook_events.KIND

    def __init__(self, sender: Sender, give_up_after_s: float, keep_days: int) -> None:
        self._sender = sender
        self._give_up_after_s = give_up_after_s
        self._keep_days = keep_days
        #: Webhooks that are being sent to.
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._swept = -_SWEEP_S

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Begin to send to every webhook that a message is due for."""
        if time.monotonic() - self._swept >= _SWEEP_S:
            self._swept = time.monotonic()
            async with context.transaction() as conn:
                await webhooks.forget(conn, self._keep_days)
        async with context.reading() as conn:
            due = await webhooks.due(conn)
        self._busy = {number: task for number, task in self._busy.items() if not task.done()}
        for delivery in due:
            if delivery.webhook_id not in self._busy and len(self._busy) < AT_ONCE:
                self._busy[delivery.webhook_id] = asyncio.create_task(self._deliver_all(context, delivery.webhook_id))
        if self._busy:
            await asyncio.wait(self._busy.values(), timeout=_PASS_WAIT_S)
        async with context.reading() as conn:
            wait_s = await webhooks.next_due_s(conn)
        unfinished = any(not task.done() for task in self._busy.values())
        return _PASS_WAIT_S if unfinished or wait_s == 0 else wait_s

    async def close(self) -> None:
        """End what is under way; it is tried again later."""
        for task in self._busy.values():
            task.cancel()
        for task in self._busy.values():
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _deliver_all(self, context: PassContext, webhook_id: int) -> None:
        """Send what waits for one webhook until nothing is due any more."""
        try:
            while True:
                async with context.reading() as conn:
                    due = await webhooks.due(conn, webhook_id)
                if not due or not await self._deliver(context, due[0]):
                    return
        except (LeaseLost, TryAgain):
            # The loop sees the same, and begins again where it may.
            return
        except Exception:
            log.exception("a webhook could not be handled", webhook=webhook_id)

    async def _deliver(self, context: PassContext, delivery: DeliveryRow) -> bool:
        """One attempt; False: somebody else makes it."""
        async with context.transaction() as conn:
            age = await webhooks.begin(conn, delivery)
        if age is None:
            return False
        verdict = before(delivery.attempts, age, self._give_up_after_s)
        if verdict is None:
            verdict = decide(await self._send(delivery), delivery.attempts + 1, age, self._give_up_after_s)
        if verdict.state is not DeliveryState.DELIVERED:
            log.warning(
                "a webhook did not take a message",
                webhook=delivery.webhook_id,
                message=delivery.event_id,
                attempt=delivery.attempts + 1,
                outcome=verdict.reason,
                again_in_s=verdict.wait_s if verdict.state is DeliveryState.WAITING else None,
            )
        async with context.transaction() as conn:
            await webhooks.finish(conn, delivery, verdict)
        return True

    async def _send(self, delivery: DeliveryRow) -> DeliveryOutcome:
        try:
            return await self._sender.send(delivery.url, delivery.kind, delivery.event, int(time.time()))
        except Exception as error:
            log.exception("a message could not be sent", webhook=delivery.webhook_id, message=delivery.event_id)
            return DeliveryOutcome(None, f"it could not be sent: {type(error).__name__}")
