"""Trials as messages, whole: with what their metrics come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.api.shapes import trial_message
from tenax.master.store import listings_trials, summaries
from tenax.master.store.listings_trials import TrialView
from tenax.wire.api.message import Document
from tenax.wire.api.trials import Trial

#: Under which name the summary of a group stands; any other group keeps its own.
SUMMARY_NAMES = {"training": "avg_metrics", "validation": "validation_metrics"}


async def whole_trial(conn: Connection, trial_id: int) -> Trial:
    """One trial. Raises NotFound."""
    return (await whole_trials(conn, [await listings_trials.get(conn, trial_id)]))[0]


async def whole_trials(conn: Connection, views: Sequence[TrialView]) -> list[Trial]:
    """Trials in the order that is given."""
    summed = await summaries.of_trials(conn, [view.id for view in views])
    return [trial_message(view, summary_message(summed[view.id])) for view in views]


def summary_message(summed: Mapping[str, Mapping[str, JsonObject]]) -> Document:
    """group -> metric -> what its values come to."""
    return {SUMMARY_NAMES.get(group, group): dict(metrics) for group, metrics in summed.items()}
