"""Reading metrics back: one metric as a series, the reports of a group as they were made, or only their steps.

Rules:
- What is hidden by a newer run is left out. Everything comes in the order of steps; the reports of one step are one.
- Rows are fetched here, in the caller's transaction (one snapshot, or what is packed meanwhile is read twice).
  Unpacking needs no database, so that the caller can do it in a thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from asyncpg import Connection, Record

from tenax.jsonvalue import Json
from tenax.master.store.database.queries import load
from tenax.master.store.metrics.packing import (
    Floats,
    Integers,
    as_float,
    unpack_integers,
    unpack_lines,
    unpack_numbers,
    unpack_present,
    unpack_values,
)
from tenax.master.store.metrics.rows import cuts_of
from tenax.master.telemetry.cuts import NO_STEP, Cuts

Q = load("metrics")


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """A group of metrics of one trial, as far as reading it goes."""

    trial_id: int
    name: str
    month: int
    cuts: Cuts
    #: As stored; `tenax.master.telemetry.summary.decode` reads it.
    summary: bytes
    #: Numbers of the first report that is not packed, and of the next one.
    sealed_ord: int
    next_ord: int


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one trial, visible points only, in the order of steps. The three have one length."""

    steps: Integers
    #: Microseconds since 1970.
    times: Integers
    #: NaN where the value is no number.
    values: Floats

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class StoredReport:
    """One report as it was made; what was reported for its step later is part of it."""

    trial_id: int
    run_id: int
    group: str
    #: None in groups of the profiler.
    step: int | None
    at_us: int
    metrics: dict[str, Json]
    #: JSON text.
    batch: bytes | None


@dataclass(frozen=True, slots=True)
class ReportRows:
    """Rows of one run that are stored together, unpacked."""

    run_id: int
    first_ord: int
    steps: list[int]
    times: list[int]
    metrics: list[dict[str, Json]]
    batches: list[bytes | None]


async def groups_of(conn: Connection, trial_ids: Sequence[int]) -> list[MetricGroup]:
    """The groups that these trials have reported in, by trial and name."""
    rows = await conn.fetch(Q.groups, list(trial_ids))
    cuts = await cuts_of(conn, list(trial_ids))
    return [
        MetricGroup(
            row["trial_id"],
            row["grp"],
            row["month"],
            cuts.get(row["trial_id"], Cuts()),
            row["summary"],
            row["sealed_ord"],
            row["next_ord"],
        )
        for row in rows
    ]


async def unknown_trials(conn: Connection, trial_ids: Sequence[int]) -> list[int]:
    """Those of ``trial_ids`` that do not exist."""
    return [row["id"] for row in await conn.fetch(Q.unknown_trials, list(trial_ids))]


@dataclass(frozen=True, slots=True)
class PackedSeries:
    """A series as stored. Unpacking it takes a while: `unpack` is for a thread."""

    group: MetricGroup
    metric: str
    blocks: list[Record]
    tail: list[Record]
    #: Steps and times of blocks, by their first report: series of one group that are unpacked together share them.
    axes: dict[int, tuple[Integers, Integers]] = field(default_factory=dict)

    def unpack(self) -> Series:
        """Unpack it."""
        parts = [self._of_block(row) for row in self.blocks]
        parts += [self._of_tail(row) for row in self.tail]
        if not parts:
            return Series(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
        steps, times, values = (np.concatenate(columns) for columns in zip(*parts))
        if steps.size and (np.diff(steps) < 0).any():
            order = np.argsort(steps, kind="stable")
            steps, times, values = steps[order], times[order], values[order]
        return Series(steps, times, values)

    def _of_block(self, row: Record) -> tuple[Integers, Integers, Floats]:
        axes = self.axes.get(row["first_ord"])
        if axes is None:
            axes = self.axes[row["first_ord"]] = unpack_integers(row["steps"]), unpack_integers(row["times"])
        steps, times = axes
        values = unpack_numbers(row["data"])
        if row["present"] is not None:
            present = unpack_present(row["present"], row["reports"])
            steps, times = steps[present], times[present]
        return self._seen(row["run_id"], steps, times, values)

    def _of_tail(self, row: Record) -> tuple[Integers, Integers, Floats]:
        steps, times, values = [], [], []
        for step, time, body in zip(row["steps"], row["times"], row["bodies"].split(b"\n")):
            report = msgspec.json.decode(body)
            if self.metric in report:
                steps.append(step)
                times.append(time)
                values.append(as_float(report[self.metric]))
        return self._seen(
            row["run_id"], np.array(steps, np.int64), np.array(times, np.int64), np.array(values, np.float64)
        )

    def _seen(self, run_id: int, steps: Integers, times: Integers, values: Floats) -> tuple[Integers, Integers, Floats]:
        visible = steps < self.group.cuts.limit(run_id, self.group.name)
        return (steps, times, values) if visible.all() else (steps[visible], times[visible], values[visible])


async def series(
    conn: Connection, group: MetricGroup, metric: str, steps: tuple[float | None, float | None] = (None, None)
) -> PackedSeries:
    """One metric, for `PackedSeries.unpack`.

    ``steps``: blocks of which all is before the first or after the second are left out (None: no limit).
    """
    key = (group.month, group.trial_id, group.name)
    blocks = await conn.fetch(Q.blocks_of_metric, *key, metric, *steps) if group.sealed_ord else []
    tail = await conn.fetch(Q.series_tail, *key) if group.sealed_ord < group.next_ord else []
    return PackedSeries(group, metric, blocks, tail)


async def newest_of(conn: Connection, group: MetricGroup, metric: str) -> PackedSeries:
    """The end of one metric: a thousand reports and what is not packed yet, however long it is."""
    key = (group.month, group.trial_id, group.name)
    blocks = await conn.fetch(Q.newest_block_of_metric, *key, metric) if group.sealed_ord else []
    return PackedSeries(group, metric, blocks, await conn.fetch(Q.series_tail, *key))


async def newest_reports(conn: Connection, group: MetricGroup) -> PackedReports:
    """The end of a group: a thousand reports and what is not packed yet, however long it is."""
    key = (group.month, group.trial_id, group.name)
    block = await conn.fetchrow(Q.newest_block, *key) if group.sealed_ord else None
    blocks = [] if block is None else [(block, await conn.fetch(Q.chunks, *key, block["first_ord"]))]
    return PackedReports(group, await conn.fetch(Q.series_tail, *key), blocks)


async def series_of(
    conn: Connection,
    groups: Sequence[MetricGroup],
    metrics: Sequence[str],
    steps: tuple[float | None, float | None] = (None, None),
) -> dict[int, list[PackedSeries]]:
    """Trial -> each of ``metrics``, of groups of one name; two statements, however many trials.

    ``steps``: blocks of which all is before the first or after the second are left out (None: no limit).
    """
    blocks: dict[tuple[int, str], list[Record]] = defaultdict(list)
    tails: dict[int, list[Record]] = defaultdict(list)
    if groups:
        key = ([group.month for group in groups], [group.trial_id for group in groups], groups[0].name)
        for row in await conn.fetch(Q.tails, *key):
            tails[row["trial_id"]].append(row)
        for row in await conn.fetch(Q.blocks_of_metrics, *key, list(metrics), *steps):
            blocks[row["trial_id"], row["metric"]].append(row)
    packed: dict[int, list[PackedSeries]] = {}
    for group in groups:
        axes: dict[int, tuple[Integers, Integers]] = {}
        packed[group.trial_id] = [
            PackedSeries(group, metric, blocks[group.trial_id, metric], tails[group.trial_id], axes)
            for metric in metrics
        ]
    return packed


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """Where some reports of a group are: in a block, or, with ``row``, here."""

    first_step: int
    last_step: int
    first_ord: int
    row: Record | None


async def outline(conn: Connection, group: MetricGroup) -> list[list[ReportSpan]]:
    """All that is stored of a group, in clusters that do not overlap, by step. Hidden reports are still in it.

    The tail comes along and blocks never change, so that `fetch` may follow at any time, in other transactions.
    """
    key = (group.month, group.trial_id, group.name)
    blocks = await conn.fetch(Q.blocks, *key)
    tail = await conn.fetch(Q.series_tail, *key)
    spans = [ReportSpan(row["first_step"], row["last_step"], row["first_ord"], None) for row in blocks]
    spans += [ReportSpan(min(row["steps"]), max(row["steps"]), row["first_ord"], row) for row in tail]
    return _clusters(spans)


@dataclass(frozen=True, slots=True)
class PackedReports:
    """A cluster as stored. Unpacking it takes a while: `reports` is for a thread."""

    group: MetricGroup
    tail: list[Record]
    blocks: list[tuple[Record, list[Record]]]

    def reports(self) -> list[StoredReport]:
        """The visible ones, in the order of steps."""
        rows = [_rows_of_tail(row) for row in self.tail]
        rows += [_rows_of_block(block, chunks) for block, chunks in self.blocks]
        return reports_in(self.group, rows)


async def fetch(conn: Connection, group: MetricGroup, cluster: Sequence[ReportSpan]) -> PackedReports:
    """The rows of a cluster."""
    packed = PackedReports(group, [], [])
    for span in cluster:
        if span.row is not None:
            packed.tail.append(span.row)
            continue
        key = (group.month, group.trial_id, group.name, span.first_ord)
        block = await conn.fetchrow(Q.block, *key)
        # Its trial may have been deleted meanwhile.
        if block is not None:
            packed.blocks.append((block, await conn.fetch(Q.chunks, *key)))
    return packed


def reports_in(group: MetricGroup, cluster: Iterable[ReportRows]) -> list[StoredReport]:
    """The visible reports of a cluster, in the order of steps (those without steps in the order they came)."""
    reports: dict[tuple[int, int, int], StoredReport] = {}
    for rows in sorted(cluster, key=lambda rows: rows.first_ord):
        limit = group.cuts.limit(rows.run_id, group.name)
        for place, step in enumerate(rows.steps):
            if step >= limit:
                continue
            # Reports without a step are all different.
            key = (step, rows.run_id, rows.first_ord + place if step == NO_STEP else 0)
            earlier = reports.get(key)
            if earlier is not None:
                earlier.metrics.update(rows.metrics[place])
                continue
            reports[key] = StoredReport(
                group.trial_id,
                rows.run_id,
                group.name,
                None if step == NO_STEP else step,
                rows.times[place],
                dict(rows.metrics[place]),
                rows.batches[place],
            )
    return [reports[key] for key in sorted(reports)]


def _clusters(spans: list[ReportSpan]) -> list[list[ReportSpan]]:
    clusters: list[list[ReportSpan]] = []
    end = None
    for span in sorted(spans, key=lambda span: (span.first_step, span.first_ord)):
        if end is None or span.first_step > end:
            clusters.append([span])
            end = span.last_step
        else:
            clusters[-1].append(span)
            end = max(end, span.last_step)
    return clusters


def _rows_of_tail(row: Record) -> ReportRows:
    bodies = [msgspec.json.decode(body) for body in row["bodies"].split(b"\n")]
    return ReportRows(row["run_id"], row["first_ord"], row["steps"], row["times"], bodies, _batches(row, len(bodies)))


def _rows_of_block(row: Record, chunks: list[Record]) -> ReportRows:
    rows: list[dict[str, Json]] = [{} for _ in range(row["reports"])]
    for chunk in chunks:
        name = chunk["metric"]
        present = np.flatnonzero(unpack_present(chunk["present"], row["reports"])).tolist()
        for place, value in zip(present, unpack_values(chunk["data"])):
            rows[place][name] = value
    steps, times = unpack_integers(row["steps"]).tolist(), unpack_integers(row["times"]).tolist()
    lines = None if row["batches"] is None else unpack_lines(row["batches"])
    return ReportRows(row["run_id"], row["first_ord"], steps, times, rows, _lines(lines, len(rows)))


def _batches(row: Record, count: int) -> list[bytes | None]:
    return _lines(None if row["batches"] is None else row["batches"].split(b"\n"), count)


def _lines(lines: list[bytes] | None, count: int) -> list[bytes | None]:
    return [None] * count if lines is None else [None if line == b"null" else line for line in lines]


@dataclass(frozen=True, slots=True)
class PackedSteps:
    """Steps of a group as stored. Unpacking them takes a while: `steps` is for a thread."""

    group: MetricGroup
    blocks: list[Record]
    tail: list[Record]

    def steps(self) -> Integers:
        """The visible ones, rising, each once."""
        parts = [self._seen(row["run_id"], unpack_integers(row["steps"])) for row in self.blocks]
        parts += [self._seen(row["run_id"], np.array(row["steps"], np.int64)) for row in self.tail]
        if not parts:
            return np.empty(0, np.int64)
        whole = np.concatenate(parts)
        return whole if whole.size < 2 or (np.diff(whole) > 0).all() else np.unique(whole)

    def _seen(self, run_id: int, steps: Integers) -> Integers:
        return steps[steps < self.group.cuts.limit(run_id, self.group.name)]


async def steps_of(conn: Connection, group: MetricGroup) -> PackedSteps:
    """Of one group, for `PackedSteps.steps`."""
    key = (group.month, group.trial_id, group.name)
    return PackedSteps(group, await conn.fetch(Q.steps_blocks, *key), await conn.fetch(Q.steps_tail, *key))


async def reports_at(conn: Connection, group: MetricGroup, steps: Sequence[int]) -> list[PackedReports]:
    """What is stored around these steps; others are among them. In the transaction of the steps."""
    rising = np.array(sorted(steps), np.int64)
    packed = []
    for cluster in await outline(conn, group):
        low, high = min(span.first_step for span in cluster), max(span.last_step for span in cluster)
        if np.searchsorted(rising, low) < np.searchsorted(rising, high, side="right"):
            packed.append(await fetch(conn, group, cluster))
    return packed
