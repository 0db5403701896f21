"""Metrics of the trials of an experiment, side by side."""

from __future__ import annotations

from tenax.wire.api.charts import DataPoint
from tenax.wire.api.message import Document, Message, Timestamp


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
    hparams: Document
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
    """Trials of which something else is told than before."""

    trials: list[SnapshotTrial]
