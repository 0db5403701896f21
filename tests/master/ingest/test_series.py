"""Series as charts read them: what is packed and what is not, joined; and what series of one group have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
from asyncpg import Record
from hypothesis import given
from hypothesis import strategies as st

from tenax.jsonvalue import Json
from tenax.master.reading.log_search import timestamp, timestamps
from tenax.master.store.metrics import sealing
from tenax.master.store.metrics.packing import as_float
from tenax.master.store.metrics.series import GroupAxes, MetricGroup, PackedSeries
from tenax.master.telemetry.cuts import Cuts
from tenax.master.telemetry.reports import MAX_US, MIN_US

_METRICS = "abc"


@dataclass(frozen=True)
class Row:
    """Some reports of one run, as they lie in the tail."""

    run_id: int
    reports: list[tuple[int, dict[str, Json]]]


_VALUES = st.one_of(st.floats(-9, 9), st.sampled_from(["NaN", "Infinity", "-Infinity", "text", None, 7, 2**70]))
_REPORTS = st.tuples(st.integers(-1, 30), st.dictionaries(st.sampled_from(_METRICS), _VALUES))
_WHOLE = st.tuples(st.integers(-1, 30), st.fixed_dictionaries(dict.fromkeys(_METRICS, _VALUES)))
_ROWS = st.builds(
    Row, st.integers(1, 3), st.one_of(st.lists(_REPORTS, min_size=1, max_size=9), st.lists(_WHOLE, min_size=1))
)
_CUTS = st.dictionaries(st.tuples(st.integers(2, 4), st.just("training")), st.integers(0, 30), max_size=2)


def _stored(rows: list[Row]) -> list[Record]:
    """As rows of the tail."""
    stored: list[dict[str, Any]] = []
    first = 0
    for row in rows:
        bodies = [msgspec.json.encode(report) for _, report in row.reports]
        steps = [step for step, _ in row.reports]
        stored.append(
            {"month": 0, "trial_id": 1, "grp": "training", "first_ord": first, "run_id": row.run_id, "steps": steps,
             "times": [1000 * (first + place) for place in range(len(steps))], "bodies": b"\n".join(bodies),
             "batches": None}
        )  # fmt: skip
        first += len(steps)
    return cast(list[Record], stored)


def _blocks(sealed: list[list[Record]], metric: str) -> list[Record]:
    """Rows of the blocks that have the metric, as the statement joins them."""
    joined: list[dict[str, Any]] = []
    for packed in map(sealing.pack, sealed):
        blocks = {block[3]: dict(zip(sealing._BLOCK_COLUMNS, block)) for block in packed.blocks}
        chunks = [dict(zip(sealing._CHUNK_COLUMNS, chunk)) for chunk in packed.chunks]
        joined += [{**blocks[chunk["first_ord"]], **chunk} for chunk in chunks if chunk["metric"] == metric]
    return sorted(joined, key=lambda row: row["first_ord"])


@given(st.lists(_ROWS, max_size=6), st.integers(0, 6), st.integers(0, 6), _CUTS)
def test_a_series_is_what_was_reported(
    rows: list[Row], first: int, second: int, cut: dict[tuple[int, str], int]
) -> None:
    """Each visible value, in the order of steps, those of one step as they came: packed or not."""
    stored, axes = _stored(rows), GroupAxes()
    low, high = sorted((first, second))
    sealed, tail = [part for part in (stored[:low], stored[low:high]) if part], stored[high:]
    group = MetricGroup(1, "training", 0, Cuts(cut), b"", 0, 0)
    for metric in _METRICS:
        expected = []
        # What is packed at once is packed by run.
        for part in (*sealed, *([row] for row in tail)):
            by_run = {row["run_id"]: None for row in part}
            part = [row for run in by_run for row in part if row["run_id"] == run]
            firsts = {run: min(row["first_ord"] for row in part if row["run_id"] == run) for run in by_run}
            for row in sorted(part, key=lambda row: (firsts[row["run_id"]], row["first_ord"])):
                for step, time, body in zip(row["steps"], row["times"], row["bodies"].split(b"\n")):
                    report = msgspec.json.decode(body)
                    if metric in report and step < group.cuts.limit(row["run_id"], "training"):
                        expected.append((step, time, as_float(report[metric])))
        expected.sort(key=lambda point: point[0])
        series = PackedSeries(group, metric, _blocks(sealed, metric), tail, axes).unpack()
        assert series.steps.tolist() == [step for step, _, _ in expected]
        assert series.times.tolist() == [time for _, time, _ in expected]
        assert np.array_equal(series.values, [value for _, _, value in expected], equal_nan=True)


def test_metrics_of_one_group_share_their_steps() -> None:
    """Series with a value in each report hold their steps and times once, however many there are."""
    rows = _stored([Row(1, [(step, {"a": 0.1, "b": 0.2}) for step in range(start, start + 9)]) for start in (0, 9, 18)])
    axes, group = GroupAxes(), MetricGroup(1, "training", 0, Cuts(), b"", 0, 0)
    first, second = (PackedSeries(group, name, _blocks([rows[:2]], name), rows[2:], axes).unpack() for name in "ab")
    assert first.steps is second.steps
    assert first.times is second.times
    assert first.steps.tolist() == list(range(27))
    assert all(np.shares_memory(first.steps, steps) for steps, _ in axes.blocks.values())


@given(st.lists(st.one_of(st.integers(MIN_US, MAX_US), st.integers(-(2**63), 2**63 - 1))))
def test_many_times_are_written_as_each_is(times: list[int]) -> None:
    """In RFC 3339, those that no year has as well."""
    assert timestamps(np.array(times, np.int64)) == [timestamp(time) for time in times]
