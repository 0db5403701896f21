"""When tails of metrics are packed: once they have grown, and once their trial has ended.

Nothing ticks: while no report comes, nobody looks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

import structlog

from tenax.errors import TryAgain
from tenax.master.ingest.threads import Threads
from tenax.master.ingest.values import GroupKey, Segment
from tenax.master.store import metrics_seal
from tenax.master.store.database import Database

log = structlog.get_logger("tenax.ingest")

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

    def note(self, segments: Iterable[Segment]) -> None:
        """Reports were appended."""
        for segment in segments:
            key = (segment.trial_id, segment.group)
            count, size = self._grown.get(key, (0, 0))
            count += len(segment.reports)
            size += sum(report.size for report in segment.reports)
            self._grown[key] = (count, size)
            if count >= metrics_seal.SEAL_AT or size >= _SEAL_BYTES:
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
            await metrics_seal.seal(conn, *key, lambda rows: self._threads.run(metrics_seal.pack, rows))

    async def sweep(self) -> None:
        """Pack what trials that have ended left. Raises TryAgain."""
        self._stored = False
        while True:
            async with self._database.connection() as conn:
                found = await metrics_seal.finished(conn, _SWEEP_AT_ONCE)
            for key in found:
                await self.seal(key)
            if len(found) < _SWEEP_AT_ONCE:
                return
