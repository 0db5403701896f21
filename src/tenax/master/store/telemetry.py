"""What a trial's script says of itself, beside its metrics; and the two marks of it that decisions read.

Rules: said by a run that is not the trial's current one, it changes nothing. ``invalid_hp`` and ``fatal`` are set once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.store.queries import load

Q = load("telemetry")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One row."""

    progress: float | None
    runner_state: str
    #: The highest step of any visible report.
    total_batches: int
    #: {"step", "run_id", "at", "metrics"} of the visible validations with the searcher's metric.
    latest_validation: JsonObject | None
    best_validation: JsonObject | None
    #: The searcher's metric of the best one, as reported.
    best_metric: float | None
    reported_at: datetime | None


async def of_trials(conn: Connection, trial_ids: list[int]) -> dict[int, Telemetry]:
    """By trial, every one that was asked for."""
    return {
        row["trial_id"]: Telemetry(
            row["progress"],
            row["runner_state"],
            row["total_batches"],
            row["latest_validation"],
            row["best_validation"],
            row["best_metric"],
            row["reported_at"],
        )
        for row in await conn.fetch(Q.of_trials, trial_ids)
    }


async def best_of_experiment(conn: Connection, experiment_id: int, smaller_is_better: bool) -> tuple[int, float] | None:
    """(trial, metric) of the best validation of an experiment; None: no validation yet. NaN ranks worst."""
    row = await conn.fetchrow(Q.best_smallest if smaller_is_better else Q.best_largest, experiment_id)
    return None if row is None else (row["trial_id"], row["best_metric"])


async def set_progress(conn: Connection, trial_id: int, run_id: int, progress: float) -> None:
    """In [0, 1]."""
    await conn.execute(Q.set_progress, trial_id, run_id, progress)


async def set_runner_state(conn: Connection, trial_id: int, run_id: int, state: str) -> None:
    """Any word."""
    await conn.execute(Q.set_runner_state, trial_id, run_id, state)


async def set_invalid_hp(conn: Connection, trial_id: int, run_id: int) -> bool:
    """The script gave up these hyperparameters; False if that was known, or changes nothing any more."""
    return await conn.fetchval(Q.set_invalid_hp, trial_id, run_id) is not None


async def set_fatal(conn: Connection, trial_id: int, run_id: int, message: str) -> bool:
    """A report ends the trial with this error; False if one did already, or it changes nothing any more."""
    return await conn.fetchval(Q.set_fatal, trial_id, run_id, message) is not None
