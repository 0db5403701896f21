"""What a step of a search writes: journal entries, the trials it makes and stops, and its end; and the first step.

The first step is part of a submission, so that the first trials are there when it is answered; every other one is the
searching loop's, and so is the first of experiments that an older release has written. All in the caller's transaction,
in which the experiment is locked, or new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
import msgspec
from asyncpg import Connection

from tenax.config.resolve import stored_experiment
from tenax.errors import Impossible
from tenax.lifecycle.experiment import ExperimentEvent, ExperimentState
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import searches
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.trials import rows as trials
from tenax.search import searcher, view
from tenax.search.config import SearchConfig
from tenax.search.journal import Create, SearchEntry, Shutdown, Started, Stop
from tenax.search.state import State

#: Entries, and bytes of hyperparameters, in one statement: what they are as JSON is made in the event loop.
_AT_ONCE, _BYTES_AT_ONCE = 1000, 256 * 1024


@dataclass(slots=True)
class Search:
    """A search as of journal entry ``seq``."""

    state: State
    seq: int
    #: The checkpoint that its trials start from.
    warm_start: str | None


async def start(conn: Connection, experiment_id: int) -> None:
    """Take the first step of a new experiment's search."""
    experiment = await experiments.lock(conn, experiment_id)
    search, entries = await begin(conn, experiment_id)
    await write(conn, experiment, search, entries)


async def begin(conn: Connection, experiment_id: int) -> tuple[Search, list[SearchEntry]]:
    """A search that has not begun, and the entries with which it does."""
    config, warm_start, seed = await configuration(conn, experiment_id)
    # It may draw the hyperparameters of many thousand trials.
    state, decisions = await anyio.to_thread.run_sync(searcher.start, config, seed)
    return Search(state, 0, warm_start), [Started(seed), *decisions]


async def configuration(conn: Connection, experiment_id: int) -> tuple[SearchConfig, str | None, int]:
    """The search, the checkpoint that its trials start from, and its seed."""
    plan = await experiments.plan(conn, experiment_id)
    resolved = stored_experiment(plan.config)
    source = resolved.experiment.searcher
    if source.source_checkpoint_uuid is None and source.source_trial_id is not None:
        latest = await checkpoints.latest(conn, source.source_trial_id)
        return resolved.search, None if latest is None else latest.uuid, plan.seed
    return resolved.search, source.source_checkpoint_uuid, plan.seed


async def write(conn: Connection, experiment: ExperimentRow, search: Search, entries: Sequence[SearchEntry]) -> None:
    """Append the entries that brought ``search`` where it is, and do what they decided."""
    at_once = _at_once(entries)
    for begin in range(0, len(entries), at_once):
        some = entries[begin : begin + at_once]
        standing = view.standing(search.state) if begin + at_once >= len(entries) else None
        await searches.append(conn, experiment.id, search.seq + 1, some, standing)
        made = {place: entry for place, entry in enumerate(some, search.seq + 1) if isinstance(entry, Create)}
        await trials.create(conn, experiment.id, made, search.warm_start)
        stops = {entry.request_id: entry.reason for entry in some if isinstance(entry, Stop)}
        await trials.stop_by_request(conn, experiment.id, stops)
        search.seq += len(some)
    for entry in entries:
        if isinstance(entry, Shutdown):
            after = await experiments.happen(conn, experiment, _event(entry), entry.reason)
            if after in (ExperimentState.ACTIVE, ExperimentState.PAUSED):
                raise Impossible(f"experiment {experiment.id} goes on after its search has ended")


def _at_once(entries: Sequence[SearchEntry]) -> int:
    # The hyperparameters of one trial have about as many bytes as those of another.
    first = next((entry for entry in entries if isinstance(entry, Create)), None)
    size = 0 if first is None else len(msgspec.json.encode(first.hparams))
    return max(1, min(_AT_ONCE, _BYTES_AT_ONCE // (size + 1)))


def _event(shutdown: Shutdown) -> ExperimentEvent:
    if shutdown.cancel:
        return ExperimentEvent.SEARCH_CANCELED
    return ExperimentEvent.SEARCH_FAILED if shutdown.failure else ExperimentEvent.SEARCH_SUCCEEDED
