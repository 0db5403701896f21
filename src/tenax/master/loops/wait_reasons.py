"""Why requests wait, as people read it: what is written, what should be, and at what pace the one follows the other.

Rules:
- Who is new in the queue is told at once, and what does not wait any more is dropped at once.
- Each placement changes the words of all behind it ("n requests are ahead"): those follow once a second, some thousands
  at a time and for a small share of the loop's time, so that in a long queue they keep up nobody's placement.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Record

from tenax.ids import AllocationId
from tenax.master.concurrency.threads import run_beside
from tenax.master.loops.loop import PassContext
from tenax.master.store.queue import placements
from tenax.master.store.queue.cluster_cache import ClusterCache

#: Words that have changed are written this often at most,
WRITE_EVERY_S = 1.0
#: or after so many times as long as the last of them took,
WRITE_SELDOM = 10.0
#: and no more of them than this at once.
_CHANGED_AT_ONCE = 4_000
#: In one transaction.
_TOGETHER = 1_000


@dataclass(frozen=True, slots=True)
class _DueReasons:
    """What is to be written now."""

    #: What waits no more.
    over: Sequence[AllocationId]
    #: Its pool, and why it waits; so many of them say something else than before.
    reasons: Mapping[AllocationId, tuple[str, str]]
    changed: int
    #: Words that have changed and are written later.
    left: int


class WaitReasons:
    """Of all pools. One pass at a time."""

    def __init__(self) -> None:
        self._written: dict[str, dict[AllocationId, str]] = {}
        self._due: dict[str, Mapping[AllocationId, str]] = {}
        self._behind: set[str] = set()
        #: Whose changed words were written since all of them were: those of the others come first.
        self._recent: set[AllocationId] = set()
        self._in_step_at = -WRITE_EVERY_S
        self._took_s = 0.0

    def load(self, rows: Sequence[Record], cache: ClusterCache) -> None:
        """What is written (``allocation_id``, ``reason``); ``cache`` knows what is in which queue."""
        self._written.clear()
        self._due.clear()
        for row in rows:
            name = AllocationId(row["allocation_id"])
            self._written.setdefault(cache.pool_of(name) or "", {})[name] = row["reason"]
        self._behind = set(self._written)

    def say(self, pool: str, waiting: Mapping[AllocationId, str]) -> None:
        """Why each of a pool waits, by what was decided now."""
        self._due[pool] = waiting
        self._behind.add(pool)

    def keep_to(self, pools: set[str]) -> None:
        """Of others nothing waits any more."""
        for pool in (self._due.keys() | self._written.keys()) - pools:
            self.say(pool, {})

    def placed(self, pool: str, name: AllocationId) -> None:
        """It waits no more, and its row is gone."""
        self._written.get(pool, {}).pop(name, None)

    async def write(self, context: PassContext) -> float | None:
        """Write what is due; seconds until more is, where words that have changed are left."""
        if not self._behind:
            return None
        size = sum(len(self._due.get(pool, ())) for pool in self._behind)
        due = await run_beside(size, self._find_due, may_change=self._left_s() <= 0)
        began = time.monotonic()
        await self._write(context, due)
        if not due.left:
            self._behind.clear()
        if due.changed or not due.left:
            self._in_step_at = time.monotonic()
            self._took_s = self._in_step_at - began if due.changed else 0.0
        return max(0.0, self._left_s()) if due.left else None

    def _left_s(self) -> float:
        """Seconds until words that have changed may be written."""
        return self._in_step_at + max(WRITE_EVERY_S, self._took_s * WRITE_SELDOM) - time.monotonic()

    def _find_due(self, *, may_change: bool) -> _DueReasons:
        """``may_change``: some of the words that have changed are due as well."""
        over: list[AllocationId] = []
        reasons: dict[AllocationId, tuple[str, str]] = {}
        changed: dict[AllocationId, tuple[str, str]] = {}
        for pool in self._behind:
            due, written = self._due.get(pool, {}), self._written.get(pool, {})
            over += written.keys() - due.keys()
            for name, reason in due.items():
                before = written.get(name)
                if before is None:
                    reasons[name] = pool, reason
                elif before != reason:
                    changed[name] = pool, reason
        chosen = self._choose(changed) if may_change else []
        reasons.update((name, changed[name]) for name in chosen)
        return _DueReasons(over, reasons, len(chosen), len(changed) - len(chosen))

    def _choose(self, changed: Mapping[AllocationId, object]) -> list[AllocationId]:
        """Those that are written now; everyone's turn comes."""
        names = [name for name in changed if name not in self._recent][:_CHANGED_AT_ONCE]
        if len(names) < min(len(changed), _CHANGED_AT_ONCE):
            self._recent.clear()
            more = changed.keys() - set(names)
            names += [name for name in changed if name in more][: _CHANGED_AT_ONCE - len(names)]
        self._recent.update(names)
        return names

    async def _write(self, context: PassContext, due: _DueReasons) -> None:
        nothing: Sequence[AllocationId] = ()
        over, names = due.over, list(due.reasons)
        # Dropped first: what was moved to another pool is over here, and new there.
        parts = [*((nothing, each) for each in _slices(over)), *((each, nothing) for each in _slices(names))]
        if over and len(over) + len(names) <= _TOGETHER:
            parts = [(names, over)]
        for some, gone in parts:
            async with context.transaction() as conn:
                written = await placements.write_waits(conn, {name: due.reasons[name][1] for name in some}, gone)
            for pool in self._behind:
                its = self._written.get(pool, {})
                for name in gone:
                    its.pop(name, None)
            for name in written:
                pool, reason = due.reasons[name]
                self._written.setdefault(pool, {})[name] = reason


def _slices(names: Sequence[AllocationId]) -> Iterator[Sequence[AllocationId]]:
    return (names[begin : begin + _TOGETHER] for begin in range(0, len(names), _TOGETHER))
