"""How much disk telemetry may take: near the end logs are refused first, then metrics, so that state can be written.

Rules:
- Sizes are measured when something comes in, at most every few seconds; nothing ticks while nothing comes.
- Files do not get smaller when rows are deleted, and the room is used again: where they have reached a budget, what
  counts is what is in them.
- What to delete is said by name: what has the most lines, or reports; looked for while a budget is used up, at most
  every few minutes.
- The disk of a database on another machine cannot be seen from here: there the setting says how much it may take.
- A task whose output or reports are refused gets one line in its log that says so.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from tenax.config.master import BudgetSettings
from tenax.errors import TenaxError, TryAgain
from tenax.host.disk import size_text
from tenax.master.observability import counters
from tenax.master.store.cluster import gauges
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import rows as logs

_FRESH_S = 5.0
#: The search for what is largest reads through all tasks.
_LARGEST_FOR_S = 300.0


class NoRoom(TryAgain):
    """There is no room for this: make some, then it will be taken."""

    def __init__(self, what: str, message: str) -> None:
        """``what``: logs, or metrics."""
        super().__init__(message, retry_after=30.0)
        counters.NO_ROOM.labels(what).inc()


@dataclass(frozen=True, slots=True)
class Usage:
    """In bytes. ``free`` is of the disk of the database; None where that is not known."""

    logs: int
    metrics: int
    free: int | None


#: What has the most of ``logs`` or ``metrics``, in words.
Largest = Callable[[str], Awaitable[list[str]]]


class Budget:
    """Refuses in time. For one event loop."""

    def __init__(self, settings: BudgetSettings, measure: Callable[[], Awaitable[Usage]], largest: Largest) -> None:
        self._settings = settings
        self._measure = measure
        self._find_largest = largest
        #: By what is full: when it was looked for, and the names.
        self._largest: dict[str, tuple[float, list[str]]] = {}
        self._usage = Usage(0, 0, None)
        self._measured_at = -_FRESH_S
        self._measuring = asyncio.Lock()

    async def check_logs(self) -> None:
        """Raises NoRoom when lines of tasks cannot be taken."""
        usage = await self._current()
        if usage.logs >= self._settings.log_bytes:
            raise NoRoom(
                "logs",
                f"logs take {size_text(usage.logs)}, and may take {size_text(self._settings.log_bytes)}: delete "
                f"experiments or shorten log_retention_days, or raise budgets.log_bytes{await self._most('logs')}",
            )
        self._check_free(usage, self._settings.min_free_bytes, "logs")

    async def check_metrics(self) -> None:
        """Raises NoRoom when metrics cannot be taken."""
        usage = await self._current()
        if usage.metrics >= self._settings.metric_bytes:
            raise NoRoom(
                "metrics",
                f"metrics take {size_text(usage.metrics)}, and may take {size_text(self._settings.metric_bytes)}: "
                "delete experiments or shorten metric_retention_days, or raise budgets.metric_bytes"
                f"{await self._most('metrics')}",
            )
        self._check_free(usage, self._settings.min_free_bytes // 2, "metrics")

    async def _most(self, what: str) -> str:
        """The end of a sentence: what has the most of it."""
        looked_at, names = self._largest.get(what, (-_LARGEST_FOR_S, []))
        if time.monotonic() - looked_at >= _LARGEST_FOR_S:
            # Noted before it is looked for: one search at a time.
            self._largest[what] = (time.monotonic(), names)
            names = await self._find_largest(what)
            self._largest[what] = (time.monotonic(), names)
        return f"; the most is of {', '.join(names)}" if names else ""

    def _check_free(self, usage: Usage, needed: int, what: str) -> None:
        if usage.free is not None and usage.free < needed:
            raise NoRoom(
                what,
                f"the disk of the database has {size_text(usage.free)} left, and {what} are refused below "
                f"{size_text(needed)}, so that the state of experiments can still be written: make room on it",
            )

    async def usage(self) -> Usage:
        """As of some seconds ago at most. Raises TryAgain."""
        return await self._current()

    async def _current(self) -> Usage:
        if time.monotonic() - self._measured_at >= _FRESH_S:
            async with self._measuring:
                if time.monotonic() - self._measured_at >= _FRESH_S:
                    self._usage = await self._measure()
                    self._measured_at = time.monotonic()
        return self._usage


def usage_of(database: Database, settings: BudgetSettings) -> Callable[[], Awaitable[Usage]]:
    """Measures tables of the database, and its disk."""
    disk_bytes = settings.disk_bytes

    async def measure() -> Usage:
        async with database.connection() as conn:
            sizes = await gauges.telemetry_sizes(conn)
            logs, metrics = sizes.logs, sizes.metrics
            if logs >= settings.log_bytes:
                logs = min(logs, await gauges.live_size(conn, "logs"))
            if metrics >= settings.metric_bytes:
                metrics = min(metrics, await gauges.live_size(conn, "metrics"))
            directory = await gauges.local_directory(conn)
            taken = 0 if disk_bytes is None else await gauges.database_size(conn)
        free = None if directory is None else _free(Path(directory))
        if disk_bytes is not None:
            left = max(0, disk_bytes - taken)
            free = left if free is None else min(free, left)
        return Usage(logs, metrics, free)

    return measure


def largest_of(database: Database) -> Largest:
    """Looks for what has the most lines, or reports."""

    async def largest(what: str) -> list[str]:
        async with database.connection() as conn:
            return await (gauges.largest_logs(conn) if what == "logs" else gauges.largest_metrics(conn))

    return largest


def _free(directory: Path) -> int | None:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


log = structlog.get_logger("tenax.intake")

_KEPT = 50_000


class Notices:
    """Warns in the logs of tasks. For one event loop; another master, or a later one, may repeat a warning."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._given: set[tuple[str, str]] = set()

    async def once(self, task_id: str, what: str, reason: str) -> None:
        """Warn in the log of a task, unless it has this warning already: what happened, and the reason.

        Raises nothing: where not even a line can be stored, the warning is in the server's log only.
        """
        if (task_id, what) in self._given:
            return
        if len(self._given) >= _KEPT:
            self._given.clear()
        self._given.add((task_id, what))
        log.warning(what, task=task_id, reason=reason)
        try:
            async with self._database.transaction() as conn:
                await logs.append_system_line(conn, task_id, f"{what}: {reason}", "WARNING")
        except TenaxError as error:
            log.warning("the warning could not be written into the task's log", task=task_id, reason=str(error))
