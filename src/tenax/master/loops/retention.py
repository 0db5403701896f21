"""The retaining loop: output that is kept no longer goes, at the times of the schedule; counts are folded when many."""

from __future__ import annotations

import structlog

from tenax.config.schedule import Schedule, next_after
from tenax.master.loops.loop import Desk
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.logs import retention

log = structlog.get_logger("tenax.retaining")

CHORE = "log_retention"
#: One that was never done is waited for so long: a master that has just started has other things to do.
_FIRST_S = 10.0


class Retaining:
    """Cleans up from time to time."""

    name = "retaining"
    kind = "retention"

    def __init__(self, days: int, schedule: Schedule | None) -> None:
        self._days = days
        self._schedule = schedule

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Clean up if it is time; seconds until it is."""
        await _fold_counts(desk)
        if self._schedule is None:
            return None
        async with desk.looking() as conn:
            last, now = await retention.last_done(conn, CHORE)
        if last is None:
            await self._note(desk)
            return _FIRST_S
        due = next_after(self._schedule, last)
        if due is None:
            return None
        if due > now:
            return (due - now).total_seconds()
        await self._clean(desk)
        await self._note(desk)
        return 0.0

    async def _clean(self, desk: Desk) -> None:
        tasks = lines = 0
        while True:
            async with desk.transaction() as conn:
                some, removed = await retention.clean(conn, self._days)
            tasks, lines = tasks + some, lines + removed
            if some < retention.BATCH:
                break
        if tasks:
            log.info("output that is kept no longer was removed", tasks=tasks, lines=lines)

    async def _note(self, desk: Desk) -> None:
        async with desk.transaction() as conn:
            await retention.done(conn, CHORE)


async def _fold_counts(desk: Desk) -> None:
    async with desk.looking() as conn:
        many = await experiment_lists.are_many(conn)
    if many:
        async with desk.transaction() as conn:
            await experiment_lists.fold_counts(conn)
