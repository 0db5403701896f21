"""The queue: jobs that wait or run, and how their places change."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.experiments import JobState, JobSummary
from tenax.wire.api.message import Message, Pagination, Timestamp


class JobType(str, Enum):
    """What a job runs."""

    UNSPECIFIED = "TYPE_UNSPECIFIED"
    EXPERIMENT = "TYPE_EXPERIMENT"
    NOTEBOOK = "TYPE_NOTEBOOK"
    TENSORBOARD = "TYPE_TENSORBOARD"
    SHELL = "TYPE_SHELL"
    COMMAND = "TYPE_COMMAND"
    CHECKPOINT_GC = "TYPE_CHECKPOINT_GC"
    GENERIC = "TYPE_GENERIC"


class Job(Message):
    """One job of the queue."""

    summary: JobSummary
    type: JobType
    submission_time: Timestamp
    username: str
    user_id: int
    resource_pool: str
    is_preemptible: bool
    priority: int
    weight: float
    #: The experiment, or the task.
    entity_id: str
    job_id: str
    requested_slots: int
    allocated_slots: int
    name: str
    progress: float = 0.0
    workspace_id: int
    #: In words, why the first of its requests waits.
    reason: str = ""


class RbacJob(Message):
    """A job, as much of it as the caller may see: here all of it."""

    full: Job


class GetJobsResponse(Message):
    """A page of a pool's queue."""

    jobs: list[Job]
    pagination: Pagination


class GetJobsV2Response(Message):
    """A page of a pool's queue."""

    jobs: list[RbacJob]
    pagination: Pagination


class QueueStats(Message):
    """How many jobs wait, and how many have slots."""

    queued_count: int = 0
    scheduled_count: int = 0


class AggregateQueueStats(Message):
    """How long attempts waited on average on one day."""

    period_start: str
    seconds: float


class PoolQueueStats(Message):
    """Of one pool."""

    stats: QueueStats
    resource_pool: str
    aggregates: list[AggregateQueueStats] = []


class GetJobQueueStatsResponse(Message):
    """A pool each."""

    results: list[PoolQueueStats]


class QueueControl(Message):
    """What changes for one job; what is absent stays."""

    job_id: str
    #: Its place: just before, or just behind, another job of its pool, with that one's priority.
    ahead_of: str | None = None
    behind_of: str | None = None
    resource_pool: str | None = None
    #: 1 (most urgent) to 99.
    priority: int | None = None
    weight: float | None = None


class UpdateJobQueueRequest(Message):
    """Applied in this order, all or none."""

    updates: list[QueueControl] = []


__all__ = [
    "AggregateQueueStats",
    "GetJobQueueStatsResponse",
    "GetJobsResponse",
    "GetJobsV2Response",
    "Job",
    "JobState",
    "JobSummary",
    "JobType",
    "PoolQueueStats",
    "QueueControl",
    "QueueStats",
    "RbacJob",
    "UpdateJobQueueRequest",
]
