"""Retention: deletes output, reports and keys that were kept long enough; adds counts up when there are many.

Counts (`experiment_counts`) and keys of requests are here because they are clean-ups, too, and need no loop of their
own.
"""

from __future__ import annotations

import structlog

from tenax.config.schedule import Schedule, next_after
from tenax.master.loops.loop import LONG_STEP_S, PassContext
from tenax.master.store.database import idempotency, months
from tenax.master.store.database.connection import now as database_now
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.logs import retention
from tenax.master.store.metrics import retention as metric_retention

log = structlog.get_logger("tenax.retention")

CHORE = "log_retention"
#: The first clean-up waits this long: a master that has just started has other things to do.
_FIRST_S = 10.0


class Retention:
    """Cleans up from time to time."""

    name = "retention"
    kind = "retention"
    step_s = LONG_STEP_S

    def __init__(self, days: int, schedule: Schedule | None, metric_days: int = -1) -> None:
        self._days = days
        self._metric_days = metric_days
        self._schedule = schedule

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Clean up if it is time; seconds until it is."""
        await _add_up_counts(context)
        await _forget_keys(context)
        if self._schedule is None:
            return None
        async with context.reading() as conn:
            last, now = await retention.last_done(conn, CHORE)
        if last is None:
            await self._note(context)
            return _FIRST_S
        due = next_after(self._schedule, last)
        if due is None:
            return None
        if due > now:
            return (due - now).total_seconds()
        await self._clean(context)
        await self._clean_metrics(context)
        await _drop_months(context)
        await self._note(context)
        return 0.0

    async def _clean(self, context: PassContext) -> None:
        tasks = lines = 0
        while True:
            async with context.transaction() as conn:
                cleaned, removed = await retention.clean(conn, self._days)
            tasks, lines = tasks + cleaned, lines + removed
            if cleaned < retention.BATCH:
                break
        if tasks:
            log.info("expired output was deleted", tasks=tasks, lines=lines)

    async def _clean_metrics(self, context: PassContext) -> None:
        trials, cleaned = 0, metric_retention.BATCH
        while cleaned == metric_retention.BATCH:
            async with context.transaction() as conn:
                cleaned = await metric_retention.clean(conn, self._metric_days)
            trials += cleaned
        if trials:
            log.info("expired metrics were deleted", trials=trials)

    async def _note(self, context: PassContext) -> None:
        async with context.transaction() as conn:
            await retention.done(conn, CHORE)


async def _drop_months(context: PassContext) -> None:
    for drop in (retention.drop_months, metric_retention.drop_months):
        async with context.transaction() as conn:
            before = months.oldest_kept((await database_now(conn)).timestamp())
            dropped = await drop(conn, before)
        if dropped:
            log.info("empty months were dropped", months=dropped)


async def _add_up_counts(context: PassContext) -> None:
    async with context.reading() as conn:
        many = await experiment_lists.are_many(conn)
    if many:
        async with context.transaction() as conn:
            await experiment_lists.add_up_counts(conn)


async def _forget_keys(context: PassContext) -> None:
    async with context.reading() as conn:
        due = await idempotency.any_due(conn)
    if due:
        async with context.transaction() as conn:
            await idempotency.forget(conn)
