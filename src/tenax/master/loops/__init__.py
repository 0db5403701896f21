"""The loops: each loads, decides, applies. A loop's name, in leases and metrics, is that of its file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenax.config.master import MasterSettings
from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.deletion import Deletion
from tenax.master.loops.loop import Loop, run
from tenax.master.loops.progress import Progress
from tenax.master.loops.reconcile_experiments import ReconcileExperiments
from tenax.master.loops.reconcile_tasks import ReconcileTasks
from tenax.master.loops.retention import Retention
from tenax.master.loops.scheduling import Scheduling
from tenax.master.loops.searching import Searching
from tenax.master.loops.timeouts import Timeouts
from tenax.master.loops.webhook_delivery import WebhookDelivery
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.webhooks.sender import Sender


def start(
    database: Database, listener: Listener, settings: MasterSettings, secret: bytes
) -> Callable[[], Awaitable[None]]:
    """Start every loop as a task of the running event loop; the returned coroutine function ends them."""
    preemption_timeout_s = float(settings.preemption_timeout)
    sender = Sender(settings.webhooks, secret)
    webhook_delivery = WebhookDelivery(sender, settings.webhooks.give_up_after, settings.webhooks.keep_days)
    storage = settings.checkpoint_storage
    loops: tuple[Loop, ...] = (
        Searching(),
        Progress(),
        ReconcileExperiments(preemption_timeout_s),
        ReconcileTasks(),
        Scheduling(settings.pools, secret, preemption_timeout_s),
        Timeouts(settings.pools),
        Deletion(storage),
        CheckpointGc(settings),
        Retention(settings.log_retention_days, settings.retention_schedule()),
        webhook_delivery,
    )
    tasks = [asyncio.create_task(run(loop, database, listener), name=f"loop {loop.name}") for loop in loops]

    async def stop() -> None:
        alive = set(tasks)
        while alive:
            # Again and again: libraries below can swallow a cancellation.
            for task in alive:
                task.cancel()
            _, alive = await asyncio.wait(alive, timeout=0.5)
        await webhook_delivery.close()

    return stop
