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
    Mask,
    as_float,
    unpack_integers,
    unpack_lines,
    unpack_numbers,
    unpack_numbers_into,
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
class _Axis:
    """Steps and times of a series, in the order of steps."""

    steps: Integers
    times: Integers
    #: How what is in the order of arrival comes into that of steps; None: it is in it.
    order: Integers | None


@dataclass(slots=True)
class GroupAxes:
    """Steps and times of one group: series that are unpacked together unpack and hold them once."""

    #: Of each block, by its first report.
    blocks: dict[int, tuple[Integers, Integers]] = field(default_factory=dict)
    #: Of series with a value in each report, by the first reports of their blocks and how many are in the tail.
    whole: dict[tuple[int, ...], _Axis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackedSeries:
    """A series as stored. Unpacking it takes a while: `unpack` is for a thread."""

    group: MetricGroup
    metric: str
    blocks: list[Record]
    tail: list[Record]
    axes: GroupAxes = field(default_factory=GroupAxes)

    def unpack(self) -> Series:
        """Unpack it."""
        chosen = [self._chosen(row) for row in self.blocks]
        tail = self._of_tail()
        axis = self._axis(chosen, tail)
        values = np.zeros(len(axis.steps), np.float64)
        end = 0
        for row, (present, visible) in zip(self.blocks, chosen):
            if present is None and visible is None:
                start, end = end, end + row["reports"]
                unpack_numbers_into(row["data"], values[start:end])
                continue
            numbers = unpack_numbers(row["data"])
            if visible is not None:
                numbers = numbers[visible if present is None else visible[present]]
            start, end = end, end + len(numbers)
            values[start:end] = numbers
        values[end:] = tail.values
        return Series(axis.steps, axis.times, values if axis.order is None else values[axis.order])

    def _chosen(self, row: Record) -> tuple[Mask | None, Mask | None]:
        """Which reports of a block have a value, and which are visible; None: all."""
        present = None if row["present"] is None else unpack_present(row["present"], row["reports"])
        limit = self.group.cuts.limit(row["run_id"], self.group.name)
        return present, None if row["last_step"] < limit else self._of_block(row)[0] < limit

    def _of_block(self, row: Record) -> tuple[Integers, Integers]:
        axes = self.axes.blocks.get(row["first_ord"])
        if axes is None:
            axes = self.axes.blocks[row["first_ord"]] = unpack_integers(row["steps"]), unpack_integers(row["times"])
        return axes

    def _axis(self, chosen: list[tuple[Mask | None, Mask | None]], tail: Series) -> _Axis:
        if any(present is not None for present, _ in chosen) or len(tail) < sum(len(row["steps"]) for row in self.tail):
            return self._joined(chosen, tail)
        key = (*(row["first_ord"] for row in self.blocks), len(tail))
        axis = self.axes.whole.get(key)
        if axis is None:
            axis = self.axes.whole[key] = self._joined(chosen, tail)
            if axis.order is None and all(visible is None for _, visible in chosen):
                self._hold_once(axis)
        return axis

    def _hold_once(self, axis: _Axis) -> None:
        """What blocks have is part of the whole, and lies there alone."""
        end = 0
        for row in self.blocks:
            start, end = end, end + row["reports"]
            self.axes.blocks[row["first_ord"]] = axis.steps[start:end], axis.times[start:end]

    def _joined(self, chosen: list[tuple[Mask | None, Mask | None]], tail: Series) -> _Axis:
        parts = [(tail.steps[:0], tail.times[:0])]
        for row, masks in zip(self.blocks, chosen):
            steps, times = self._of_block(row)
            given = [mask for mask in masks if mask is not None]
            if given:
                both = np.logical_and.reduce(given)
                steps, times = steps[both], times[both]
            parts.append((steps, times))
        parts.append((tail.steps, tail.times))
        steps, times = (np.concatenate(columns) for columns in zip(*parts))
        if not (steps[1:] < steps[:-1]).any():
            return _Axis(steps, times, None)
        order = np.argsort(steps, kind="stable")
        return _Axis(steps[order], times[order], order)

    def _of_tail(self) -> Series:
        steps, times, values = [], [], []
        for row in self.tail:
            limit = self.group.cuts.limit(row["run_id"], self.group.name)
            for step, time, body in zip(row["steps"], row["times"], row["bodies"].split(b"\n")):
                if step < limit and self.metric in (report := msgspec.json.decode(body)):
                    steps.append(step)
                    times.append(time)
                    values.append(as_float(report[self.metric]))
        return Series(np.array(steps, np.int64), np.array(times, np.int64), np.array(values, np.float64))


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
        axes = GroupAxes()
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
