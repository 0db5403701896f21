"""From what is stored of a trial to what `tenax.lifecycle.health` judges: the ends of its series, and no more.

Rules: what is read does not grow with the training; unpacking happens in a thread; nothing is read for a trial at which
nobody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from asyncpg import Connection

from tenax.jsonvalue import JsonObject, to_number
from tenax.lifecycle.health import IDLE_S, MIN_VALUES, GpuFacts, HealthFacts, MetricFacts, OddMetric
from tenax.master.reading import system
from tenax.master.store.metrics import series, summaries
from tenax.master.store.metrics.series import MetricGroup, PackedReports, PackedSeries, Series
from tenax.master.store.trials.lists import TrialView, TrialVitals
from tenax.master.telemetry.cuts import PROFILING, TRAINING, VALIDATION

#: Values of the metric, and pauses between reports, that are judged.
_JUDGED = 240
#: Metrics whose newest value is no number, that are named.
_MAX_ODD = 50
_GPU, _CPU = "gpu", "cpu"
_UTILISATION = {_GPU: "gpu_util", _CPU: "cpu_util_simple"}
Summaries = Mapping[str, Mapping[str, JsonObject]]


@dataclass(frozen=True, slots=True)
class StoredSigns:
    """What is loaded of a trial."""

    trial: TrialView
    vitals: TrialVitals
    summaries: Summaries
    #: The metric that counts, and one of the group that reports most often.
    metric: PackedSeries | None
    pace: PackedSeries | None
    machines: Mapping[str, PackedReports]


@dataclass(frozen=True, slots=True)
class LifeSigns:
    """What is judged, and what is shown beside the judgement."""

    facts: HealthFacts
    #: Seconds for a step, lately.
    step_s: float | None
    #: Means over GPUs, and over machines, of the newest samples, in percent.
    gpu_percent: float | None
    cpu_percent: float | None
    gpus: int


async def load(conn: Connection, trial: TrialView, vitals: TrialVitals) -> StoredSigns:
    """In one snapshot."""
    groups = {group.name: group for group in await series.groups_of(conn, [trial.id])}
    summed = (await summaries.of_trials(conn, [trial.id]))[trial.id]
    chosen = _metric_that_counts(trial, summed)
    pace = _pace(groups, summed)
    machines = {name: await series.newest_reports(conn, groups[name]) for name in _UTILISATION if name in groups}
    return StoredSigns(
        trial,
        vitals,
        summed,
        None if chosen is None else await series.newest_of(conn, groups[chosen[0]], chosen[1]),
        None if pace is None else await series.newest_of(conn, groups[pace[0]], pace[1]),
        machines,
    )


def _metric_that_counts(trial: TrialView, summed: Summaries) -> tuple[str, str] | None:
    """The searcher's, of validations or, as long as these are few, of training; else the loss of training."""
    own = [] if trial.config_metric is None else [(VALIDATION, trial.config_metric), (TRAINING, trial.config_metric)]
    there = [(group, name) for group, name in (*own, (TRAINING, "loss")) if _values_of(summed, group, name) > 0]
    enough = [(group, name) for group, name in there if _values_of(summed, group, name) >= MIN_VALUES]
    return next(iter([*enough, *there]), None)


def _values_of(summed: Summaries, group: str, name: str) -> int:
    count = summed.get(group, {}).get(name, {}).get("count")
    return count if isinstance(count, int) else 0


def _pace(groups: Mapping[str, MetricGroup], summed: Summaries) -> tuple[str, str] | None:
    """The group that reports most often, and the metric that most of its reports have."""
    own = [group for name, group in groups.items() if name not in PROFILING and summed.get(name)]
    if not own:
        return None
    most = max(own, key=lambda group: (group.next_ord, group.name)).name
    return most, max(summed[most], key=lambda name: (_values_of(summed, most, name), name))


def unpack(loaded: StoredSigns) -> LifeSigns:
    """For a thread."""
    trial, vitals = loaded.trial, loaded.vitals
    pace = None if loaded.pace is None else loaded.pace.unpack()
    metric = None if loaded.metric is None else _metric(loaded, loaded.metric)
    machines = {name: system.measured([packed]) for name, packed in loaded.machines.items()}
    gpus = _gpus(machines.get(_GPU, {}))
    facts = HealthFacts(
        trial.shown_state,
        trial.wait_reason or trial.reason,
        trial.restarts,
        vitals.runs_s,
        _age(vitals.reported_s),
        _age(vitals.line_s),
        _age(vitals.checkpoint_s),
        trial.best_metric,
        metric,
        _pauses(pace),
        _odd(loaded.summaries, metric),
        gpus,
        hang=vitals.hang,
    )
    ends = {name: _newest_mean(own, _UTILISATION[name]) for name, own in machines.items()}
    return LifeSigns(facts, _step_s(pace), ends.get(_GPU), ends.get(_CPU), len(gpus))


def failed_at(pulse: LifeSigns, line: int | None) -> LifeSigns:
    """With the line that shows why."""
    return replace(pulse, facts=replace(pulse.facts, line=line))


def _age(seconds: float | None) -> float | None:
    """What comes from a clock that is ahead is new."""
    return None if seconds is None else max(0.0, seconds)


def _metric(loaded: StoredSigns, packed: PackedSeries) -> MetricFacts:
    unpacked = packed.unpack()
    smaller = loaded.trial.smaller_is_better or packed.metric != loaded.trial.config_metric
    values, steps = unpacked.values[-_JUDGED:].tolist(), unpacked.steps[-_JUDGED:].tolist()
    return MetricFacts(packed.group.name, packed.metric, smaller, values, steps)


def _pauses(pace: Series | None) -> list[float]:
    if pace is None:
        return []
    times = np.sort(pace.times)[-_JUDGED:]
    pauses: list[float] = (np.diff(times) / 1e6).tolist()
    return pauses


def _step_s(pace: Series | None) -> float | None:
    """Of the last reports, the middle of what a step took: a pause says nothing of it."""
    if pace is None or len(pace) < 2:
        return None
    steps, times = np.diff(pace.steps[-_JUDGED:]), np.diff(pace.times[-_JUDGED:]) / 1e6
    went_on = (steps > 0) & (times > 0)
    return float(np.median(times[went_on] / steps[went_on])) if went_on.any() else None


def _odd(summed: Summaries, metric: MetricFacts | None) -> list[OddMetric]:
    """The metric that counts first."""
    odd = []
    for group, metrics in summed.items():
        for name, summary in metrics.items() if group not in PROFILING else ():
            last = to_number(summary["last"]) if summary["type"] == "number" else None
            if last is not None and not np.isfinite(last):
                odd.append(OddMetric(group, name, last))
    counts = None if metric is None else (metric.group, metric.name)
    odd.sort(key=lambda each: ((each.group, each.name) != counts, each.group, each.name))
    return odd[:_MAX_ODD]


def _gpus(measured: Mapping[system.Label, system.SystemSeries]) -> list[GpuFacts]:
    """Each GPU over the newest period, counted back from the newest sample of any."""
    newest = max((own.times[-1] for own in measured.values()), default=0)
    gpus = []
    for label, own in measured.items():
        if label.name == _UTILISATION[_GPU]:
            lately = [(at, value) for at, value in zip(own.times, own.values) if at >= newest - IDLE_S * 1e6]
            covers = (lately[-1][0] - lately[0][0]) / 1e6 if lately else 0.0
            gpus.append(GpuFacts(label.gpu_uuid, [value for _, value in lately], covers))
    return gpus


def _newest_mean(measured: Mapping[system.Label, system.SystemSeries], name: str) -> float | None:
    newest = [own.values[-1] for label, own in measured.items() if label.name == name]
    return float(np.mean(newest)) if newest else None
