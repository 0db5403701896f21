"""What slots were used for, attempt by attempt and summed up."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Message, Timestamp


class AggregationPeriod(str, Enum):
    """How long a period is."""

    UNSPECIFIED = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_UNSPECIFIED"
    DAILY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"
    MONTHLY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"


class RawEntry(Message):
    """One attempt that held slots."""

    #: ``experiment``, ``command``, ``notebook``...
    kind: str
    start_time: Timestamp
    #: Absent while it goes on.
    end_time: Timestamp | None = None
    experiment_id: int | None = None
    username: str
    user_id: int
    labels: list[str] = []
    #: In the window that was asked for; times ``slots`` they are slot seconds.
    seconds: float
    slots: int
    allocation_id: str
    resource_pool: str
    agents: list[str] = []
    workspace_name: str = ""


class RawResponse(Message):
    """In the order of their start."""

    resource_entries: list[RawEntry]


class AggregatedEntry(Message):
    """Slot seconds of one day or month, in all and by whom, where and what for."""

    #: ``2026-11-21``, ``2026-11``.
    period_start: str
    period: AggregationPeriod
    seconds: float
    by_username: dict[str, float] = {}
    #: An experiment with several labels counts for each of them.
    by_experiment_label: dict[str, float] = {}
    by_resource_pool: dict[str, float] = {}
    by_agent: dict[str, float] = {}
    by_experiment: dict[str, float] = {}


class AggregatedResponse(Message):
    """One entry for each period, also for one without any use."""

    resource_entries: list[AggregatedEntry]
