"""What the live stream says of things that changed: each is read here, once for all who follow it.

Rows come by the number or name of the thing; one that is not there any more has none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.queries import load, row_as
from tenax.master.store.experiments.lists import shown_reason

Q = load("events")

#: Trials of one experiment that are compared with what followers have; where more go on, lists are fetched again.
MAX_LIVE_TRIALS = 1000


@dataclass(frozen=True, slots=True)
class ExperimentNews:
    """Of an experiment."""

    id: int
    project_id: int
    owner_id: int
    state: str
    archived: bool
    name: str
    description: str
    labels: list[str]
    notes_digest: str
    progress: float
    trials: int
    best_trial_id: int | None
    best_metric: float | None
    checkpoints: int
    ended_at: datetime | None
    reason: str
    first_failure: str | None
    wait_reason: str | None

    @property
    def shown_reason(self) -> str:
        """As lists show it."""
        return shown_reason(self.state, self.reason, self.wait_reason, self.first_failure, self.trials)


@dataclass(frozen=True, slots=True)
class TrialNews:
    """Of a trial."""

    id: int
    experiment_id: int
    #: It has not ended.
    live: bool
    state: str
    run_id: int
    restarts: int
    progress: float | None
    best_metric: float | None
    total_batches: int
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskNews:
    """Of a task that no search asked for."""

    task_id: str
    kind: str
    owner_id: int
    workspace_id: int
    state: str


@dataclass(frozen=True, slots=True)
class AgentNews:
    """Of an agent."""

    agent_id: str
    pool: str
    state: str
    connected: bool
    slots: int
    slots_in_use: int


@dataclass(frozen=True, slots=True)
class TrialPlace:
    """How wake-ups name a trial."""

    task_id: str
    experiment_id: int


async def experiments(conn: Connection, ids: Collection[int]) -> dict[int, ExperimentNews]:
    """By number."""
    return {row["id"]: row_as(ExperimentNews, row) for row in await conn.fetch(Q.experiments, sorted(ids))}


async def trials(conn: Connection, ids: Collection[int], experiment_ids: Collection[int]) -> dict[int, TrialNews]:
    """Those of ``ids``, and of these experiments those that go on (`MAX_LIVE_TRIALS` of each); by number."""
    rows = await conn.fetch(Q.trials, sorted(ids), sorted(experiment_ids), MAX_LIVE_TRIALS)
    return {row["id"]: row_as(TrialNews, row) for row in rows}


async def tasks(conn: Connection, ids: Collection[str]) -> dict[str, TaskNews]:
    """By id; none of a trial."""
    return {row["task_id"]: row_as(TaskNews, row) for row in await conn.fetch(Q.tasks, sorted(ids))}


async def agents(conn: Connection, ids: Collection[str]) -> dict[str, AgentNews]:
    """By id."""
    return {row["agent_id"]: row_as(AgentNews, row) for row in await conn.fetch(Q.agents, sorted(ids))}


async def output_ends(conn: Connection, task_ids: Collection[str]) -> dict[str, int]:
    """How many lines each task has put out."""
    return {row["task_id"]: row["next_line"] for row in await conn.fetch(Q.output_ends, sorted(task_ids))}


async def newest_steps(conn: Connection, trial_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """By trial and group of metrics: the step of the newest report."""
    steps: dict[int, dict[str, int]] = {}
    for row in await conn.fetch(Q.newest_steps, sorted(trial_ids)):
        steps.setdefault(row["trial_id"], {})[row["grp"]] = row["newest_step"]
    return steps


async def places(conn: Connection, trial_ids: Collection[int]) -> dict[int, TrialPlace]:
    """Of the trials that there are."""
    rows = await conn.fetch(Q.places, sorted(trial_ids))
    return {row["id"]: TrialPlace(row["task_id"], row["experiment_id"]) for row in rows}


async def known_experiments(conn: Connection, ids: Collection[int]) -> set[str]:
    """Those that there are, as text."""
    return {str(row["id"]) for row in await conn.fetch(Q.known_experiments, sorted(ids))}


async def known_projects(conn: Connection, ids: Collection[int]) -> set[str]:
    """Those that there are, as text."""
    return {str(row["id"]) for row in await conn.fetch(Q.known_projects, sorted(ids))}


async def known_tasks(conn: Connection, ids: Collection[str]) -> set[str]:
    """Those that there are, trials' among them."""
    return {row["task_id"] for row in await conn.fetch(Q.known_tasks, sorted(ids))}


async def announce(conn: Connection, kind: str, names: str) -> None:
    """Tell the other masters, by a wake-up of that kind, of as much as a name of one has room for."""
    await conn.execute(Q.announce, f"{kind}:{names}")
