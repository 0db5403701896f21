"""The values of taking in metrics: what arrives, what is known, what is to be written. No decisions, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenax.ids import RequestId
from tenax.jsonvalue import Json, JsonObject
from tenax.master.telemetry.cuts import NO_STEP, Cuts
from tenax.master.telemetry.reports import MetricReport
from tenax.master.telemetry.summary import Summaries
from tenax.search.validation import Objective

StreamKey = tuple[str, str]
GroupKey = tuple[int, str]
StepKey = tuple[int, str, int, int]


@dataclass(frozen=True, slots=True)
class Refused:
    """Never to be stored, and why; ``fatal``: the task should end."""

    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class SpooledReport:
    """A report as it comes in: ``stream`` and ``n`` are its place in a spool, None and 0 without one.

    A line of a spool that is something else only uses up its number: ``report`` is None.
    """

    report: MetricReport | None
    stream: StreamKey | None = None
    n: int = 0
    #: It cannot be stored, as a try has shown: its number is used up and it is refused.
    condemned: Refused | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in a queue."""
        return 100 if self.report is None else self.report.size


@dataclass(frozen=True, slots=True)
class Target:
    """What taking in a trial's reports needs to know of its experiment and search; never changes."""

    experiment_id: int
    request_id: RequestId
    task_id: str
    #: Year and month of the trial, 202611: where its rows are.
    month: int
    objective: Objective
    smaller_is_better: bool


@dataclass(frozen=True, slots=True)
class TrialNow:
    """What may change about a trial."""

    target: Target
    run_id: int
    active: bool
    cuts: Cuts
    #: Step of the latest validation; NO_STEP for none.
    latest_step: int = NO_STEP
    best_metric: float | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Where a group's reports end. ``last_step`` is of ``run_id``, the newest run that reported."""

    run_id: int
    last_step: int
    next_ord: int
    newest_step: int
    summaries: Summaries


@dataclass(frozen=True, slots=True)
class ReportedStep:
    """All that is stored of one (trial, group, run, step)."""

    metrics: Mapping[str, Json]
    batch: bytes | None


@dataclass(frozen=True, slots=True)
class Known:
    """What was loaded for a group of reports. Missing: a trial that does not exist, a group without reports."""

    trials: Mapping[int, TrialNow]
    heads: Mapping[GroupKey, Head]
    #: Reports at steps that are not beyond the end of their group.
    stored: Mapping[StepKey, ReportedStep]
    acked: Mapping[StreamKey, int]
    #: The database's time, in microseconds since 1970.
    now_us: int = 0


@dataclass(frozen=True, slots=True)
class TailRow:
    """Reports of one group and run that are stored as one row."""

    trial_id: int
    group: str
    run_id: int
    month: int
    first_ord: int
    reports: Sequence[MetricReport]


@dataclass(frozen=True, slots=True)
class Fact:
    """For the inbox of a search."""

    experiment_id: int
    trial_id: int
    step: int
    fact: JsonObject


@dataclass(frozen=True, slots=True)
class ReportedValidation:
    """A validation with the searcher's metric."""

    report: MetricReport
    #: All that was reported at its step.
    metrics: Mapping[str, Json]
    metric: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to write."""

    #: By place in the group; the others are stored, or were before.
    refused: dict[int, Refused] = field(default_factory=dict)
    tail_rows: list[TailRow] = field(default_factory=list)
    heads: dict[GroupKey, Head] = field(default_factory=dict)
    #: Trials with a lower line, and where it is now.
    cuts: dict[int, Cuts] = field(default_factory=dict)
    #: Trials of which something visible before is hidden now, or the reverse: to be summed up anew.
    recount: set[int] = field(default_factory=set)
    latest: dict[int, ReportedValidation] = field(default_factory=dict)
    best: dict[int, ReportedValidation] = field(default_factory=dict)
    #: Trial -> step -> the searcher's metric; the first at each step.
    validations: dict[int, dict[int, float]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    #: Trial -> (run, experiment, why it ends).
    fatal: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    #: (task, level, text) for the task's output.
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    acked: dict[StreamKey, int] = field(default_factory=dict)
