"""The loops: each loads, decides, applies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenax.config.master import MasterSettings
from tenax.master.loops.checkpoint_gc import Collecting
from tenax.master.loops.deletion import Deleting
from tenax.master.loops.loop import Loop, run
from tenax.master.loops.progress import Progressing
from tenax.master.loops.reconcile_experiments import Tending
from tenax.master.loops.reconcile_tasks import Launching
from tenax.master.loops.retention import Retaining
from tenax.master.loops.scheduling import Scheduling
from tenax.master.loops.searching import Searching
from tenax.master.loops.timeouts import Rescuing
from tenax.master.loops.webhook_delivery import Telling
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.webhooks.sender import Sender


def start(
    database: Database, listener: Listener, settings: MasterSettings, secret: bytes
) -> Callable[[], Awaitable[None]]:
    """Start every loop as a task of the running event loop; the returned coroutine function ends them."""
    patience = float(settings.preemption_timeout)
    reconnect_wait_s = max(pool.agent_reconnect_wait for pool in settings.pools)
    sender = Sender(settings.webhooks, secret)
    telling = Telling(sender, settings.webhooks.give_up_after, settings.webhooks.keep_days)
    storage = settings.checkpoint_storage
    loops: tuple[Loop, ...] = (
        Searching(),
        Progressing(),
        Tending(patience),
        Launching(),
        Scheduling(settings.pools, secret, patience),
        Rescuing(reconnect_wait_s),
        Deleting(storage),
        Collecting(settings),
        Retaining(settings.log_retention_days, settings.retention_schedule()),
        telling,
    )
    tasks = [asyncio.create_task(run(loop, database, listener), name=f"loop {loop.name}") for loop in loops]

    async def stop() -> None:
        alive = set(tasks)
        while alive:
            # Again and again: libraries below can swallow a cancellation.
            for task in alive:
                task.cancel()
            _, alive = await asyncio.wait(alive, timeout=0.5)
        await telling.close()

    return stop
