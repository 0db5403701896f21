"""Group commit of metrics, and the sealing that packs them later.

Rules:
- What arrives while one transaction is under way goes into the next, together.
- A report is answered when its transaction is committed; nothing is answered from memory.
- Reports are checked before they join a group. A group that fails for another reason is stored one arrival after the
  other, and in it one report after the other, so that only the culprit is refused.
- The queue is bounded in bytes: beyond it the answer is "try again".
- One group at a time; reports of one sender stay in their order.
- A tail is sealed once it has grown, and once its trial has ended. Nothing ticks while no report comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from asyncpg import Connection

from tenax.errors import TryAgain
from tenax.master.concurrency.threads import Threads
from tenax.master.ingest.budget import Budget
from tenax.master.observability import counters
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import rows as logs
from tenax.master.store.metrics import sealing as metrics_sealing
from tenax.master.store.metrics import summaries
from tenax.master.store.metrics.rows import MetricTables, save_refusals
from tenax.master.telemetry.decide import decide
from tenax.master.telemetry.values import GroupKey, Known, Outcome, Refused, SpooledReport, StreamKey, TailRow

log = structlog.get_logger("tenax.ingest")

#: Bytes of reports that wait at most.
QUEUE_BYTES = 64 * 1024 * 1024
#: Bytes of reports in one transaction, unless one submission alone is larger.
_GROUP_BYTES = 4 * 1024 * 1024
#: More reports than this, or more bytes of them, are worked through in a thread.
_INLINE, _INLINE_BYTES = 100, 64 * 1024


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of reports, once that is durable."""

    #: For each of them None, or why it is refused for good.
    refused: list[Refused | None]
    #: Of the spools that were given: the last line taken in, before and after.
    before: Mapping[StreamKey, int] = field(default_factory=dict)
    acked: Mapping[StreamKey, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Arrival:
    """Reports of one request."""

    items: Sequence[SpooledReport]
    allocations: Mapping[StreamKey, str]
    size: int
    done: asyncio.Future[Receipt] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class MetricIngest:
    """Takes in reports of metrics. For one event loop; `run` is a task of the owner's."""

    def __init__(self, database: Database, budget: Budget, threads: Threads, sealing: Sealing) -> None:
        self._database = database
        self._budget = budget
        self._threads = threads
        self._sealing = sealing
        self._metrics = MetricTables()
        self._waiting: deque[_Arrival] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        #: Told of what was stored: the newest step of each trial and group.
        self.on_stored: Callable[[Mapping[GroupKey, int]], None] | None = None

    async def submit(
        self, items: Sequence[SpooledReport], allocations: Mapping[StreamKey, str] | None = None
    ) -> Receipt:
        """Store reports; returns once that is durable.

        ``allocations``: for numbered reports, the allocation of each spool. Raises TryAgain (NoRoom among them).
        """
        await self._budget.check_metrics()
        size = sum(item.size for item in items)
        if self._waiting and self._bytes + size > QUEUE_BYTES:
            raise TryAgain("more metrics are waiting to be stored than fit in memory: try again in a moment")
        arrival = _Arrival(items, allocations or {}, size)
        self._waiting.append(arrival)
        self._bytes += size
        self._arrived.set()
        return await arrival.done

    async def run(self) -> None:
        """Store what arrives, until cancelled; what still waits then is refused with "try again"."""
        try:
            while True:
                await self._arrived.wait()
                group = self._next_group()
                await self._store_group(group)
        finally:
            for arrival in self._waiting:
                _fail(arrival, TryAgain("the master is shutting down"))
            self._waiting.clear()
            self._bytes = 0
            self._arrived.clear()

    def _next_group(self) -> list[_Arrival]:
        group = [self._waiting.popleft()]
        size = group[0].size
        while self._waiting and size + self._waiting[0].size <= _GROUP_BYTES:
            group.append(self._waiting.popleft())
            size += group[-1].size
        self._bytes -= size
        if not self._waiting:
            self._arrived.clear()
        return group

    async def _store_group(self, group: list[_Arrival]) -> None:
        try:
            stored = await self._store(
                [item for arrival in group for item in arrival.items],
                {key: name for arrival in group for key, name in arrival.allocations.items()},
            )
        except TryAgain as error:
            for arrival in group:
                _fail(arrival, error)
        except asyncio.CancelledError:
            for arrival in group:
                _fail(arrival, TryAgain("the master is shutting down"))
            raise
        except Exception:
            log.exception("a group of metrics could not be stored; trying its reports one by one", reports=len(group))
            await self._store_apart(group)
        else:
            start = 0
            for arrival in group:
                refused = stored.refused[start : start + len(arrival.items)]
                _answer(arrival, replace(stored, refused=refused))
                start += len(arrival.items)

    async def _store_apart(self, group: list[_Arrival]) -> None:
        for arrival in group:
            try:
                receipts = [await self._store_one(item, arrival.allocations) for item in arrival.items]
            except TryAgain as error:
                _fail(arrival, error)
            except Exception:
                # The waiting request gets an answer, and the next group is stored, whatever this is.
                log.exception("reports of metrics cannot be stored", reports=len(arrival.items))
                _fail(arrival, TryAgain("metrics cannot be stored at the moment: the master's log has the details"))
            else:
                refused = [receipt.refused[0] for receipt in receipts]
                _answer(arrival, Receipt(refused, receipts[0].before, receipts[-1].acked))

    async def _store_one(self, item: SpooledReport, allocations: Mapping[StreamKey, str]) -> Receipt:
        try:
            return await self._store([item], allocations)
        except TryAgain:
            raise
        except Exception as error:
            log.exception("a report of metrics cannot be stored", report=item.report and item.report.group)
            refused = Refused(f"it cannot be stored ({type(error).__name__}): the master's log has the details")
            if item.stream is not None:
                return await self._store([replace(item, condemned=refused)], allocations)
            return Receipt([refused])

    async def _store(self, items: Sequence[SpooledReport], allocations: Mapping[StreamKey, str]) -> Receipt:
        async with self._database.transaction() as conn:
            known = await self._metrics.load(conn, items, allocations)
            outcome = await self._decide(items, known)
            await self._metrics.apply(conn, outcome, known.now_us)
            await self._after(conn, items, known, outcome)
        self._metrics.committed(outcome)
        self._sealing.note(outcome.tail_rows)
        if self.on_stored is not None:
            self.on_stored({key: head.newest_step for key, head in outcome.heads.items()})
        refused = [outcome.refused.get(place) for place in range(len(items))]
        return Receipt(refused, known.acked, {**known.acked, **outcome.acked})

    async def _decide(self, items: Sequence[SpooledReport], known: Known) -> Outcome:
        if len(items) <= _INLINE and sum(item.size for item in items) <= _INLINE_BYTES:
            return decide(items, known)
        return await self._threads.run(decide, items, known)

    async def _after(self, conn: Connection, items: Sequence[SpooledReport], known: Known, outcome: Outcome) -> None:
        for trial_id in sorted(outcome.recount):
            await summaries.recount(conn, trial_id, known.trials[trial_id].target, self._threads.run)
        numbered = [
            (*items[place].stream, items[place].n, why.message, why.fatal)  # type: ignore[misc]
            for place, why in outcome.refused.items()
            if items[place].stream is not None
        ]
        await save_refusals(conn, numbered)
        for task_id, level, text in sorted(outcome.lines):
            await logs.append_system_line(conn, task_id, text, level)


def _answer(arrival: _Arrival, receipt: Receipt) -> None:
    refused = sum(refusal is not None for refusal in receipt.refused)
    counters.INGESTED.labels("reports").inc(len(receipt.refused) - refused)
    counters.INGEST_REFUSED.labels("reports").inc(refused)
    # The client may have gone away.
    if not arrival.done.done():
        arrival.done.set_result(receipt)


def _fail(arrival: _Arrival, error: TryAgain) -> None:
    if not arrival.done.done():
        arrival.done.set_exception(error)


#: A tail of so many bytes is packed, however few its reports are.
_SEAL_BYTES = 8 * 1024 * 1024
#: So long after reports came, trials that have ended are looked for.
_SWEEP_S = 30.0
_SWEEP_AT_ONCE = 100


class Sealing:
    """Packs tails in the background. For one event loop; `run` is a task of the owner's."""

    def __init__(self, database: Database, threads: Threads) -> None:
        self._database = database
        self._threads = threads
        #: Reports and bytes that this process has appended since it last packed.
        self._grown: dict[GroupKey, tuple[int, int]] = {}
        self._ripe: set[GroupKey] = set()
        self._wake = asyncio.Event()
        # An earlier process may have left something.
        self._stored = True

    def note(self, tail_rows: Iterable[TailRow]) -> None:
        """Reports were appended."""
        for row in tail_rows:
            key = (row.trial_id, row.group)
            count, size = self._grown.get(key, (0, 0))
            count += len(row.reports)
            size += sum(report.size for report in row.reports)
            self._grown[key] = (count, size)
            if count >= metrics_sealing.SEAL_AT or size >= _SEAL_BYTES:
                self._ripe.add(key)
                self._wake.set()
            self._stored = True

    async def run(self) -> None:
        """Pack, until cancelled."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _SWEEP_S if self._stored else None)
            self._wake.clear()
            try:
                if not self._ripe:
                    await self.sweep()
                while self._ripe:
                    await self.seal(self._ripe.pop())
            except TryAgain:
                log.warning("packing of metrics waits: the database is away")
            except Exception:
                log.exception("a group of metrics could not be packed; it stays as it is")

    async def seal(self, key: GroupKey) -> None:
        """Pack one group. Raises TryAgain."""
        self._grown.pop(key, None)
        async with self._database.transaction() as conn:
            await metrics_sealing.seal(conn, *key, lambda rows: self._threads.run(metrics_sealing.pack, rows))

    async def sweep(self) -> None:
        """Pack what trials that have ended left. Raises TryAgain."""
        self._stored = False
        while True:
            async with self._database.connection() as conn:
                keys = await metrics_sealing.finished(conn, _SWEEP_AT_ONCE)
            for key in keys:
                await self.seal(key)
            if len(keys) < _SWEEP_AT_ONCE:
                return
