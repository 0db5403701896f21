"""Letting an experiment go on after its end: its trials reopened, its search informed, its job back in the queue.

Rules: the experiment is locked, and has ended, so that no loop looks at it. What its search had not seen of the trials
that go on is written into the journal before their reopening, with nothing decided on it: to the search, they never
left. Each has one more task, whose output goes on in the log of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asyncpg import Connection

from tenax.ids import RequestId
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentEvent
from tenax.lifecycle.trial import TrialState
from tenax.master.store.database.queries import load
from tenax.master.store.experiments import progress, searches
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.logs import rows as logs
from tenax.master.store.trials import rows as trials
from tenax.search.journal import Reopened, SearchEntry, decode

Q = load("experiments")

_TURN = "it waits for its turn: at most {} run at once (max_concurrent_trials)"


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """A trial of an experiment that has ended."""

    id: int
    request_id: RequestId
    state: TrialState
    hparams: JsonObject


@dataclass(frozen=True, slots=True)
class Continued:
    """What an experiment is when it goes on."""

    config: JsonObject
    name: str
    description: str
    labels: tuple[str, ...]
    pool: str
    priority: int
    weight: float
    max_slots: int | None
    time_limit_s: float | None
    #: By trial that goes on, its hyperparameters.
    hparams: Mapping[int, JsonObject]
    #: How many of them may run at a time; None: all.
    at_once: int | None = None


async def trials_of(conn: Connection, experiment_id: int) -> list[EndedTrial]:
    """In the order of their making."""
    return [
        EndedTrial(row["id"], RequestId(row["request_id"]), TrialState(row["state"]), row["hparams"])
        for row in await conn.fetch(Q.trials, experiment_id)
    ]


async def go_on(conn: Connection, experiment: ExperimentRow, new: Continued) -> None:
    """Let a locked experiment that has ended go on. Raises NotNow."""
    await experiments.happen(conn, experiment, ExperimentEvent.CONTINUE)
    await conn.execute(
        Q.revive_job, experiment.job_id, new.pool, new.priority, new.weight, new.max_slots, new.time_limit_s
    )
    # Whoever continues it has changed something, or hopes that something has.
    await conn.execute(Q.forget_repeated_failures, experiment.id)
    await conn.execute(Q.set_documents, experiment.id, new.config, new.name, new.description, list(new.labels))
    if new.hparams:
        await _reopen(conn, experiment.id, new.hparams, new.at_once)
    await progress.forget(conn, experiment.id)


async def _reopen(conn: Connection, experiment_id: int, hparams: Mapping[int, JsonObject], at_once: int | None) -> None:
    numbers = sorted(hparams)
    locked = await trials.lock_many(conn, numbers)
    reopened: list[SearchEntry] = [Reopened(locked[number].request_id) for number in numbers]
    turns = ["" if at_once is None or place < at_once else _TURN.format(at_once) for place in range(len(numbers))]
    await conn.execute(Q.reopen, numbers, [hparams[number] for number in numbers], turns)
    last: int = await conn.fetchval(Q.last_entry, experiment_id)
    unseen = await conn.fetch(Q.unseen, experiment_id, numbers)
    entries = [*(decode(row["fact"]) for row in unseen), *reopened]
    await searches.append(conn, experiment_id, last + 1, entries, None)
    await searches.move(conn, [(row["id"], place) for place, row in enumerate(unseen, last + 1)])
    await conn.execute(Q.forget_exits, experiment_id, numbers)
    tasks = await conn.fetch(Q.next_tasks, numbers)
    await logs.reopen(conn, [row["log_task_id"] for row in tasks])
    await conn.execute(Q.no_progress, numbers)
