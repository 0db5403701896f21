"""Summaries of metrics: read for trials and experiments, and computed anew from the stored reports of one trial.

Summaries grow with each report. Only when a newer run hides reports, or an older one adds some, are they recounted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import anyio.to_thread
from asyncpg import Connection

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject, to_number
from tenax.master.store.database.queries import load
from tenax.master.store.metrics.rows import document
from tenax.master.store.metrics.series import MetricGroup, PackedReports, StoredReport, fetch, groups_of, outline
from tenax.master.telemetry import summary
from tenax.master.telemetry.cuts import NO_STEP, VALIDATION
from tenax.master.telemetry.decide import is_better
from tenax.master.telemetry.reports import MetricReport
from tenax.master.telemetry.summary import Summaries
from tenax.master.telemetry.values import ReportedValidation, Target

Q = load("metrics")

#: Groups whose summaries are unpacked on the event loop, about 20 µs each; more go to a thread.
_AT_ONCE = 200


async def of_trials(
    conn: Connection, trial_ids: list[int], columns: Sequence[str] | None = None
) -> dict[int, dict[str, dict[str, JsonObject]]]:
    """trial -> group -> metric -> {"type", "last", and of numbers "count", "sum", "min", "max", "mean"}.

    ``columns``: only the metrics of these, as a project's catalogue names them (``validation.loss.last``).
    """
    chosen = None if columns is None else _metrics_of(columns)
    groups = await groups_of(conn, trial_ids) if chosen is None or chosen else []
    if len(groups) > _AT_ONCE:
        return await anyio.to_thread.run_sync(_documents, trial_ids, groups, chosen)
    return _documents(trial_ids, groups, chosen)


def _metrics_of(columns: Sequence[str]) -> dict[str, set[str]]:
    """group -> names."""
    metrics: dict[str, set[str]] = {}
    for column in columns:
        group, _, rest = column.partition(".")
        name = rest.rpartition(".")[0]
        if name:
            metrics.setdefault(group, set()).add(name)
    return metrics


def _documents(
    trial_ids: list[int], groups: list[MetricGroup], chosen: dict[str, set[str]] | None
) -> dict[int, dict[str, dict[str, JsonObject]]]:
    documents: dict[int, dict[str, dict[str, JsonObject]]] = {trial_id: {} for trial_id in trial_ids}
    for group in groups:
        if chosen is not None and group.name not in chosen:
            continue
        summaries = summary.decode(group.summary)
        names = sorted(summaries if chosen is None else chosen[group.name] & summaries.keys())
        documents[group.trial_id][group.name] = {name: summaries[name].document() for name in names}
    return documents


async def names_of_experiment(conn: Connection, experiment_id: int) -> dict[str, list[str]]:
    """group -> names of metrics, sorted, over all trials of an experiment."""
    names: dict[str, set[str]] = {}
    for row in await conn.fetch(Q.of_experiment, experiment_id):
        names.setdefault(row["grp"], set()).update(summary.decode(row["summary"]))
    return {group: sorted(of) for group, of in sorted(names.items())}


#: Calls a function in a thread.
InThread = Callable[[Callable[[], None]], Awaitable[None]]


async def recount(conn: Connection, trial_id: int, target: Target, in_thread: InThread) -> None:
    """Sum up the visible reports of a trial and find its latest and best validation, from what is stored.

    In the transaction that changed what is visible; the trial's groups are locked.
    """
    await conn.fetch(Q.lock_groups, trial_id)
    validated = _Validated(target)
    for group in await groups_of(conn, [trial_id]):
        count = _Count(validated if group.name == VALIDATION else None)
        for cluster in await outline(conn, group):
            packed = await fetch(conn, group, cluster)
            await in_thread(partial(count.add, packed))
        await conn.execute(
            Q.save_group, trial_id, group.name, count.newest_step(), summary.encode(count.summaries_with_last())
        )
    latest, best = validated.latest, validated.best
    await conn.execute(
        Q.summary_save_validations,
        trial_id,
        None if latest is None else document(latest, 0),
        None if best is None else document(best, 0),
        None if best is None else best.metric,
    )


@dataclass(slots=True)
class _Count:
    """Over clusters in the order of steps, so the last report is the newest."""

    validated: _Validated | None
    summaries: Summaries = field(default_factory=dict)
    newest: StoredReport | None = None

    def add(self, packed: PackedReports) -> None:
        reports = packed.reports()
        if reports:
            self.summaries = summary.add(self.summaries, [report.metrics for report in reports])
            self.newest = reports[-1]
        if self.validated is not None:
            self.validated.add(reports)

    def newest_step(self) -> int:
        return NO_STEP if self.newest is None or self.newest.step is None else self.newest.step

    def summaries_with_last(self) -> Summaries:
        return summary.with_last(self.summaries, {} if self.newest is None else self.newest.metrics)


@dataclass(slots=True)
class _Validated:
    """The latest and the best validation with the searcher's metric."""

    target: Target
    latest: ReportedValidation | None = None
    best: ReportedValidation | None = None

    def add(self, reports: list[StoredReport]) -> None:
        for reported in reports:
            metric = to_number(reported.metrics.get(self.target.objective.metric))
            if metric is None:
                continue
            validation = ReportedValidation(_report(reported), reported.metrics, metric)
            self.latest = validation
            if is_better(metric, None if self.best is None else self.best.metric, self.target.smaller_is_better):
                self.best = validation


def _report(reported: StoredReport) -> MetricReport:
    step = NO_STEP if reported.step is None else reported.step
    return MetricReport(reported.trial_id, reported.run_id, reported.group, step, reported.at_us, reported.metrics, b"")


@dataclass(frozen=True, slots=True)
class Best:
    """A validation that was better than all before it."""

    trial_id: int
    at: datetime
    metric: float


@dataclass(frozen=True, slots=True)
class Sampled:
    """A trial and what it was made with."""

    id: int
    hparams: JsonObject


async def searched(conn: Connection, experiment_ids: Sequence[int]) -> tuple[list[str], bool]:
    """The searcher metrics of these experiments, sorted, and whether one of them is still running. Raises NotFound."""
    rows = await conn.fetch(Q.searched, list(set(experiment_ids)))
    if len(rows) < len(set(experiment_ids)):
        raise NotFound("experiment not found: one of those that were named does not exist")
    return sorted({row["metric"] for row in rows if row["metric"]}), any(row["going_on"] for row in rows)


async def improvements(conn: Connection, experiment_id: int, smaller_is_better: bool) -> list[Best]:
    """The validations that were the best so far when they came."""
    best: list[Best] = []
    for row in await conn.fetch(Q.validations, experiment_id):
        if is_better(row["metric"], best[-1].metric if best else None, smaller_is_better):
            best.append(Best(row["trial_id"], row["at"], row["metric"]))
    return best


async def best_trials(conn: Connection, experiment_id: int, most: int | None) -> list[Sampled]:
    """At most so many trials, by their best validation; None: all."""
    return [Sampled(row["id"], row["hparams"]) for row in await conn.fetch(Q.best_trials, experiment_id, most)]
