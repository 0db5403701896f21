"""Storing reports of metrics: what `decide` must know is loaded, and its outcome written, in one transaction.

Rules:
- Rows are locked in one order: spools, then groups of metrics, each sorted.
- Rows of reports are appended and never changed; only the head of a group, where it ends and its summary, is rewritten.
- What is stored at a step already is read only for reports that are not beyond the end of their group.
- ``Target`` never changes and is kept in memory; everything else is read in the transaction that writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone

import msgspec
import numpy as np
from asyncpg import Connection, Record

from tenax.ids import RequestId
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.database import months
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments.searches import KIND as SEARCH
from tenax.master.store.metrics.packing import unpack_integers, unpack_lines, unpack_present, unpack_values
from tenax.master.store.trials import rows as trial_rows
from tenax.master.telemetry import summary
from tenax.master.telemetry.cuts import NO_STEP, Cuts
from tenax.master.telemetry.decide import is_late
from tenax.master.telemetry.reports import MetricReport
from tenax.master.telemetry.values import (
    GroupKey,
    Head,
    Known,
    Outcome,
    ReportedStep,
    ReportedValidation,
    SpooledReport,
    StepKey,
    StreamKey,
    TailRow,
    Target,
    TrialNow,
)
from tenax.search.methods.registry import names_of
from tenax.search.validation import Objective

Q = load("metrics")

#: Methods that cannot do without the searcher's metric and time.
_STRICT = names_of(lambda method: method.needs_validations)
_TABLES = ("metric_tail", "metric_blocks", "metric_chunks")
_TAIL = ["month", "trial_id", "grp", "first_ord", "run_id", "steps", "times", "bodies", "batches"]
#: Summaries of more bytes are read in a thread.
_INLINE_BYTES = 64 * 1024
#: Targets kept in memory.
_KEPT = 20_000


class MetricTables:
    """The tables of metrics, with the memory of one process. Every method runs in the caller's transaction."""

    def __init__(self) -> None:
        self._targets: dict[int, Target] = {}
        self._months: set[int] = set()

    async def load(
        self, conn: Connection, items: Sequence[SpooledReport], allocations: Mapping[StreamKey, str]
    ) -> Known:
        """What `decide` must know of ``items``; locks it. ``allocations``: whose the spools are."""
        reports = [item.report for item in items if item.report is not None]
        acked = await _acked(conn, allocations)
        targets = await self.targets(conn, sorted({report.trial_id for report in reports}))
        keys = sorted({(report.trial_id, report.group) for report in reports if report.trial_id in targets})
        rows = await _locked(conn, keys, targets)
        trials = await _trials(conn, rows, targets)
        # A group that has just been made has no reports yet.
        grown = {key: row for key, row in rows.items() if row["next_ord"]}
        large = sum(len(row["summary"]) for row in grown.values()) > _INLINE_BYTES
        heads = await asyncio.to_thread(_heads_of, grown) if large else _heads_of(grown)
        late = [
            (targets[report.trial_id].month, report)
            for report in reports
            if is_late(report, heads.get((report.trial_id, report.group)))
        ]
        stored = await stored_at(conn, late)
        now_us = next(iter(rows.values()))["now_us"] if rows else 0
        return Known(trials, heads, stored, acked, now_us)

    async def apply(self, conn: Connection, outcome: Outcome, now_us: int) -> None:
        """Write it, all but what has to be summed up anew (``outcome.recount``)."""
        await self._append(conn, outcome.tail_rows, now_us)
        if outcome.heads or outcome.acked:
            await _save(conn, outcome)
        await _save_cuts(conn, outcome.cuts)
        for trial_id, seen in sorted(outcome.validations.items()):
            latest, best = outcome.latest.get(trial_id), outcome.best.get(trial_id)
            await conn.execute(
                Q.save_validations,
                trial_id,
                None if latest is None else document(latest, now_us),
                None if best is None else document(best, now_us),
                None if best is None else best.metric,
                list(seen),
                list(seen.values()),
            )
        await _notify_searches(conn, outcome)

    def committed(self, outcome: Outcome) -> None:
        """What `apply` wrote is durable."""
        self._months.update(row.month for row in outcome.tail_rows if row.month >= months.oldest_kept(time.time()))

    async def targets(self, conn: Connection, trial_ids: Iterable[int]) -> dict[int, Target]:
        """By trial, of those that exist."""
        targets = {trial_id: self._targets[trial_id] for trial_id in trial_ids if trial_id in self._targets}
        missing = [trial_id for trial_id in trial_ids if trial_id not in targets]
        if missing:
            if len(self._targets) + len(missing) > _KEPT:
                self._targets.clear()
            for row in await conn.fetch(Q.targets, missing):
                targets[row["id"]] = _target(row)
                # The metric of an unmanaged experiment may be set later.
                if not row["unmanaged"]:
                    self._targets[row["id"]] = targets[row["id"]]
        return targets

    async def add_month(self, conn: Connection, month: int) -> None:
        """Make the partitions of a month, unless this process has seen them committed; an old one may be gone again."""
        if month not in self._months:
            for table in _TABLES:
                await conn.execute(Q.add_month, table, month)

    async def _append(self, conn: Connection, tail_rows: list[TailRow], now_us: int) -> None:
        for month in {row.month for row in tail_rows}:
            await self.add_month(conn, month)
        records = [_tail_row(row, now_us) for row in tail_rows]
        if len(records) == 1:
            # One round trip; COPY takes two.
            await conn.execute(Q.append, *records[0])
        elif records:
            await conn.copy_records_to_table("metric_tail", records=records, columns=_TAIL)


async def cuts_of(conn: Connection, trial_ids: list[int]) -> dict[int, Cuts]:
    """By trial, of those that have any."""
    at: dict[int, dict[tuple[int, str], int]] = {}
    for row in await conn.fetch(Q.cuts, trial_ids):
        at.setdefault(row["trial_id"], {})[row["run_id"], row["kind"]] = row["step"]
    return {trial_id: Cuts(lines) for trial_id, lines in at.items()}


async def delete_trials(conn: Connection, trial_ids: list[int]) -> None:
    """Forget all metrics of trials; part of deleting their experiment."""
    # The groups last: they say in which months the others are.
    for statement in (Q.delete_tail, Q.delete_blocks, Q.delete_chunks, Q.delete_cuts, Q.delete_groups):
        await conn.execute(statement, trial_ids)


def document(validation: ReportedValidation, now_us: int) -> JsonObject:
    """As it stands in ``latest_validation`` and ``best_validation``."""
    report = validation.report
    at = datetime.fromtimestamp((report.at_us or now_us) / 1e6, timezone.utc)
    return {
        "step": report.step,
        "run_id": report.run_id,
        "at": at.isoformat().replace("+00:00", "Z"),
        "metrics": dict(validation.metrics),
    }


async def _acked(conn: Connection, allocations: Mapping[StreamKey, str]) -> dict[StreamKey, int]:
    if not allocations:
        return {}
    keys = sorted(allocations)
    acked = await _streams(conn, keys)
    new = [key for key in keys if key not in acked]
    for key in new:
        await conn.execute(Q.create_stream, *key, allocations[key])
    return {**acked, **(await _streams(conn, new))} if new else acked


async def _streams(conn: Connection, keys: list[StreamKey]) -> dict[StreamKey, int]:
    rows = await conn.fetch(Q.streams, [key[0] for key in keys], [key[1] for key in keys])
    return {(row["container_id"], row["stream"]): row["acked"] for row in rows}


async def _locked(conn: Connection, keys: list[GroupKey], targets: Mapping[int, Target]) -> dict[GroupKey, Record]:
    if not keys:
        return {}
    heads = await _heads(conn, keys)
    new = [key for key in keys if key not in heads]
    if new:
        months = [targets[trial_id].month for trial_id, _ in new]
        await conn.execute(Q.create_heads, [key[0] for key in new], [key[1] for key in new], months)
        heads.update(await _heads(conn, new))
    return heads


async def _heads(conn: Connection, keys: list[GroupKey]) -> dict[GroupKey, Record]:
    rows = await conn.fetch(Q.heads, [key[0] for key in keys], [key[1] for key in keys])
    return {(row["trial_id"], row["grp"]): row for row in rows}


async def _trials(
    conn: Connection, rows: Mapping[GroupKey, Record], targets: Mapping[int, Target]
) -> dict[int, TrialNow]:
    of_trials = {row["trial_id"]: row for row in rows.values()}
    rerun = [trial_id for trial_id, row in of_trials.items() if row["current_run"] > 1]
    cuts = await cuts_of(conn, rerun) if rerun else {}
    return {
        trial_id: TrialNow(
            targets[trial_id],
            row["current_run"],
            row["active"],
            cuts.get(trial_id, Cuts()),
            NO_STEP if row["latest_step"] is None else row["latest_step"],
            row["best_metric"],
        )
        for trial_id, row in of_trials.items()
    }


def _heads_of(rows: Mapping[GroupKey, Record]) -> dict[GroupKey, Head]:
    return {key: _head(row) for key, row in rows.items()}


def _head(row: Record) -> Head:
    summaries = summary.decode(row["summary"])
    return Head(row["run_id"], row["last_step"], row["next_ord"], row["newest_step"], summaries)


async def _save(conn: Connection, outcome: Outcome) -> None:
    heads = [
        (trial_id, group, h.run_id, h.last_step, h.next_ord, h.newest_step, summary.encode(h.summaries))
        for (trial_id, group), h in outcome.heads.items()
    ]
    streams = [(*key, n) for key, n in outcome.acked.items()]
    await conn.execute(Q.save, *_columns(heads, 7), *_columns(streams, 3))


def _columns(rows: Sequence[tuple[object, ...]], count: int) -> list[list[object]]:
    return [list(column) for column in zip(*rows)] if rows else [[] for _ in range(count)]


async def save_refusals(conn: Connection, rows: Sequence[tuple[str, str, int, str, bool]]) -> None:
    """(container, stream, n, message, fatal): a line that is sent again gets the same answer."""
    if rows:
        await conn.execute(Q.save_refusals, *map(list, zip(*rows)))


async def _save_cuts(conn: Connection, cuts: Mapping[int, Cuts]) -> None:
    rows = [(trial_id, run, kind, step) for trial_id, of in cuts.items() for (run, kind), step in of.at.items()]
    if rows:
        await conn.execute(Q.save_cuts, *map(list, zip(*rows)))


async def _notify_searches(conn: Connection, outcome: Outcome) -> None:
    if outcome.facts:
        facts = [(fact.experiment_id, fact.trial_id, fact.step, fact.fact) for fact in outcome.facts]
        searching = {row["experiment_id"] for row in await conn.fetch(Q.put_facts, *map(list, zip(*facts)))}
        for experiment_id in sorted(searching):
            await notify(conn, SEARCH, experiment_id)
    failed = set()
    for trial_id, (run_id, experiment_id, message) in sorted(outcome.fatal.items()):
        if await trial_rows.set_fatal(conn, trial_id, run_id, message):
            failed.add(experiment_id)
    for experiment_id in sorted(failed):
        await notify(conn, "experiment", experiment_id)


def _tail_row(row: TailRow, now_us: int) -> tuple[object, ...]:
    reports = row.reports
    batches = None
    if any(report.batch is not None for report in reports):
        batches = b"\n".join(report.batch or b"null" for report in reports)
    return (
        row.month,
        row.trial_id,
        row.group,
        row.first_ord,
        row.run_id,
        [report.step for report in reports],
        [now_us if report.at_us is None else report.at_us for report in reports],
        b"\n".join(report.text for report in reports),
        batches,
    )


def _target(row: Mapping[str, object]) -> Target:
    searcher: Json = row["searcher"]  # type: ignore[assignment]  # a JSON document
    settings: JsonObject = searcher if isinstance(searcher, dict) else {}
    # What is searched elsewhere is not for us to judge.
    decides = settings.get("name") in _STRICT and not row["unmanaged"]
    time_metric = settings.get("time_metric") if decides else None
    return Target(
        experiment_id=int(str(row["experiment_id"])),
        request_id=RequestId(str(row["request_id"])),
        task_id=str(row["task_id"]),
        month=int(str(row["month"])),
        objective=Objective(
            metric=str(settings.get("metric", "")),
            time_metric=time_metric if isinstance(time_metric, str) else None,
            needs_validations=decides,
        ),
        smaller_is_better=settings.get("smaller_is_better") is not False,
    )


_GroupOfRun = tuple[int, int, str, int]


async def stored_at(conn: Connection, reports: Sequence[tuple[int, MetricReport]]) -> dict[StepKey, ReportedStep]:
    """By (trial, group, run, step), of (month, report); what is not there was not reported."""
    steps_by_group: dict[_GroupOfRun, set[int]] = {}
    for month, report in reports:
        steps_by_group.setdefault((month, report.trial_id, report.group, report.run_id), set()).add(report.step)
    stored: dict[StepKey, ReportedStep] = {}
    for key, steps in steps_by_group.items():
        stored.update(await _of_group(conn, key, steps))
    return stored


async def _of_group(conn: Connection, key: _GroupOfRun, steps: set[int]) -> dict[StepKey, ReportedStep]:
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
    return {
        (trial_id, group, run_id, step): ReportedStep(values, batches.get(step)) for step, values in metrics.items()
    }


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
