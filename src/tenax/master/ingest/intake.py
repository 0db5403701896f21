"""All that takes in telemetry in one master process, and its background tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenax.backoff.background import keep_running
from tenax.config.master import BudgetSettings
from tenax.master.concurrency.threads import Threads
from tenax.master.ingest.budget import Budget, Notices, largest_of, usage_of
from tenax.master.ingest.logs import LogIngest
from tenax.master.ingest.metrics import MetricIngest, Sealing
from tenax.master.ingest.spool import SpoolIngest
from tenax.master.store.database.connection import Database


class Intake:
    """Spools, metrics, output, and the threads that all work in. For one event loop."""

    def __init__(self, database: Database, settings: BudgetSettings) -> None:
        budget = Budget(settings, usage_of(database, settings), largest_of(database))
        self.threads = Threads()
        self.budget = budget
        self.sealing = Sealing(database, self.threads)
        self.metrics = MetricIngest(database, budget, self.threads, self.sealing)
        notices = Notices(database)
        self.spool = SpoolIngest(database, self.metrics, self.threads, notices)
        self.logs = LogIngest(database, budget, self.threads, notices)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Intake]:
        """With its background tasks; what still waits at the end is refused with "try again"."""
        tasks = [
            asyncio.create_task(keep_running(name, work), name=name)
            for name, work in (
                ("metrics", self.metrics.run),
                ("sealing", self.sealing.run),
                ("joining", self.logs.run),
            )
        ]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.threads.close()
