"""What a trial's visible metrics come to, counted anew: after a newer run hid some, or an older one has added some."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread
from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.ingest import summary
from tenax.master.ingest.cuts import NO_STEP, VALIDATION
from tenax.master.ingest.decide import is_better
from tenax.master.ingest.reports import Report
from tenax.master.ingest.summary import Summaries, to_number
from tenax.master.ingest.values import Target, Validation
from tenax.master.store.metrics import told
from tenax.master.store.queries import load
from tenax.master.store.series import Group, PackedReports, Reported, fetch, groups_of, outline

Q = load("summaries")

#: Groups whose summaries are unpacked on the event loop, about 20 µs each; more go to a thread.
_AT_ONCE = 200


async def of_trials(conn: Connection, trial_ids: list[int]) -> dict[int, dict[str, dict[str, JsonObject]]]:
    """trial -> group -> metric -> {"type", "last", and of numbers "count", "sum", "min", "max", "mean"}."""
    groups = await groups_of(conn, trial_ids)
    if len(groups) > _AT_ONCE:
        return await anyio.to_thread.run_sync(_told_of, trial_ids, groups)
    return _told_of(trial_ids, groups)


def _told_of(trial_ids: list[int], groups: list[Group]) -> dict[int, dict[str, dict[str, JsonObject]]]:
    found: dict[int, dict[str, dict[str, JsonObject]]] = {trial_id: {} for trial_id in trial_ids}
    for group in groups:
        summaries = summary.decode(group.summary)
        found[group.trial_id][group.name] = {name: of.told() for name, of in sorted(summaries.items())}
    return found


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
        Q.save_validations,
        trial_id,
        None if latest is None else told(latest, 0),
        None if best is None else told(best, 0),
        None if best is None else best.metric,
    )


@dataclass(slots=True)
class _Count:
    """Over clusters in the order of steps, so the last report is the newest."""

    validated: _Validated | None
    summaries: Summaries = field(default_factory=dict)
    newest: Reported | None = None

    def add(self, packed: PackedReports) -> None:
        reports = packed.reports()
        if reports:
            self.summaries = summary.add(self.summaries, [report.metrics for report in reports])
            self.newest = reports[-1]
        if self.validated is not None:
            self.validated.look(reports)

    def newest_step(self) -> int:
        return NO_STEP if self.newest is None or self.newest.step is None else self.newest.step

    def summaries_with_last(self) -> Summaries:
        return summary.with_last(self.summaries, {} if self.newest is None else self.newest.metrics)


@dataclass(slots=True)
class _Validated:
    """The latest and the best validation with the searcher's metric."""

    target: Target
    latest: Validation | None = None
    best: Validation | None = None

    def look(self, reports: list[Reported]) -> None:
        for reported in reports:
            metric = to_number(reported.metrics.get(self.target.metric))
            if metric is None:
                continue
            validation = Validation(_report(reported), reported.metrics, metric)
            self.latest = validation
            if is_better(metric, None if self.best is None else self.best.metric, self.target.smaller_is_better):
                self.best = validation


def _report(reported: Reported) -> Report:
    step = NO_STEP if reported.step is None else reported.step
    return Report(reported.trial_id, reported.run_id, reported.group, step, reported.at_us, reported.metrics, b"")
