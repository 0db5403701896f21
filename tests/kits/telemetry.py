"""A trial that reports: rows for it, and the intake that stores what it says.

async def test_x(book: Book) -> None:
    trial = await book.trial()
    await book.report(trial, "training", 1, {"loss": 0.5})
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from tenax.config.master import BudgetSettings
from tenax.ids import RequestId, allocation_id
from tenax.jsonvalue import Json, JsonObject
from tenax.master.ingest.intake import Intake
from tenax.master.reading.log_search import FoundLine, LogFilters
from tenax.master.reading.log_stream import LogQuery, LogReads, LogSource, read
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.store.metrics import series, summaries
from tenax.master.store.metrics.rows import MetricTables
from tenax.master.store.metrics.series import StoredReport
from tenax.master.store.trials import rows as trials
from tenax.master.store.users.rows import UserRow
from tenax.master.store.users.sessions import TaskOf
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import Refused, SpooledReport
from tenax.search.journal import Create

SINGLE: JsonObject = {"name": "single", "metric": "loss", "smaller_is_better": True}
ASHA: JsonObject = {
    "name": "adaptive_asha",
    "metric": "loss",
    "smaller_is_better": True,
    "time_metric": "batches",
    "max_time": 100,
    "max_trials": 4,
}
OWNER = UserRow(1, "owner", "", False, True, False)


@dataclass
class Book:
    """Trials, and what they report."""

    database: Database
    intake: Intake
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def experiment(self, searcher: JsonObject = SINGLE) -> int:
        """An experiment that searches so."""
        job = f"job-{uuid.uuid4()}"
        async with self.database.transaction() as conn:
            await conn.execute("insert into users (id, username) values (1, 'owner') on conflict do nothing")
            await conn.execute("insert into workspaces (id, name) values (1, 'w') on conflict do nothing")
            await conn.execute(
                "insert into projects (id, workspace_id, name) values (1, 1, 'p') on conflict do nothing"
            )
            await conn.execute(
                "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ($1, 'default', 42, 1, 1)",
                job,
            )
            made: int = await conn.fetchval(
                "insert into experiments (job_id, owner_id, project_id, state)"
                " values ($1, 1, 1, 'ACTIVE') returning id",
                job,
            )
            await conn.execute(
                "insert into experiment_documents (experiment_id, name, original_config, config, seed)"
                " values ($1, 'e', '', $2, 0)",
                made,
                {"searcher": searcher},
            )
        return made

    async def trial(self, searcher: JsonObject = SINGLE, *, experiment: int | None = None, run: int = 1) -> int:
        """A trial in its run ``run``."""
        experiment_id = await self.experiment(searcher) if experiment is None else experiment
        number = next(self._numbers)
        sample = Create(RequestId(str(uuid.UUID(int=number))), 7, {}, number, 0, None)
        async with self.database.transaction() as conn:
            (made,) = await trials.create(conn, experiment_id, {number: sample}, None)
        await self.run(made, run)
        return made

    async def run(self, trial_id: int, run: int) -> TaskOf:
        """Begin a run; the attempt that its token speaks for, with one container of the same name."""
        async with self.database.transaction() as conn:
            task_id = await conn.fetchval(
                "update trials set run_id = $2 where id = $1 returning task_id", trial_id, run
            )
            experiment_id = await conn.fetchval("select experiment_id from trials where id = $1", trial_id)
            name = allocation_id(task_id, run)
            if await conn.fetchval("select 1 from allocations where allocation_id = $1", name):
                return TaskOf(name, task_id, run, trial_id, experiment_id, OWNER)
            await conn.execute(
                "update allocations set state = 'TERMINATED', ended_at = now() where task_id = $1 and ended_at is null",
                task_id,
            )
            await conn.execute(
                "insert into allocations (allocation_id, task_id, run_id, state, slots)"
                " values ($1, $2, $3, 'RUNNING', 1)",
                name,
                task_id,
                run,
            )
            await conn.execute(
                "insert into agents (agent_id, pool, credential_hash)"
                " values ('a1', 'default', $1) on conflict do nothing",
                b"\x01" * 32,
            )
            await conn.execute(
                "insert into containers (container_id, allocation_id, rank, agent_id, slots, state)"
                " values ($1, $1, 0, 'a1', '{}', 'RUNNING')",
                name,
            )
        return TaskOf(name, task_id, run, trial_id, experiment_id, OWNER)

    async def say(
        self, trial_id: int, group: str, step: int | None, metrics: Mapping[str, Json], *, run: int = 1, **more: Json
    ) -> Refused | None:
        """One report, as Determined's route takes it; why it was refused."""
        values: JsonObject = {"avgMetrics": dict(metrics), **more}
        report = from_values(trial_id, run, group, step, None, values)
        return (await self.intake.metrics.submit([SpooledReport(report)])).refused[0]

    async def report(
        self, trial_id: int, group: str, step: int | None, metrics: Mapping[str, Json], *, run: int = 1, **more: Json
    ) -> None:
        """One report that is stored."""
        refused = await self.say(trial_id, group, step, metrics, run=run, **more)
        assert refused is None, refused

    async def reports(self, trial_id: int, group: str = "") -> list[StoredReport]:
        """The visible reports, as read back."""
        reports: list[StoredReport] = []
        async with self.database.snapshot() as conn:
            for each in await series.groups_of(conn, [trial_id]):
                if group in ("", each.name):
                    for cluster in await series.outline(conn, each):
                        reports += (await series.fetch(conn, each, cluster)).reports()
        return reports

    async def seal(self, trial_id: int, group: str = "training") -> None:
        """Pack a group."""
        await self.intake.sealing.seal((trial_id, group))

    async def recount(self, trial_id: int) -> None:
        """Sum up what is visible from what is stored."""
        async with self.database.transaction() as conn:
            target = (await MetricTables().targets(conn, [trial_id]))[trial_id]
            await summaries.recount(conn, trial_id, target, self.intake.threads.run)

    async def output(self, trial_id: int, query: LogQuery | None = None) -> list[FoundLine]:
        """Lines of the trial."""
        async with self.database.connection() as conn:
            task_id = await conn.fetchval("select task_id from trials where id = $1", trial_id)
        lines: list[FoundLine] = []
        query = query or LogQuery(LogFilters())
        listener = Listener(self.database)
        source, never = LogSource(task_id, of_trial=True), asyncio.Event()
        async for some in read(LogReads(self.database), listener, self.intake.threads, source, query, never):
            lines += some
        return lines

    async def inbox(self, trial_id: int) -> list[JsonObject]:
        """The facts that the search will see."""
        async with self.database.connection() as conn:
            rows = await conn.fetch("select fact from search_inbox where trial_id = $1 order by at_key", trial_id)
        return [row["fact"] for row in rows]


@pytest.fixture
async def book(database: Database) -> AsyncIterator[Book]:
    """A running intake on a fresh database."""
    async with Intake(database, BudgetSettings(min_free_bytes=0)).running() as intake:
        yield Book(database, intake)


def spool_line(n: int, kind: str, body: JsonObject, at: float = 1_790_000_000.0) -> bytes:
    """One line of a spool."""
    return msgspec.json.encode({"n": n, "kind": kind, "at": at, "body": body}) + b"\n"


def metrics_line(n: int, group: str, step: int | None, metrics: Mapping[str, Json]) -> bytes:
    """A report, as a line of a spool."""
    return spool_line(n, "metrics", {"group": group, "stepsCompleted": step, "metrics": dict(metrics)})
