"""Metrics of trials as charts want them: fewer points, side by side."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Document, Message
from tenax.wire.api.trials import MetricType, Trial


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
