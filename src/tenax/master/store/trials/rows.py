"""Rows of trials: created once per decision, locked after their experiment, changed by guarded writes.

Rules:
- A decision creates one trial, however often it is applied.
- A wish is only ever raised.
- A fact for the search goes into its inbox in the transaction that changes the trial, and counts once.
- What a script reports of its trial (progress, state, ``invalid_hp``, ``fatal``) counts from the current run only; the
  two marks are set once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record

from tenax.errors import Stale
from tenax.ids import ExperimentId, RequestId, allocation_id, trial_task_id
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.experiment import RUNNING, ExperimentState
from tenax.lifecycle.reconcile import LiveTrial, OpenAllocation
from tenax.lifecycle.trial import TrialState, TrialVerdict, Wish
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import AttemptRequest, Size
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments.searches import KIND as SEARCH
from tenax.search.journal import Create, Exited, ExitReason, encode

Q = load("trials")

_SEARCH_REASON = {
    "COMPLETED": ExitReason.FINISHED,
    "ERRORED": ExitReason.ERRORED,
    "USER_CANCELED": ExitReason.USER_CANCELED,
    "INVALID_HP": ExitReason.INVALID_HP,
}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """The narrow row."""

    id: int
    experiment_id: int
    request_id: RequestId
    task_id: str
    state: TrialState
    wish: Wish
    #: Why it was raised, as a sentence; empty where the wish says it.
    wish_reason: str
    version: int
    run_id: int
    restarts: int
    setbacks: int
    invalid_hp: bool
    fatal: str | None


async def lock(conn: Connection, trial_id: int) -> TrialRow:
    """The trial, locked until the transaction ends; the caller holds its experiment's lock. Raises NotFound."""
    return _trial(await existing(conn, f"trial {trial_id}", Q.lock, [trial_id]))


async def lock_many(conn: Connection, trial_ids: Collection[int]) -> dict[int, TrialRow]:
    """Those of these trials that there are, locked; the caller holds the locks of their experiments."""
    return {row["id"]: _trial(row) for row in await conn.fetch(Q.lock, list(trial_ids))} if trial_ids else {}


def _trial(row: Record) -> TrialRow:
    return row_as(TrialRow, row, state=TrialState, wish=Wish)


async def create(
    conn: Connection, experiment_id: int, decisions: Mapping[int, Create], warm_start: str | None
) -> list[int]:
    """The trials of Creates, by their place in the journal; nothing for a decision that made one before."""
    if not decisions:
        return []
    made = await conn.fetch(
        Q.create,
        experiment_id,
        [decision.request_id for decision in decisions.values()],
        list(decisions),
        [trial_task_id(ExperimentId(experiment_id), decision.request_id) for decision in decisions.values()],
        [decision.hparams for decision in decisions.values()],
        [decision.seed for decision in decisions.values()],
        warm_start,
    )
    return [row["id"] for row in made]


async def raise_wish(conn: Connection, trial_id: int, experiment_id: int, wish: Wish) -> None:
    """Raise what a trial should become; nothing if it is so already or the trial has ended."""
    if await conn.fetchval(Q.raise_wish, trial_id, wish.value) is not None:
        await notify(conn, "experiment", experiment_id)


async def stop_by_request(conn: Connection, experiment_id: int, reasons: Mapping[RequestId, str]) -> None:
    """The search's Stops, and why."""
    if reasons:
        names, why = list(reasons), list(reasons.values())
        await conn.fetch(Q.hold_by_request, experiment_id, names)
        await conn.execute(Q.raise_wishes_by_request, experiment_id, names, Wish.STOP.value, why)


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to reconcile of an experiment."""

    state: ExperimentState
    unmanaged: bool
    #: Those that have not ended.
    trials: tuple[LiveTrial, ...]


async def scene(conn: Connection, experiment_id: int) -> Scene | None:
    """An experiment and its live trials as they are, without a lock; None: it is gone."""
    rows = await conn.fetch(Q.live_with_allocation, experiment_id, None)
    if not rows:
        return None
    return Scene(ExperimentState(rows[0]["experiment_state"]), rows[0]["unmanaged"], _live(rows))


async def live(conn: Connection, experiment_id: int, trial_ids: Sequence[int] | None = None) -> tuple[LiveTrial, ...]:
    """The trials of an experiment (of these, or all) that have not ended, with their open allocations."""
    names = None if trial_ids is None else list(trial_ids)
    return _live(await conn.fetch(Q.live_with_allocation, experiment_id, names))


def _live(rows: Sequence[Record]) -> tuple[LiveTrial, ...]:
    return tuple(
        LiveTrial(
            row["id"],
            Wish(row["wish"]),
            row["invalid_hp"],
            row["fatal"],
            None
            if row["allocation_id"] is None
            else OpenAllocation(
                row["allocation_id"],
                AllocationState(row["allocation_state"]),
                Preemption(row["preemption"]),
                row["ready"],
                row["ending"],
                row["leaves_within_s"],
            ),
            row["held"],
            row["wish_reason"],
        )
        for row in rows
        if row["id"] is not None
    )


async def at_once(conn: Connection, experiment_id: int) -> int | None:
    """How many trials the search of an experiment lets run at a time; None: it does not say."""
    most: int | None = await conn.fetchval(Q.at_once, experiment_id)
    return most


async def held_back(conn: Connection) -> tuple[list[int], float | None]:
    """Experiments with trials whose waiting has ended of late; seconds until the next that waits may try again."""
    row = await conn.fetchrow(Q.held_back)
    return row["released"], row["next"]


async def request_runs(conn: Connection, trial_ids: Sequence[int], size: Size) -> list[str]:
    """Ask for slots for their next attempts: the new allocations' ids; nothing for a trial that has ended meanwhile.

    A second open allocation of a task breaks a unique index, and with it the transaction.
    """
    if not trial_ids:
        return []
    await conn.fetch(Q.hold, list(trial_ids))
    rows = await conn.fetch(Q.next_runs, list(trial_ids))
    attempts = [
        AttemptRequest(allocation_id(row["task_id"], row["run_id"]), row["task_id"], row["run_id"])
        for row in sorted(rows, key=lambda row: row["id"])
    ]
    await allocations.request(conn, attempts, size, preemptible=True)
    return [attempt.allocation_id for attempt in attempts]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a locked trial becomes after an attempt, or without one."""

    trial: TrialRow
    verdict: TrialVerdict
    #: Of its experiment, whose lock the caller holds.
    experiment: ExperimentState


async def conclude(conn: Connection, conclusions: Sequence[Conclusion]) -> None:
    """What trials become; their searches learn of their ends. Raises Stale."""
    if not conclusions:
        return
    verdicts = [each.verdict for each in conclusions]
    written = await conn.fetch(
        Q.set_verdicts,
        [each.trial.id for each in conclusions],
        [each.trial.version for each in conclusions],
        [verdict.state.value for verdict in verdicts],
        [verdict.restarts for verdict in verdicts],
        [verdict.reason for verdict in verdicts],
        [verdict.setbacks for verdict in verdicts],
        [verdict.hold_s for verdict in verdicts],
    )
    if len(written) < len(conclusions):
        raise Stale
    log_of = {row["id"]: row["log_task_id"] for row in written}
    await _tell_searches(conn, [each for each in conclusions if each.verdict.exit is not None], log_of)
    for each in conclusions:
        # A trial that has ended needs no reconciling; what comes next is for the search to decide, while it goes on.
        if each.verdict.exit is None or each.experiment not in RUNNING:
            await notify(conn, "experiment", each.trial.experiment_id)


async def _tell_searches(conn: Connection, ended: Sequence[Conclusion], log_of: Mapping[int, str]) -> None:
    if not ended:
        return
    trials = [each.trial for each in ended]
    facts = [
        encode(Exited(each.trial.request_id, _SEARCH_REASON[each.verdict.exit.value]))
        for each in ended
        if each.verdict.exit is not None
    ]
    owners = [trial.experiment_id for trial in trials]
    await conn.fetch(
        Q.put_facts, owners, [trial.id for trial in trials], "exit", [trial.run_id for trial in trials], facts
    )
    for trial in trials:
        await notify(conn, "logs", log_of[trial.id])
        await notify(conn, SEARCH, trial.experiment_id)
    await gc.trials_ended(conn, [trial.id for trial in trials])


async def put_fact(
    conn: Connection, experiment_id: int, trial_id: int, kind: str, at_key: int, fact: JsonObject
) -> bool:
    """Put a fact into the search's inbox; False if it is there already. The caller announces it as ``SEARCH``."""
    return bool(await conn.fetch(Q.put_facts, [experiment_id], [trial_id], kind, [at_key], [fact]))


async def set_progress(conn: Connection, trial_id: int, run_id: int, progress: float) -> None:
    """In [0, 1]."""
    await conn.execute(Q.set_progress, trial_id, run_id, progress)


async def set_runner_state(conn: Connection, trial_id: int, run_id: int, state: str) -> None:
    """Any word."""
    await conn.execute(Q.set_runner_state, trial_id, run_id, state)


async def set_hang(conn: Connection, trial_id: int, run_id: int, sentence: str, ends: bool) -> None:
    """Where the ranks of a run stand still (empty: they do no longer), and whether it is ended for that."""
    await conn.execute(Q.set_hang, trial_id, run_id, sentence, ends)


async def ended_by_hang(conn: Connection, trial_ids: Sequence[int]) -> dict[int, str]:
    """Of these trials, those whose current run was ended since it hung: where it stood."""
    return {row["id"]: row["hang"] for row in await conn.fetch(Q.ended_by_hang, list(trial_ids))}


async def coming_further(conn: Connection, trial_ids: Sequence[int]) -> frozenset[int]:
    """Of these trials, those whose current run has saved a checkpoint, or had a shorter time limit than the next."""
    return frozenset(row["id"] for row in await conn.fetch(Q.coming_further, list(trial_ids)))


async def before_any_step(conn: Connection, trial_ids: Sequence[int]) -> frozenset[int]:
    """Of these trials, those of which no run has reported a step, or saved."""
    return frozenset(row["id"] for row in await conn.fetch(Q.before_any_step, list(trial_ids)))


async def repeated_failures(conn: Connection, experiment_ids: Collection[int]) -> dict[tuple[int, str], int]:
    """Where trials of these experiments failed twice before any step: by experiment and place, the trial."""
    rows = await conn.fetch(Q.repeated_failures, list(experiment_ids))
    return {(row["experiment_id"], row["place"]): row["trial_id"] for row in rows}


async def note_repeated_failures(conn: Connection, failures: Mapping[tuple[int, str], int]) -> None:
    """Further places; the caller holds the locks of the experiments. They are forgotten where one is continued."""
    experiment_ids, places = [key[0] for key in failures], [key[1] for key in failures]
    await conn.execute(Q.note_repeated_failures, experiment_ids, places, list(failures.values()))


async def set_invalid_hp(conn: Connection, trial_id: int, run_id: int) -> bool:
    """The script gave up these hyperparameters; False if that was known, or changes nothing any more."""
    return await conn.fetchval(Q.set_invalid_hp, trial_id, run_id) is not None


async def set_fatal(conn: Connection, trial_id: int, run_id: int, message: str) -> bool:
    """A report ends the trial with this error; False if one did already, or it changes nothing any more."""
    return await conn.fetchval(Q.set_fatal, trial_id, run_id, message) is not None
