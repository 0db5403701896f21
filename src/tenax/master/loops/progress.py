"""The progress loop: what trials tell of themselves, added to what their searches have done.

Rules: scripts tell their progress often, and nobody waits for it: experiments are looked at together, once a second at
most. What follows from metrics by ``searcher.max_length`` names nobody: it is looked at again while it runs, the rarer
the more there are. A search that nobody has told about (of an older release, or continued) is folded from its journal
once.
"""

from __future__ import annotations

import math
import time

from asyncpg import Connection

from tenax.config.resolve import stored_experiment
from tenax.master.loops.loop import PassContext, each
from tenax.master.store.database.wakeups import MAX_WAIT_S, Woken
from tenax.master.store.experiments import progress, searches
from tenax.master.store.experiments import rows as experiments
from tenax.search import view
from tenax.search.state import State, fold
from tenax.search.view import Standing

#: Seconds between two passes.
PAUSE_S = 1.0
#: Experiments of one transaction.
_TOGETHER = 100
#: Seconds between two looks at what metrics tell, for each transaction that a look takes.
_COUNTED_S = 2.0


class Progress:
    """Keeps the progress of running experiments."""

    name = "progress"
    kind = progress.KIND

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        self._pause_s = pause_s
        self._named: set[int] = set()
        self._full = True
        #: Running experiments of which metrics tell how far they are.
        self._counted: set[int] = set()
        self._last = self._last_full = self._last_counted = -math.inf

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Look at the experiments that were named, or at all; or wait until it is time to."""
        now = time.monotonic()
        self._full |= woken.full or now - self._last_full >= MAX_WAIT_S
        self._named |= {int(name) for name in woken.ids}
        if now - self._last < self._pause_s:
            return self._last + self._pause_s - now
        if now - self._last_counted >= self._counted_pause_s():
            self._last_counted = now
            self._named |= self._counted
        named, full = sorted(self._named), self._full
        self._named, self._full, self._last = set(), False, now
        if full:
            self._last_full = now
        if full or named:
            await self._refresh(context, None if full else named)
        return self._counted_pause_s() if self._counted else None

    def _counted_pause_s(self) -> float:
        return _COUNTED_S * math.ceil(len(self._counted) / _TOGETHER)

    async def _refresh(self, context: PassContext, named: list[int] | None) -> None:
        async with context.reading() as conn:
            due = await progress.due(conn, named)
        self._counted = (self._counted.difference(named) if named is not None else set()).union(
            row.experiment_id for row in due if row.counted
        )
        unknown = {str(row.experiment_id): row.unmanaged for row in due if row.unknown}
        await each(
            list(unknown), lambda name: _learn(context, int(name), unknown[name]), loop=self.name, noun="experiment"
        )
        known = [row.experiment_id for row in due if not row.unknown]
        for first in range(0, len(known), _TOGETHER):
            async with context.transaction() as conn:
                await progress.refresh(conn, known[first : first + _TOGETHER])


async def _learn(context: PassContext, experiment_id: int, unmanaged: bool) -> None:
    async with context.transaction() as conn:
        if not await progress.is_unknown(conn, experiment_id):
            # The searching loop was faster.
            return
        if unmanaged:
            await progress.stand_unmanaged(conn, experiment_id)
        else:
            standing = await _standing(conn, experiment_id)
            if standing is not None:
                await progress.stand(conn, experiment_id, standing)


async def _standing(conn: Connection, experiment_id: int) -> Standing | None:
    search = stored_experiment((await experiments.plan(conn, experiment_id)).config).search
    _, entries = await searches.journal(conn, experiment_id, 0)
    # A search that has not begun yet is one that holds nothing; any seed will do.
    return view.standing(fold(search, entries) if entries else State(search, 0))
