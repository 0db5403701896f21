"""Rows of trials: created once per decision, locked after their experiment, changed by guarded writes.

Rules:
- A decision creates one trial, however often it is applied.
- A wish is only ever raised.
- A fact for the search goes into its inbox in the transaction that changes the trial, and counts once.
- What a script reports of its trial (progress, state, ``invalid_hp``, ``fatal``) counts from the current run only; the
  two marks are set once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record

from tenax.errors import Stale
from tenax.ids import ExperimentId, RequestId, allocation_id, trial_task_id
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.experiment import RUNNING, ExperimentState
from tenax.lifecycle.reconcile import LiveTrial, OpenAllocation
from tenax.lifecycle.trial import TrialState, TrialVerdict, Wish
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments.searches import KIND as SEARCH
from tenax.search.journal import Create, Exited, ExitReason, encode
from tenax.search.methods.registry import names_of

Q = load("trials")
#: Methods whose cap on concurrent trials binds.
_CAPPED = names_of(lambda method: method.keeps_to_cap)

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


@dataclass(frozen=True, slots=True)
class Size:
    """What an attempt of a trial asks of the cluster."""

    slots: int
    single_node: bool


async def lock(conn: Connection, trial_id: int) -> TrialRow:
    """The trial, locked until the transaction ends; the caller holds its experiment's lock. Raises NotFound."""
    row = await existing(conn, f"trial {trial_id}", Q.lock, trial_id)
    return row_as(TrialRow, row, state=TrialState, wish=Wish)


async def create(
    conn: Connection, experiment_id: int, seq: int, decision: Create, warm_start: str | None
) -> int | None:
    """The trial of a Create at journal place ``seq``; None if that decision made it before."""
    task = trial_task_id(ExperimentId(experiment_id), decision.request_id)
    trial_id: int | None = await conn.fetchval(
        Q.create, experiment_id, decision.request_id, seq, task, decision.hparams, decision.seed, warm_start
    )
    if trial_id is not None:
        await conn.execute(Q.create_task, task, trial_id, experiment_id)
    return trial_id


async def raise_wish(conn: Connection, trial_id: int, experiment_id: int, wish: Wish) -> None:
    """Raise what a trial should become; nothing if it is so already or the trial has ended."""
    if await conn.fetchval(Q.raise_wish, trial_id, wish.value) is not None:
        await notify(conn, "experiment", experiment_id)


async def stop_by_request(conn: Connection, experiment_id: int, request: RequestId, reason: str) -> None:
    """The search's Stop, and why."""
    await conn.fetchval(Q.raise_wish_by_request, experiment_id, request, Wish.STOP.value, reason)


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to reconcile of an experiment."""

    state: ExperimentState
    unmanaged: bool
    #: Those that have not ended.
    trials: tuple[LiveTrial, ...]


async def scene(conn: Connection, experiment_id: int) -> Scene | None:
    """An experiment and its live trials as they are, without a lock; None: it is gone."""
    rows = await conn.fetch(Q.live_with_allocation, experiment_id)
    if not rows:
        return None
    return Scene(ExperimentState(rows[0]["experiment_state"]), rows[0]["unmanaged"], _live(rows))


async def live(conn: Connection, experiment_id: int) -> tuple[LiveTrial, ...]:
    """The trials of an experiment that have not ended, with their open allocations."""
    return _live(await conn.fetch(Q.live_with_allocation, experiment_id))


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
    most: int | None = await conn.fetchval(Q.at_once, experiment_id, _CAPPED)
    return most


async def held_back(conn: Connection) -> tuple[list[int], float | None]:
    """Experiments with trials whose waiting has ended of late; seconds until the next that waits may try again."""
    row = await conn.fetchrow(Q.held_back)
    return row["released"], row["next"]


async def request_run(conn: Connection, trial_id: int, size: Size) -> str | None:
    """Ask for slots for the next attempt: the new allocation's id; None if the trial has ended meanwhile.

    A second open allocation of the task breaks a unique index, and with it the transaction.
    """
    row = await conn.fetchrow(Q.next_run, trial_id)
    if row is None:
        return None
    name = allocation_id(row["task_id"], row["run_id"])
    await conn.execute(_REQUEST, name, row["task_id"], row["run_id"], size.slots, True, size.single_node)
    await notify(conn, "scheduling", "")
    return name


async def conclude(conn: Connection, trial: TrialRow, verdict: TrialVerdict, experiment: ExperimentState) -> None:
    """What a trial becomes after an attempt, or without one; its search learns of its end. Raises Stale.

    ``experiment``: that of its experiment, whose lock the caller holds.
    """
    changed = await conn.fetchval(
        Q.set_verdict,
        trial.id,
        trial.version,
        verdict.state.value,
        verdict.restarts,
        verdict.reason,
        verdict.setbacks,
        verdict.hold_s,
    )
    if changed is None:
        raise Stale
    if verdict.exit is not None:
        await notify(conn, "logs", trial.task_id)
        fact = Exited(trial.request_id, _SEARCH_REASON[verdict.exit.value])
        await put_fact(conn, trial.experiment_id, trial.id, "exit", trial.run_id, encode(fact))
        await notify(conn, SEARCH, trial.experiment_id)
        await gc.trial_ended(conn, trial.id)
    # A trial that has ended needs no reconciling; what comes next is for the search to decide, while it goes on.
    if verdict.exit is None or experiment not in RUNNING:
        await notify(conn, "experiment", trial.experiment_id)


async def put_fact(
    conn: Connection, experiment_id: int, trial_id: int, kind: str, at_key: int, fact: JsonObject
) -> bool:
    """Put a fact into the search's inbox; False if it is there already. The caller announces it as ``SEARCH``."""
    return await conn.fetchval(Q.put_fact, experiment_id, trial_id, kind, at_key, fact) is not None


_REQUEST = load("allocations").request


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
