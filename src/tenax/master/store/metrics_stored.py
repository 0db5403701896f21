"""What is stored at certain steps already: asked for reports that are not beyond the end of their group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from asyncpg import Connection, Record

from tenax.jsonvalue import Json
from tenax.master.ingest.reports import Report
from tenax.master.ingest.values import StepKey, Stored
from tenax.master.store.packing import unpack_integers, unpack_lines, unpack_present, unpack_values
from tenax.master.store.queries import load

Q = load("metrics")

_GroupOfRun = tuple[int, int, str, int]


async def stored_at(conn: Connection, reports: Sequence[tuple[int, Report]]) -> dict[StepKey, Stored]:
    """By (trial, group, run, step), of (month, report); what is not there was not reported."""
    wanted: dict[_GroupOfRun, set[int]] = {}
    for month, report in reports:
        wanted.setdefault((month, report.trial_id, report.group, report.run_id), set()).add(report.step)
    found: dict[StepKey, Stored] = {}
    for key, steps in wanted.items():
        found.update(await _of_group(conn, key, steps))
    return found


async def _of_group(conn: Connection, key: _GroupOfRun, steps: set[int]) -> dict[StepKey, Stored]:
    month, trial_id, group, run_id = key
    metrics: dict[int, dict[str, Json]] = {}
    batches: dict[int, bytes] = {}
    for row in await conn.fetch(Q.stored_tail, *key, list(steps)):
        _from_tail(row, steps, metrics, batches)
    for row in await conn.fetch(Q.stored_blocks, *key, min(steps), max(steps)):
        at = unpack_integers(row["steps"])
        places = {place: int(at[place]) for place in np.flatnonzero(np.isin(at, list(steps))).tolist()}
        if places:
            chunks = await conn.fetch(Q.chunks_of, month, trial_id, group, row["first_ord"])
            _from_block(row, chunks, places, metrics, batches)
    return {(trial_id, group, run_id, step): Stored(values, batches.get(step)) for step, values in metrics.items()}


def _from_tail(row: Record, steps: set[int], metrics: dict[int, dict[str, Json]], batches: dict[int, bytes]) -> None:
    bodies = row["bodies"].split(b"\n")
    batch_lines = None if row["batches"] is None else row["batches"].split(b"\n")
    for place, step in enumerate(row["steps"]):
        if step in steps:
            metrics.setdefault(step, {}).update(msgspec.json.decode(bodies[place]))
            if batch_lines is not None and batch_lines[place] != b"null":
                batches[step] = batch_lines[place]


def _from_block(
    row: Record,
    chunks: list[Record],
    places: dict[int, int],
    metrics: dict[int, dict[str, Json]],
    batches: dict[int, bytes],
) -> None:
    for place, step in places.items():
        metrics.setdefault(step, {})
        if row["batches"] is not None and (line := unpack_lines(row["batches"])[place]) != b"null":
            batches[step] = line
    for chunk in chunks:
        present = unpack_present(chunk["present"], row["reports"])
        values = unpack_values(chunk["data"])
        index = np.cumsum(present) - 1
        for place, step in places.items():
            if present[place]:
                metrics[step][chunk["metric"]] = values[int(index[place])]
