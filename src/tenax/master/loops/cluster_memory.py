"""What one pass of the loop `scheduling` leaves to the next: the cluster, and which pools need not be planned again.

Rules:
- Memory takes the rows that changed since it was read. What it was woken for does not matter, nor what was not heard.
- An audit, now and then, reads all, in the transaction that reads the changes: what differs then is a defect. It is
  told and counted, and the rows are taken.
- A pool is settled where its plan asked for nothing to be done: the same pool would be planned to the same words, until
  a row of it changes or the time comes. Under quotas none is: they bind over all pools, and follow what is used.
- A pass that does not get to its end leaves nothing: the next one has a memory of its own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from asyncpg import Connection

from tenax.ids import JobId, PoolName
from tenax.master.concurrency.threads import run_beside
from tenax.master.loops.loop import PassContext
from tenax.master.loops.wait_reasons import WaitReasons
from tenax.master.observability import counters
from tenax.master.store.queue import placements
from tenax.master.store.queue.cluster_cache import ClusterCache, ClusterRows, forget_changes, read_all, read_changes
from tenax.master.store.quotas import rows as quotas
from tenax.scheduler.registry import same_until
from tenax.scheduler.snapshot import PoolAgent, PoolPlan, PoolRules, PoolSnapshot

log = structlog.get_logger("tenax.scheduling")

#: An audit comes at most this often, and takes at most one part in so many of the loop's time.
AUDIT_EVERY_S = 60.0
_AUDIT_SELDOM = 100.0
#: Differences in the log line of one audit.
_LOGGED = 10


@dataclass(frozen=True, slots=True)
class _Settled:
    """Of a pool, as `PoolSnapshot.at`."""

    until: float
    #: When its plan changes by the time alone; None: never.
    changes_at: float | None


class ClusterMemory:
    """For one pass after the other, under one lease and one set of rules."""

    def __init__(
        self,
        rules: Mapping[str, PoolRules],
        aux_places: Mapping[str, int],
        prospects: Mapping[str, Sequence[PoolAgent]] | None = None,
    ) -> None:
        """``aux_places``, ``prospects``: as `ClusterCache` takes them. Pools with prospects are never settled: what is
        said of their machines changes with these."""
        self._rules = rules
        self._aux_places = aux_places
        self._prospects = prospects or {}
        self._cache: ClusterCache | None = None
        self._audit_at = 0.0
        self._settled: dict[PoolName, _Settled] = {}
        #: Whether there were quotas: what they say changes with what is used.
        self._by_quotas = False
        #: Whether something that was read is still noted as changed.
        self._is_noted = True

    def is_for(self, rules: Mapping[str, PoolRules]) -> bool:
        """Whether it was made for these very rules."""
        return self._rules is rules

    async def read(
        self,
        context: PassContext,
        reasons: WaitReasons,
        attained: Callable[[Connection], Awaitable[Mapping[JobId, float]]],
        *,
        covers_all: bool,
    ) -> list[PoolSnapshot]:
        """The cluster as it is now, by what quotas say now. Where all is read, ``reasons`` are, too."""
        began, cache = time.monotonic(), self._cache
        reads_all = cache is None or (covers_all and began >= self._audit_at)
        async with context.snapshot() as conn:
            changes = None if cache is None else await read_changes(conn, cache.read)
            rows = await read_all(conn) if reads_all else None
            written = await placements.wait_rows(conn) if reads_all else []
            its, held = await quotas.rules_of_jobs(conn), await attained(conn)
        if cache is not None and changes is not None:
            changed = await run_beside(changes.size, cache.take, changes)
            self._is_noted = self._is_noted or changes.were_noted
            for pool in changed:
                self._settled.pop(PoolName(pool), None)
        if rows is not None:
            cache = await self._reload(context, rows, cache)
            await run_beside(len(written), reasons.load, written, cache)
            took = time.monotonic() - began
            self._audit_at = began + took + max(AUDIT_EVERY_S, took * _AUDIT_SELDOM)
        assert cache is not None
        self._cache = cache
        if covers_all or its is not None or self._by_quotas:
            self._settled.clear()
        self._by_quotas = its is not None
        snapshots = await run_beside(cache.size, cache.snapshots, held)
        return await run_beside(cache.size if its else 0, placements.by_quotas, snapshots, its)

    def unsettled(self, snapshots: Sequence[PoolSnapshot]) -> list[PoolSnapshot]:
        """Those whose plan may be another than the last one."""
        return [
            each for each in snapshots if each.pool not in self._settled or self._settled[each.pool].until <= each.at
        ]

    def settle(self, snapshot: PoolSnapshot, decided: PoolPlan, changes_at: float | None) -> None:
        """What was decided of a pool, as it was read."""
        if decided.placements or decided.preempt or snapshot.pool in self._prospects:
            self._settled.pop(snapshot.pool, None)
        else:
            self._settled[snapshot.pool] = _Settled(same_until(snapshot, changes_at), changes_at)

    def next_change(self, at: float) -> float | None:
        """Seconds until the plan of a settled pool changes by the time alone."""
        moments = (each.changes_at for each in self._settled.values())
        return min((moment - at for moment in moments if moment is not None), default=None)

    async def forget_changes(self, context: PassContext) -> None:
        """Remove what is noted of changes that it has."""
        if self._is_noted and self._cache is not None:
            async with context.transaction() as conn:
                await forget_changes(conn, self._cache.read)
            self._is_noted = False

    async def _reload(self, context: PassContext, rows: ClusterRows, before: ClusterCache | None) -> ClusterCache:
        """What the rows say; what was otherwise in memory is told. Raises LeaseLost."""
        cache = ClusterCache(self._rules, self._aux_places, self._prospects)
        await run_beside(rows.size, cache.take, rows)
        differences = [] if before is None else await run_beside(cache.size, before.differences, cache)
        if differences:
            # Whoever has taken over removes what is noted: to us it is no defect.
            async with context.transaction():
                self._settled.clear()
            counters.CACHE_DIFFERED.inc(len(differences))
            log.error(
                "the cluster in memory was not as the database has it; it is now",
                differences=len(differences),
                first=differences[:_LOGGED],
            )
        return cache
