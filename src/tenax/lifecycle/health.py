"""Whether a trial is well: one sentence over what is known of it, and what shows it. Pure.

Rules, of which the first that holds gives the sentence; all that hold are listed:

- It has failed, was ended, or has finished: what it came to. It waits or is paused: why.
- It hangs: what watches its ranks in the task saw that they stand still, and says where.
- It stalls: it runs, and wrote no line and reported nothing for longer than is usual for it. Usual is what most of its
  own pauses between reports were, with room; it is never less than `SILENT_S`, and before its first reports
  `SILENT_AT_FIRST_S`, since data are loaded and programs compiled then.
- A metric is not a number, or infinite, in its newest report.
- It diverges: the metric that counts is, lately, worse than where it began, by more than it moved before or scatters.
- Its GPUs do next to nothing: all of them below `IDLE_PERCENT` for `IDLE_S`.
- It was started again after failures.
- Else it is healthy: which way its metric goes, and how old its last report and checkpoint are.

Ages are seconds by the master's clock: tasks may have others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

#: Silence is nothing below these, in seconds: while it reports, and before it has.
SILENT_S, SILENT_AT_FIRST_S = 600.0, 1800.0
#: Its usual pause may be exceeded so many times.
SILENT_TIMES = 5.0
#: Pauses that are too few to say what is usual.
MIN_PAUSES = 3
#: A GPU of which less than this is used, in percent, for so many seconds, does next to nothing.
IDLE_PERCENT, IDLE_S = 10.0, 600.0
#: Samples come at intervals: a period counts as whole when so much of it is covered.
_COVERED = 0.9
#: With fewer values nothing is said of where a metric goes.
MIN_VALUES = 8
#: A move counts where it is so many times what neighbours usually differ by.
_NOISES = 3.0


class HealthKind(str, Enum):
    """What is the matter, the gravest first."""

    FAILED = "FAILED"
    HUNG = "HUNG"
    STALLED = "STALLED"
    NOT_FINITE = "NOT_FINITE"
    DIVERGING = "DIVERGING"
    IDLE_GPUS = "IDLE_GPUS"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    CANCELED = "CANCELED"
    COMPLETED = "COMPLETED"
    RESTARTED = "RESTARTED"
    HEALTHY = "HEALTHY"


class Evidence(str, Enum):
    """Where what is said can be seen."""

    NONE = "NONE"
    #: The line of the output that shows it; without a number its newest lines.
    LINE = "LINE"
    METRIC = "METRIC"
    CHECKPOINTS = "CHECKPOINTS"
    SYSTEM = "SYSTEM"
    ATTEMPTS = "ATTEMPTS"


class Direction(str, Enum):
    """Where a metric goes."""

    IMPROVING = "IMPROVING"
    FLAT = "FLAT"
    WORSENING = "WORSENING"
    DIVERGING = "DIVERGING"


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """The newest of one metric, in order of steps; what is no number is NaN."""

    group: str
    name: str
    smaller_is_better: bool
    values: Sequence[float]
    steps: Sequence[int]
    #: Seconds between reports of its group.
    pauses: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class OddMetric:
    """A metric whose newest value is no number, or infinite."""

    group: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """How much of a GPU was used, in percent, over its newest samples: at most `IDLE_S` of them."""

    name: str
    percents: Sequence[float]
    #: From the first to the last of them.
    covers_s: float


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What is known of a trial."""

    #: As people see it: QUEUED, RUNNING, ERROR and so on.
    state: str
    #: Why it waits, or how it ended.
    reason: str = ""
    restarts: int = 0
    #: Since its newest attempt began to run; None: it does not run.
    runs_s: float | None = None
    #: Since its last report, line of output, checkpoint; None: there was none.
    reported_s: float | None = None
    line_s: float | None = None
    checkpoint_s: float | None = None
    best: float | None = None
    #: The metric that counts, if anything reports it.
    metric: MetricFacts | None = None
    #: Pauses between reports of any kind.
    pauses: Sequence[float] = ()
    odd: Sequence[OddMetric] = ()
    gpus: Sequence[GpuFacts] = ()
    #: The line of its output that shows why it failed, from 0.
    line: int | None = None
    #: Where its ranks stand still; empty: they do not.
    hang: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that holds."""

    kind: HealthKind
    sentence: str
    #: How the sentence begins, before what is particular to this trial; empty where nothing of it is.
    head: str = ""
    evidence: Evidence = Evidence.NONE
    #: From 0.
    line: int | None = None
    group: str = ""
    metric: str = ""


@dataclass(frozen=True, slots=True)
class TrialHealth:
    """The findings, the gravest first; there is one at least."""

    findings: tuple[Finding, ...]
    #: Seconds after which it stalls if nothing comes from it; None: silence means nothing.
    silent_in_s: float | None = None

    @property
    def kind(self) -> HealthKind:
        """The gravest."""
        return self.findings[0].kind

    @property
    def sentence(self) -> str:
        """It in words."""
        return self.findings[0].sentence


#: States of what has ended, or will without more work.
_OVER = {
    "ERROR": HealthKind.FAILED,
    "STOPPING_ERROR": HealthKind.FAILED,
    "CANCELED": HealthKind.CANCELED,
    "STOPPING_CANCELED": HealthKind.CANCELED,
    "STOPPING_KILLED": HealthKind.CANCELED,
    "COMPLETED": HealthKind.COMPLETED,
    "STOPPING_COMPLETED": HealthKind.COMPLETED,
}
_WAITING = {"QUEUED": "Waits for slots", "PULLING": "Pulls its image", "STARTING": "Starts"}


def judge(facts: HealthFacts) -> TrialHealth:
    """What holds of a trial."""
    over = _OVER.get(facts.state)
    if over is not None:
        return TrialHealth((_ended(over, facts), *_restarted(facts)))
    if facts.state == "PAUSED":
        return TrialHealth((_because(HealthKind.PAUSED, "Paused", facts.reason), *_restarted(facts)))
    if facts.state in _WAITING:
        waits = _because(HealthKind.WAITING, _WAITING[facts.state], facts.reason)
        return TrialHealth((waits, *_restarted(facts)))
    findings = [*_hung(facts), *_stalled(facts), *_odd(facts), *_diverging(facts), *_idle(facts), *_restarted(facts)]
    findings.append(_healthy(facts))
    order = list(HealthKind)
    findings.sort(key=lambda finding: order.index(finding.kind))
    if len(findings) > 1:
        # What is healthy beside is still worth saying of what was merely started again, and of nothing else.
        healthy = findings.pop()
        findings = [healthy, *findings] if findings[0].kind is HealthKind.RESTARTED else findings
    return TrialHealth(tuple(findings), _silent_in(facts))


def silent_after_s(facts: HealthFacts) -> float:
    """For how long a trial may be silent."""
    if len(facts.pauses) < MIN_PAUSES:
        return SILENT_AT_FIRST_S
    ordered = sorted(facts.pauses)
    usual = ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)))]
    return max(SILENT_S, SILENT_TIMES * usual)


def silence_s(facts: HealthFacts) -> float | None:
    """For how long nothing came from a trial that runs; None: it does not run."""
    if facts.runs_s is None:
        return None
    ages = (facts.reported_s, facts.line_s, facts.checkpoint_s, facts.runs_s)
    return min(age for age in ages if age is not None)


def direction(values: Sequence[float], smaller_is_better: bool) -> Direction | None:
    """Where these values go, lately; None: they are too few to say."""
    finite = [value if smaller_is_better else -value for value in values if math.isfinite(value)]
    if len(finite) < MIN_VALUES:
        return None
    width = max(2, len(finite) // 4)
    parts = [median(finite[start : start + width]) for start in range(0, len(finite) - width + 1, width)]
    first, lately = median(finite[:width]), median(finite[-width:])
    before = [*parts[:-1], first] if len(parts) > 1 else [first]
    best = min(before)
    noise = _NOISES * median([abs(b - a) for a, b in itertools.pairwise(finite)])
    if lately - first > max(max(before) - best, noise, 0.1 * abs(first)):
        return Direction.DIVERGING
    if lately - best > max(0.2 * (first - best), noise):
        return Direction.WORSENING
    if before[0] - lately > noise / 3 and lately <= best:
        return Direction.IMPROVING
    return Direction.FLAT


def _because(
    kind: HealthKind, head: str, reason: str, evidence: Evidence = Evidence.NONE, line: int | None = None
) -> Finding:
    return Finding(kind, f"{head}: {reason}" if reason else head, head, evidence, line)


def _ended(kind: HealthKind, facts: HealthFacts) -> Finding:
    if kind is HealthKind.FAILED:
        return _because(kind, "Failed", facts.reason, Evidence.LINE, facts.line)
    if kind is HealthKind.CANCELED:
        return _because(kind, "Canceled", facts.reason, Evidence.ATTEMPTS)
    parts = ["Completed" if facts.state == "COMPLETED" else "Completing"]
    if facts.metric is not None and facts.best is not None:
        parts.append(f"best {facts.metric.name} {_number(facts.best)}")
    if facts.checkpoint_s is None:
        parts.append("no checkpoint")
    group, name = ("", "") if facts.metric is None else (facts.metric.group, facts.metric.name)
    evidence = Evidence.METRIC if name else Evidence.NONE
    return Finding(kind, ", ".join(parts), parts[0], evidence, None, group, name)


def _hung(facts: HealthFacts) -> list[Finding]:
    return [_because(HealthKind.HUNG, "Hangs", facts.hang, Evidence.LINE)] if facts.hang else []


def _stalled(facts: HealthFacts) -> list[Finding]:
    silent = silence_s(facts)
    if silent is None or silent < silent_after_s(facts):
        return []
    if facts.reported_s is None and facts.line_s is None:
        what = f"Stalled: nothing came from it since it began {_time(silent)} ago"
    else:
        what = f"Stalled: no line of output and no metric for {_time(silent)}"
    if len(facts.pauses) >= MIN_PAUSES:
        what += f"; usually it reports every {_time(median(facts.pauses))}"
    return [Finding(HealthKind.STALLED, what, "Stalled", Evidence.LINE)]


def _odd(facts: HealthFacts) -> list[Finding]:
    if not facts.odd:
        return []
    first, more = facts.odd[0], len(facts.odd) - 1
    value = "NaN" if math.isnan(first.value) else "infinite"
    own = facts.metric is not None and (first.group, first.name) == (facts.metric.group, facts.metric.name)
    since = _odd_since(facts.metric) if own and facts.metric is not None else None
    sentence = f"{first.group} {first.name} is {value}"
    sentence += "" if since is None else f" since step {since:,}"
    sentence += "" if more < 1 else f", and so {'is 1 other metric' if more == 1 else f'are {more} others'}"
    return [Finding(HealthKind.NOT_FINITE, sentence, "", Evidence.METRIC, None, first.group, first.name)]


def _odd_since(metric: MetricFacts) -> int | None:
    """The step from which on no value is a number; None: it is before what is known."""
    place = len(metric.values)
    while place > 0 and not math.isfinite(metric.values[place - 1]):
        place -= 1
    return metric.steps[place] if 0 < place < len(metric.values) else None


def _diverging(facts: HealthFacts) -> list[Finding]:
    metric = facts.metric
    if metric is None or direction(metric.values, metric.smaller_is_better) is not Direction.DIVERGING:
        return []
    finite = [value for value in metric.values if math.isfinite(value)]
    best = min(finite) if metric.smaller_is_better else max(finite)
    sentence = f"Diverging: {metric.name} went from {_number(best)} at its best to {_number(finite[-1])}"
    return [Finding(HealthKind.DIVERGING, sentence, "Diverging", Evidence.METRIC, None, metric.group, metric.name)]


def _idle(facts: HealthFacts) -> list[Finding]:
    if facts.runs_s is None or facts.runs_s < IDLE_S:
        return []
    idle = [gpu for gpu in facts.gpus if _is_idle(gpu)]
    if not idle:
        return []
    many, every = len(idle), len(facts.gpus)
    some = f"{many} of {every} GPUs {'is' if many == 1 else 'are'}"
    whose = "Its GPU is" if every == 1 else f"All {every} GPUs are" if many == every else some
    sentence = f"{whose} used less than {IDLE_PERCENT:.0f} % for {IDLE_S / 60:.0f} m"
    return [Finding(HealthKind.IDLE_GPUS, sentence, "", Evidence.SYSTEM)]


def _is_idle(gpu: GpuFacts) -> bool:
    return gpu.covers_s >= _COVERED * IDLE_S and bool(gpu.percents) and max(gpu.percents) < IDLE_PERCENT


def _restarted(facts: HealthFacts) -> list[Finding]:
    if facts.restarts < 1:
        return []
    times = "once" if facts.restarts == 1 else f"{facts.restarts} times"
    return [Finding(HealthKind.RESTARTED, f"Started again {times} after failures", "", Evidence.ATTEMPTS)]


def _healthy(facts: HealthFacts) -> Finding:
    if facts.reported_s is None:
        sentence = "Running, and has reported no metric yet"
        return Finding(HealthKind.HEALTHY, f"{sentence}{_since(facts)}", "Running", Evidence.LINE)
    parts = []
    metric = facts.metric
    way = None if metric is None else direction(metric.values, metric.smaller_is_better)
    if metric is not None and way is not None:
        parts.append(f"{metric.name} {_way(way, metric.smaller_is_better)}")
    parts.append(f"last report {_time(facts.reported_s)} ago")
    saved = facts.checkpoint_s
    parts.append("no checkpoint yet" if saved is None else f"checkpoint {_time(saved)} ago")
    group, name = ("", "") if metric is None else (metric.group, metric.name)
    # Worse than its best, though not than its begin: whoever trains it knows whether that is well.
    what = "Running" if way is Direction.WORSENING else "Healthy"
    return Finding(HealthKind.HEALTHY, f"{what}: {', '.join(parts)}", what, Evidence.METRIC, None, group, name)


def _since(facts: HealthFacts) -> str:
    return "" if facts.runs_s is None else f", {_time(facts.runs_s)} after its begin"


def _way(way: Direction, smaller_is_better: bool) -> str:
    better, worse = ("falling", "rising again") if smaller_is_better else ("rising", "falling again")
    return {Direction.IMPROVING: better, Direction.FLAT: "flat"}.get(way, worse)


def _silent_in(facts: HealthFacts) -> float | None:
    silent = silence_s(facts)
    return None if silent is None else max(0.0, silent_after_s(facts) - silent)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _time(seconds: float) -> str:
    """``42 s``, ``11 m``, ``3 h 4 m``, ``2 d 1 h``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
