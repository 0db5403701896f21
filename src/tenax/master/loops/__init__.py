"""The loops: each loads, decides, applies. A loop's name, in leases and metrics, is that of its file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from tenax.backoff.background import keep_running
from tenax.config.master import MasterSettings
from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.deletion import Deletion
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.loops.loop import Loop, run
from tenax.master.loops.offer_news import OfferNews
from tenax.master.loops.progress import Progress
from tenax.master.loops.quota_use import QuotaUse
from tenax.master.loops.reconcile_experiments import ReconcileExperiments
from tenax.master.loops.reconcile_tasks import ReconcileTasks
from tenax.master.loops.retention import Retention
from tenax.master.loops.scaling import ScalingLoop
from tenax.master.loops.scheduling import Scheduling
from tenax.master.loops.searching import Searching
from tenax.master.loops.timeouts import Timeouts
from tenax.master.loops.webhook_delivery import WebhookDelivery
from tenax.master.observability import counters
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.webhooks.sender import Sender


class RunningLoops:
    """The loops of this process."""

    def __init__(
        self,
        loops: tuple[Loop, ...],
        delivery: WebhookDelivery,
        database: Database,
        listener: Listener,
        on_deaf: Callable[[str], None],
        apply_settings: Callable[[MasterSettings], None],
    ) -> None:
        #: Go by these settings of pools from the next pass on.
        self.apply_settings = apply_settings
        self._keeper = LeaseKeeper(database, listener, on_deaf)
        self._delivery = delivery
        self._tasks = [
            asyncio.create_task(
                keep_running(f"loop {loop.name}", partial(run, loop, database, listener, self._keeper)),
                name=f"loop {loop.name}",
            )
            for loop in loops
        ]
        self._tasks.append(asyncio.create_task(keep_running("leases", self._keeper.run), name="leases"))

    def trouble(self) -> dict[str, str]:
        """What is wrong, by loop, in words; nothing: all is well, be it that other masters have their leases."""
        return self._keeper.trouble()

    async def stop(self) -> None:
        """End them."""
        alive = set(self._tasks)
        while alive:
            # Again and again: libraries below can swallow a cancellation.
            for task in alive:
                task.cancel()
            _, alive = await asyncio.wait(alive, timeout=0.5)
        await self._delivery.close()


def start(
    database: Database,
    listener: Listener,
    settings: MasterSettings,
    cluster: ClusterRow,
    on_deaf: Callable[[str], None] = lambda reason: None,
) -> RunningLoops:
    """Start every loop as a task of the running event loop; ``on_deaf`` is told of one that cannot be ended."""
    preemption_timeout_s = float(settings.preemption_timeout)
    secret = cluster.secret
    sender = Sender(settings.webhooks, secret)
    pools, overall = settings.pools, settings.renting
    scheduling, timeouts = Scheduling(pools, secret, preemption_timeout_s, overall), Timeouts(pools)
    cluster_id = str(cluster.cluster_id)
    scaling = ScalingLoop(pools, cluster_id, secret, preemption_timeout_s=preemption_timeout_s, overall=overall)
    offer_news = OfferNews(pools, cluster_id)
    deletion, checkpoint_gc = Deletion(settings), CheckpointGc(settings)
    webhook_delivery = WebhookDelivery(sender, settings.webhooks.give_up_after, settings.webhooks.keep_days)
    loops: tuple[Loop, ...] = (
        Searching(),
        Progress(),
        ReconcileExperiments(preemption_timeout_s),
        ReconcileTasks(),
        scheduling,
        scaling,
        offer_news,
        QuotaUse(),
        timeouts,
        deletion,
        checkpoint_gc,
        Retention(settings.log_retention_days, settings.retention_schedule(), settings.metric_retention_days),
        webhook_delivery,
    )
    counters.begin_loops((loop.name for loop in loops), (pool.name for pool in settings.pools))

    def apply_settings(settings: MasterSettings) -> None:
        scheduling.use_pools(settings.pools, settings.renting)
        scaling.use_pools(settings.pools, settings.renting)
        offer_news.use_pools(settings.pools)
        timeouts.use_pools(settings.pools)
        deletion.settings = checkpoint_gc.settings = settings

    return RunningLoops(loops, webhook_delivery, database, listener, on_deaf, apply_settings)
