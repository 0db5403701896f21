"""What a group of reports becomes: a function of values, without a database.

Rules:
- A numbered report (of a spool) is known by its number: one at or before the last acknowledged was taken in already,
  one after a gap waits until the gap is filled. Reports without numbers are compared by (run, group, step).
- The same step again: what it adds is stored as one more row, what is equal is nothing, what differs is refused.
- A report without a number must be of the trial's current run. A numbered one of an older run is stored under its run
  and changes no state.
- The searcher's metric of a validation of the current run is kept; where the search decides by it, it leaves as a fact
  as well.
- A validation that the search refuses (`tenax.search.validation`) ends the trial. One that has ended is not checked.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from tenax.jsonvalue import Json, to_json
from tenax.master.telemetry import summary, values
from tenax.master.telemetry.cuts import NO_STEP, VALIDATION, kind_of
from tenax.master.telemetry.reports import MAX_NAMES, MetricReport
from tenax.search.journal import Validated, encode
from tenax.search.validation import Objective, Reading, UnusableReport, read_report, shortened

#: Before it there is no older run whose reports could be hidden.
_FIRST_RUN = 1


def decide(items: Sequence[values.SpooledReport], known: values.Known) -> values.Outcome:
    """What becomes of ``items``, in their order."""
    decisions = _Decisions(known)
    for index, item in enumerate(items):
        if item.stream is not None and not decisions.is_next(item.stream, item.n):
            continue
        refused = decisions.take(item)
        if refused is not None:
            decisions.outcome.refused[index] = refused
    return decisions.finish()


def is_late(report: MetricReport, head: values.Head | None) -> bool:
    """Whether something may be stored already at the report's (run, group, step)."""
    if head is None or report.step == NO_STEP:
        return False
    return report.run_id < head.run_id or (report.run_id == head.run_id and report.step <= head.last_step)


class _Group:
    """A group while it is worked through."""

    __slots__ = ("last_step", "names", "newest", "newest_step", "next_ord", "run_id", "summaries", "taken", "visible")

    def __init__(self, head: values.Head) -> None:
        self.run_id = head.run_id
        self.last_step = head.last_step
        self.next_ord = head.next_ord
        self.newest_step = head.newest_step
        self.summaries = head.summaries
        #: Of all its metrics, those that came here among them.
        self.names = set(head.summaries)
        #: Accepted, by run.
        self.taken: dict[int, list[MetricReport]] = {}
        self.visible: list[Mapping[str, Json]] = []
        #: All of the newest visible report, when it came here.
        self.newest: Mapping[str, Json] | None = None

    def add(self, report: MetricReport, merged: Mapping[str, Json], limit: int) -> None:
        """``limit``: the first step of the report's run that is not visible."""
        if report.run_id > self.run_id:
            self.run_id, self.last_step = report.run_id, report.step
        elif report.run_id == self.run_id and report.step > self.last_step:
            self.last_step = report.step
        self.names.update(report.metrics)
        self.taken.setdefault(report.run_id, []).append(report)
        if report.step < limit:
            self.visible.append(report.metrics)
            if report.step >= self.newest_step:
                self.newest_step, self.newest = report.step, merged

    def tail_rows(self, trial_id: int, group: str, month: int) -> Iterator[values.TailRow]:
        for run_id, reports in self.taken.items():
            yield values.TailRow(trial_id, group, run_id, month, self.next_ord, reports)
            self.next_ord += len(reports)

    def head(self) -> values.Head:
        summaries = summary.add(self.summaries, self.visible)
        if self.newest is not None:
            summaries = summary.with_last(summaries, self.newest)
        return values.Head(self.run_id, self.last_step, self.next_ord, self.newest_step, summaries)


class _Decisions:
    """What is decided about a number of reports, while they are worked through in order."""

    def __init__(self, known: values.Known) -> None:
        self._known = known
        self._trials = dict(known.trials)
        self._groups: dict[values.GroupKey, _Group] = {}
        #: Accepted here, by step: a later one may say the same step again.
        self._here: dict[values.StepKey, values.ReportedStep] = {}
        self.outcome = values.Outcome()

    def is_next(self, stream: values.StreamKey, n: int) -> bool:
        acked = self.outcome.acked.get(stream, self._known.acked.get(stream, 0))
        if n != acked + 1:
            return False
        self.outcome.acked[stream] = n
        return True

    def take(self, spooled: values.SpooledReport) -> values.Refused | None:
        if spooled.condemned is not None:
            return spooled.condemned
        report = spooled.report
        if report is None:
            return None
        trial = self._trials.get(report.trial_id)
        if trial is None:
            return values.Refused(f"there is no trial {report.trial_id}")
        if spooled.stream is None and report.run_id != trial.run_id:
            return values.Refused(
                f"the report is of run {report.run_id}, and trial {report.trial_id} is in run {trial.run_id}: "
                "only its current run may report"
            )
        if self._has_too_many_names(report):
            return values.Refused(
                f"the group {report.group!r} would have more than {MAX_NAMES} different metrics: report fewer names"
            )
        before = self._stored(report)
        merged = report.metrics if before is None else _merge(before, report)
        if isinstance(merged, values.Refused):
            return merged
        current = report.run_id == trial.run_id
        reading = self._read(trial, report, merged) if current and report.group == VALIDATION else None
        if isinstance(reading, values.Refused):
            return reading
        added = report if before is None else _what_is_new(before, report)
        if added is None:
            return None
        if report.step != NO_STEP:
            batch = report.batch if before is None or before.batch is None else before.batch
            self._here[_step_key(report)] = values.ReportedStep(merged, batch)
        self._store(trial, added, merged)
        if reading is not None:
            self._validated(report, merged, reading)
        return None

    def finish(self) -> values.Outcome:
        for (trial_id, group), work in self._groups.items():
            month = self._trials[trial_id].target.month
            self.outcome.tail_rows.extend(work.tail_rows(trial_id, group, month))
            self.outcome.heads[trial_id, group] = work.head()
        return self.outcome

    def _has_too_many_names(self, report: MetricReport) -> bool:
        key = (report.trial_id, report.group)
        work, head = self._groups.get(key), self._known.heads.get(key)
        known: Collection[str] = work.names if work is not None else () if head is None else head.summaries
        # The sum of both is a bound: names are counted only where it does not do.
        most = len(known) + len(report.metrics)
        return most > MAX_NAMES and most - sum(name in known for name in report.metrics) > MAX_NAMES

    def _stored(self, report: MetricReport) -> values.ReportedStep | None:
        if report.step == NO_STEP:
            return None
        key = _step_key(report)
        return self._here.get(key) or self._known.stored.get(key)

    def _read(
        self, trial: values.TrialNow, report: MetricReport, merged: Mapping[str, Json]
    ) -> Reading | values.Refused | None:
        """What the search reads from a validation; None: nothing."""
        target = trial.target
        objective = target.objective if trial.active else Objective(target.objective.metric)
        try:
            return read_report(objective, merged, report.step)
        except UnusableReport as error:
            message = error.message
        if report.trial_id not in self.outcome.fatal:
            self.outcome.fatal[report.trial_id] = (report.run_id, target.experiment_id, message)
            self.outcome.lines.append((target.task_id, "ERROR", message))
        return values.Refused(message, fatal=True)

    def _store(self, trial: values.TrialNow, added: MetricReport, merged: Mapping[str, Json]) -> None:
        """Into the group, and what it moves of the trial."""
        key = (added.trial_id, added.group)
        work = self._groups.get(key)
        if work is None:
            head = self._known.heads.get(key) or values.Head(added.run_id, NO_STEP, 0, NO_STEP, {})
            work = self._groups[key] = _Group(head)
        work.add(added, merged, trial.cuts.limit(added.run_id, added.group))
        if kind_of(added.group) is None:
            return
        if added.run_id != trial.run_id:
            # A straggler of an older run: what it changes is summed up with everything else.
            self.outcome.recount.add(added.trial_id)
            return
        cuts = trial.cuts
        if added.run_id > _FIRST_RUN:
            cuts = cuts.after(added.run_id, added.group, added.step)
        if cuts is not trial.cuts:
            self.outcome.cuts[added.trial_id] = cuts
            # Whether anything older lies beyond the line is seen when it is summed up.
            self.outcome.recount.add(added.trial_id)
            self._trials[added.trial_id] = replace(trial, cuts=cuts)

    def _validated(self, report: MetricReport, merged: Mapping[str, Json], reading: Reading) -> None:
        trial = self._trials[report.trial_id]
        target, metric = trial.target, reading.metric
        validation = values.ReportedValidation(report, merged, metric)
        self.outcome.validations.setdefault(report.trial_id, {}).setdefault(report.step, metric)
        if trial.active and target.objective.needs_validations:
            fact = Validated(target.request_id, report.step, metric, reading.time)
            self.outcome.facts.append(values.Fact(target.experiment_id, report.trial_id, report.step, encode(fact)))
        if not math.isfinite(metric):
            what = f"the searcher's metric {target.objective.metric!r} is {to_json(metric)} at step {report.step}"
            message = f"trial {report.trial_id}: {what}: it is stored, and ranks worst"
            self.outcome.lines.append((target.task_id, "WARNING", message))
        if report.step >= trial.latest_step:
            self.outcome.latest[report.trial_id] = validation
            trial = replace(trial, latest_step=report.step)
        if is_better(metric, trial.best_metric, target.smaller_is_better):
            self.outcome.best[report.trial_id] = validation
            trial = replace(trial, best_metric=metric)
        self._trials[report.trial_id] = trial


def is_better(metric: float, than: float | None, smaller_is_better: bool) -> bool:
    """Whether a searcher's metric beats another; what is not finite is worst in both directions."""
    if than is None:
        return True
    if not math.isfinite(metric):
        return False
    return not math.isfinite(than) or (metric < than if smaller_is_better else metric > than)


def _merge(before: values.ReportedStep, report: MetricReport) -> dict[str, Json] | values.Refused:
    for name, value in report.metrics.items():
        if name in before.metrics and not _same(before.metrics[name], value):
            return values.Refused(
                f"the metric {name!r} of group {report.group!r} was reported at step {report.step} already, as "
                f"{shortened(before.metrics[name])}, and is {shortened(value)} now: a value that was reported does "
                "not change"
            )
    if report.batch is not None and before.batch is not None and report.batch != before.batch:
        return values.Refused(f"batch metrics of group {report.group!r} were reported at step {report.step} already")
    return {**before.metrics, **report.metrics}


def _what_is_new(before: values.ReportedStep, report: MetricReport) -> MetricReport | None:
    metrics = {name: value for name, value in report.metrics.items() if name not in before.metrics}
    batch = report.batch if before.batch is None else None
    if not metrics and batch is None:
        return None
    text = msgspec.json.encode(metrics)
    return MetricReport(report.trial_id, report.run_id, report.group, report.step, report.at_us, metrics, text, batch)


def _same(first: Json, second: Json) -> bool:
    # True == 1 in Python, and is another value here.
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def _step_key(report: MetricReport) -> values.StepKey:
    return report.trial_id, report.group, report.run_id, report.step
