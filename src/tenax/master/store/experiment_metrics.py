"""What metrics of the trials of an experiment come to. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.ingest.decide import is_better
from tenax.master.store.queries import load

Q = load("experiment_metrics")


@dataclass(frozen=True, slots=True)
class Best:
    """A validation that was better than all before it."""

    trial_id: int
    at: datetime
    metric: float


@dataclass(frozen=True, slots=True)
class Sampled:
    """A trial and what it was made with."""

    id: int
    hparams: JsonObject


async def searched(conn: Connection, experiment_ids: Sequence[int]) -> tuple[list[str], bool]:
    """The metrics that these experiments look at, sorted, and whether one of them goes on. Raises NotFound."""
    rows = await conn.fetch(Q.searched, list(set(experiment_ids)))
    if len(rows) < len(set(experiment_ids)):
        raise NotFound("there is no such experiment: one of those that were named does not exist")
    return sorted({row["metric"] for row in rows if row["metric"]}), any(row["going_on"] for row in rows)


async def improvements(conn: Connection, experiment_id: int, smaller_is_better: bool) -> list[Best]:
    """The validations that were the best so far when they came."""
    found: list[Best] = []
    for row in await conn.fetch(Q.validations, experiment_id):
        if is_better(row["metric"], found[-1].metric if found else None, smaller_is_better):
            found.append(Best(row["trial_id"], row["at"], row["metric"]))
    return found


async def best_trials(conn: Connection, experiment_id: int, most: int | None) -> list[Sampled]:
    """At most so many trials, by their best validation; None: all."""
    return [Sampled(row["id"], row["hparams"]) for row in await conn.fetch(Q.best_trials, experiment_id, most)]
