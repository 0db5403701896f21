"""Searches: takes facts from the inbox, lets the search decide, creates or stops trials; one transaction each.

Rules: only this loop moves facts on; facts and decisions are written together, in one gapless order; the state of a
search is a cache of its journal, thrown away whenever a transaction did not commit.
"""

from __future__ import annotations

from asyncpg import Connection

from tenax.lifecycle.experiment import RUNNING
from tenax.master.loops.loop import PassContext, each
from tenax.master.loops.quarantine import quarantine_in
from tenax.master.store.database.wakeups import Woken, notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import searches
from tenax.master.submission import search_steps
from tenax.master.submission.search_steps import Search
from tenax.search import searcher
from tenax.search.journal import SearchEntry, Shutdown, Validated
from tenax.search.state import fold


class Searching:
    """Steps every search that has something to do."""

    name = "searching"
    kind = searches.KIND

    def __init__(self) -> None:
        self._cache: dict[int, Search] = {}

    @property
    def remembered(self) -> tuple[int, ...]:
        """Experiments whose search is in memory."""
        return tuple(self._cache)

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Step the searches that were named, or all that have something to do."""
        named = None if woken.full or not woken.ids else [int(name) for name in woken.ids]
        async with context.reading() as conn:
            dirty = await searches.dirty(conn, named)
            if named is None:
                # Those that were canceled or killed have no last step in which to be forgotten.
                running = set(await searches.going_on(conn))
                self._cache = {number: cached for number, cached in self._cache.items() if number in running}
        await each(
            [str(number) for number in dirty],
            lambda name: self._step(context, int(name)),
            loop=self.name,
            noun="experiment",
            quarantine=quarantine_in(context, self.name),
        )
        return None

    async def _step(self, context: PassContext, experiment_id: int) -> None:
        # Taken out of the cache for the time of the transaction: what did not commit must not be remembered.
        cached = self._cache.pop(experiment_id, None)
        async with context.transaction() as conn:
            experiment = await experiments.lock(conn, experiment_id)
            if experiment.state not in RUNNING or experiment.unmanaged:
                return
            cached = await self._load(conn, experiment_id, cached)
            entries: list[SearchEntry] = []
            if cached is None:
                cached, entries = await search_steps.begin(conn, experiment_id)
            moved = await _take_in(conn, experiment_id, cached, entries)
            if entries:
                await search_steps.write(conn, experiment, cached, entries)
            await searches.move(conn, moved)
            if len(moved) == searches.AT_ONCE:
                await notify(conn, searches.KIND, experiment_id)
            # A validation alone leaves nothing to reconcile. An end does: another trial may have its turn.
            validations = sum(isinstance(entry, Validated) for entry in entries)
            if not entries or validations < max(len(entries), len(moved)):
                await notify(conn, "experiment", experiment_id)
        if not any(isinstance(entry, Shutdown) for entry in entries):
            self._cache[experiment_id] = cached

    async def _load(self, conn: Connection, experiment_id: int, cached: Search | None) -> Search | None:
        """The search as its journal has it; None when it has not begun."""
        if cached is not None:
            cached.seq, new_entries = await searches.journal(conn, experiment_id, cached.seq)
            for entry in new_entries:
                cached.state.apply(entry)
            return cached
        seq, entries = await searches.journal(conn, experiment_id, 0)
        if not entries:
            return None
        config, warm_start, _ = await search_steps.configuration(conn, experiment_id)
        return Search(fold(config, entries), seq, warm_start)


async def _take_in(
    conn: Connection, experiment_id: int, cached: Search, entries: list[SearchEntry]
) -> list[tuple[int, int]]:
    """Let the search see what waits in the inbox. Returns (inbox id, journal place) of each fact seen.

    A fact that is no news (a validation after the Stop) leaves no entry of its own; its place is the last entry's.
    """
    moved = []
    for row in await searches.waiting(conn, experiment_id):
        if searcher.is_news(cached.state, row.fact):
            entries.append(row.fact)
            moved.append((row.id, cached.seq + len(entries)))
            entries.extend(searcher.step(cached.state, row.fact))
        else:
            moved.append((row.id, cached.seq + len(entries)))
    return moved
