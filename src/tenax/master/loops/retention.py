"""Retention: deletes output that has been kept long enough, as scheduled; adds counts up when there are many.

Folding (`experiment_counts`) is done here because it is a clean-up, too, and needs no loop of its own.
"""

from __future__ import annotations

import structlog

from tenax.config.schedule import Schedule, next_after
from tenax.master.loops.loop import PassContext
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.logs import retention

log = structlog.get_logger("tenax.retention")

CHORE = "log_retention"
#: The first clean-up waits this long: a master that has just started has other things to do.
_FIRST_S = 10.0


class Retention:
    """Cleans up from time to time."""

    name = "retention"
    kind = "retention"

    def __init__(self, days: int, schedule: Schedule | None) -> None:
        self._days = days
        self._schedule = schedule

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Clean up if it is time; seconds until it is."""
        await _add_up_counts(context)
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

    async def _note(self, context: PassContext) -> None:
        async with context.transaction() as conn:
            await retention.done(conn, CHORE)


async def _add_up_counts(context: PassContext) -> None:
    async with context.reading() as conn:
        many = await experiment_lists.are_many(conn)
    if many:
        async with context.transaction() as conn:
            await experiment_lists.add_up_counts(conn)
