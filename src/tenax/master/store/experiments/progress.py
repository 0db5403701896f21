"""How far experiments are: one value each, which `tenax.search.view` alone computes, and everything else reads.

Rules:
- Who knows what a search has done writes where it stands, in the transaction that changes it: the searching loop, with
  its journal; the scripts of unmanaged experiments. What trials report of themselves is added by the loop of `KIND`.
- An experiment that was asked to end or has failed keeps the progress that it had; one that has completed is at 1.
- The row of an experiment is locked after all else (the order of locks: `docs/internals.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.search import view
from tenax.search.view import Standing

Q = load("experiments")

#: Of the wake-ups of the loop that adds what trials report.
KIND = "progress"


@dataclass(frozen=True, slots=True)
class DueProgress:
    """A running experiment whose progress may be older than what its trials report."""

    experiment_id: int
    unmanaged: bool
    #: It is not known where its search stands.
    unknown: bool
    #: ``searcher.max_length`` says how far its trials are, as they report metrics.
    counted: bool


async def trial_reported(conn: Connection, experiment_id: int) -> None:
    """A trial of this experiment has reported how far it is."""
    await notify(conn, KIND, experiment_id)


async def forget(conn: Connection, experiment_id: int) -> None:
    """It begins anew: its search is to be looked at."""
    await conn.execute(Q.forget_progress, experiment_id)
    await notify(conn, KIND, experiment_id)


async def stand(conn: Connection, experiment_id: int, standing: Standing) -> None:
    """Its search stands here now."""
    before = await conn.fetch(Q.lock_progress, [experiment_id])
    if any(row["settled"] is None for row in before):
        # It has just begun: whoever looks at what its trials report is to know of it.
        await notify(conn, KIND, experiment_id)
    live = await _live(conn, [experiment_id]) if standing.share else {}
    progress = view.progress(standing, live.get(experiment_id, ()))
    await conn.execute(Q.set_standing, experiment_id, progress, standing.settled, standing.share)


async def stand_unmanaged(conn: Connection, experiment_id: int) -> None:
    """As `stand`, of an experiment that no search of this master makes trials for."""
    row = await conn.fetchrow(Q.unmanaged_trials, experiment_id)
    if row is not None and row["state"] not in ("CANCELED", "ERROR"):
        completed = row["state"] == "COMPLETED"
        await stand(conn, experiment_id, Standing(1.0, 0.0) if completed else view.mean(row["ended"], row["trials"]))


async def due(conn: Connection, among: Sequence[int] | None) -> list[DueProgress]:
    """Of these, or of all."""
    return [DueProgress(**row) for row in await conn.fetch(Q.progress_due, among)]


async def is_unknown(conn: Connection, experiment_id: int) -> bool:
    """Whether it is still not known where its search stands; nobody else will say so until the transaction ends."""
    rows = await conn.fetch(Q.lock_progress, [experiment_id])
    return any(row["settled"] is None for row in rows)


async def refresh(conn: Connection, experiment_ids: Sequence[int]) -> None:
    """Add what the trials of these experiments report by now, as far as they still run."""
    locked = await conn.fetch(Q.lock_progress, experiment_ids)
    rows = {row["experiment_id"]: row for row in locked if row["running"] and row["share"]}
    live = await _live(conn, list(rows))
    changed: dict[int, float] = {}
    for number, row in rows.items():
        progress = view.progress(Standing(row["settled"], row["share"]), live.get(number, ()))
        if progress != row["progress"]:
            changed[number] = progress
    if changed:
        await conn.execute(Q.set_progress, list(changed), list(changed.values()))


async def _live(conn: Connection, experiment_ids: Sequence[int]) -> dict[int, list[float]]:
    """How far live trials are. A statement of its own: it sees what was committed before the lock was had."""
    live: dict[int, list[float]] = {}
    for row in await conn.fetch(Q.live_progress, experiment_ids):
        live.setdefault(row["experiment_id"], []).append(
            view.of_trial(row["reported"], row["reached"], row["length"])
        )  # fmt: skip
    return live
