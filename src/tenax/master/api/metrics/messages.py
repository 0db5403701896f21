"""Messages about metrics as charts want them: trials side by side, with few points, and the history of the best."""

from __future__ import annotations

from enum import Enum

from tenax.master.api.trials.messages import MetricType, Trial
from tenax.wire.message import Document, Message, Timestamp


class DataPoint(Message):
    """Values at one step."""

    batches: int
    time: str
    epoch: float | None = None
    #: Metric -> value, of those that were reported there.
    values: Document = {}


class DownsampledMetrics(Message):
    """Metrics of one group of one trial."""

    data: list[DataPoint]
    group: str
    type: MetricType


class ComparableTrial(Message):
    """A trial and its lines."""

    trial: Trial
    metrics: list[DownsampledMetrics]


class CompareTrialsResponse(Message):
    """Trials in the order that was asked for."""

    trials: list[ComparableTrial]


class ProfilerMetricType(str, Enum):
    """What a series of the profiler measures."""

    UNSPECIFIED = "PROFILER_METRIC_TYPE_UNSPECIFIED"
    SYSTEM = "PROFILER_METRIC_TYPE_SYSTEM"
    TIMING = "PROFILER_METRIC_TYPE_TIMING"
    MISC = "PROFILER_METRIC_TYPE_MISC"


class ValidationHistoryEntry(Message):
    """A validation that was better than all before it."""

    trial_id: int
    end_time: Timestamp
    searcher_metric: float


class GetValidationHistoryResponse(Message):
    """In the order in which they came."""

    validation_history: list[ValidationHistoryEntry]


class MetricIdentifier(Message):
    """A metric."""

    group: str
    name: str


class MetricNamesResponse(Message):
    """Names that were not told before."""

    searcher_metrics: list[str] = []
    training_metrics: list[str] = []
    validation_metrics: list[str] = []
    metric_names: list[MetricIdentifier] = []


class MetricBatchesResponse(Message):
    """Steps that were not told before."""

    batches: list[int]


class SampledTrial(Message):
    """A trial and its points that were not told before."""

    trial_id: int
    #: When it is first among them; then null.
    hparams: Document | None = None
    data: list[DataPoint]


class TrialsSampleResponse(Message):
    """The best trials; which of them are new among the best, and which are no longer."""

    trials: list[SampledTrial]
    promoted_trials: list[int]
    demoted_trials: list[int]


class SnapshotTrial(Message):
    """What a trial had reported nearest to a step."""

    trial_id: int
    hparams: Document
    metric: float
    batches_processed: int


class TrialsSnapshotResponse(Message):
    """Trials whose value has changed since the message before."""

    trials: list[SnapshotTrial]
