"""Trials: one sample of hyperparameters, trained."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import Field

from tenax.lifecycle.health import Evidence, HealthKind
from tenax.master.api.checkpoints.messages import CheckpointState
from tenax.master.api.experiments.messages import State
from tenax.master.api.models.messages import TrialSourceInfo
from tenax.wire.message import Document, Int64, Message, Pagination, Timestamp


class Metrics(Message):
    """A report: values over all, and per batch where the script gave them."""

    avg_metrics: Document = {}
    batch_metrics: list[Document] | None = None


class MetricsWorkload(Message):
    """A report and its place in the trial."""

    end_time: str | None = None
    metrics: Metrics
    num_inputs: int = 0
    total_batches: int


class CheckpointWorkload(Message):
    """A checkpoint and its place in the trial."""

    uuid: str
    end_time: Timestamp | None = None
    state: CheckpointState
    resources: dict[str, Int64] = {}
    total_batches: int
    metadata: Document = {}


class Trial(Message):
    """A trial as it is now."""

    id: int
    experiment_id: int
    state: State
    #: In words: why it waits, or how it ended.
    reason: str = ""
    hparams: Document
    restarts: int
    start_time: Timestamp
    end_time: Timestamp | None = None
    total_batches_processed: int = 0
    best_validation: MetricsWorkload | None = None
    latest_validation: MetricsWorkload | None = None
    best_checkpoint: CheckpointWorkload | None = None
    searcher_metric_value: float | None = None
    runner_state: str = ""
    #: 0 to 1.
    progress: float | None = None
    #: Number of the newest attempt.
    run_id: int = 0
    #: Seconds in which it held its slots.
    wall_clock_time: float = 0.0
    #: Seconds in which it ran: without waiting for slots and images, and without pauses.
    running_seconds: float = 0.0
    warm_start_checkpoint_uuid: str = ""
    task_id: str
    task_ids: list[str]
    checkpoint_count: int = 0
    total_checkpoint_size: Int64 = 0
    summary_metrics: Document | None = None
    log_retention_days: int | None = None
    log_policy_matched: str | None = None
    metadata: Document | None = None


class GetTrialResponse(Message):
    """One trial."""

    trial: Trial


class GetExperimentTrialsResponse(Message):
    """A page of an experiment's trials."""

    trials: list[Trial]
    pagination: Pagination


class TrialSortBy(str, Enum):
    """What a list of trials is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED"
    DURATION = "SORT_BY_DURATION"
    RESTARTS = "SORT_BY_RESTARTS"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"
    LOG_RETENTION_DAYS = "SORT_BY_LOG_RETENTION_DAYS"


class WorkloadFilter(str, Enum):
    """Which steps of a trial to show."""

    UNSPECIFIED = "FILTER_OPTION_UNSPECIFIED"
    CHECKPOINT = "FILTER_OPTION_CHECKPOINT"
    VALIDATION = "FILTER_OPTION_VALIDATION"
    CHECKPOINT_OR_VALIDATION = "FILTER_OPTION_CHECKPOINT_OR_VALIDATION"


class MetricType(str, Enum):
    """Groups of metrics by their use."""

    UNSPECIFIED = "METRIC_TYPE_UNSPECIFIED"
    TRAINING = "METRIC_TYPE_TRAINING"
    VALIDATION = "METRIC_TYPE_VALIDATION"
    PROFILING = "METRIC_TYPE_PROFILING"


class Workload(Message):
    """One thing that happened in a trial: exactly one of these is set."""

    training: MetricsWorkload | None = None
    validation: MetricsWorkload | None = None
    checkpoint: CheckpointWorkload | None = None


class GetTrialWorkloadsResponse(Message):
    """A page of what happened in a trial."""

    workloads: list[Workload]
    pagination: Pagination


class RunnerMetadata(Message):
    """What the script is doing."""

    state: str = ""


class ReportProgressRequest(Message):
    """How far the script is; with ``is_raw`` from 0 to 1."""

    progress: float = 0.0
    is_raw: bool = False


class EarlyExit(Message):
    """The script gives up its hyperparameters."""

    reason: str = ""


class PrepareRequest(Message):
    """A run begins; ``run_id`` is the trial's id, and what counts is the token's."""

    run_id: int = 0
    checkpoint_storage: Document | None = None


class PrepareResponse(Message):
    """Number of the storage that the run's checkpoints are reported with."""

    storage_id: int | None = None


class CreateTrialRequest(Message):
    """A trial of an unmanaged experiment."""

    experiment_id: int = 0
    hparams: Document = {}
    unmanaged: bool = False


class CreateTrialResponse(Message):
    """The trial."""

    trial: Trial


class PutTrialRequest(Message):
    """A trial under a name of its maker's."""

    create_trial_request: CreateTrialRequest = CreateTrialRequest()
    external_trial_id: str = ""


class PatchTrialRequest(Message):
    """What became of a trial; without a state a sign of life."""

    trial_id: int = 0
    state: State = State.UNSPECIFIED
    #: Why it ended, in words.
    reason: str = ""
    #: When its script began and ended, in seconds before now: what ran before it was sent here has its own times.
    began_seconds_ago: Annotated[float, Field(ge=0)] | None = None
    ended_seconds_ago: Annotated[float, Field(ge=0)] | None = None
    #: For how long all its runs together ran, in seconds, where that is less than from its begin to its end.
    ran_seconds: Annotated[float, Field(ge=0)] | None = None


class StartTrialRequest(Message):
    """A script begins; with ``resume`` where the trial was left."""

    trial_id: int = 0
    resume: bool = False


class StartTrialResponse(Message):
    """The number of the run, and where it goes on from."""

    trial_run_id: int
    latest_checkpoint: str | None = None
    steps_completed: int = 0


class ReportTrialSourceInfoRequest(Message):
    """What is reported."""

    trial_source_info: TrialSourceInfo = TrialSourceInfo()


class ReportTrialSourceInfoResponse(Message):
    """What was stored."""

    trial_id: int
    checkpoint_uuid: str


class HealthFinding(Message):
    """One thing that holds of a trial."""

    kind: HealthKind
    sentence: str
    #: How the sentence begins, before what is particular to this trial; empty where nothing of it is.
    head: str = ""
    #: Where it can be seen.
    evidence: Evidence
    #: Of its output, from 0.
    line: int | None = None
    #: The metric, where it is about one.
    group: str = ""
    metric: str = ""


class GetTrialHealthResponse(Message):
    """Whether a trial is well. Ages are in seconds, and null where there was nothing."""

    #: The gravest of the findings, and what it says.
    kind: HealthKind
    sentence: str
    findings: list[HealthFinding]
    #: Seconds after which it counts as stalled if nothing comes from it; null: silence means nothing.
    silent_in: float | None = None
    #: The metric that counts; empty: nothing reports one.
    metric: str = ""
    metric_group: str = ""
    smaller_is_better: bool = True
    best: float | None = None
    #: 0 to 1.
    progress: float | None = None
    #: By how long it took so far.
    seconds_left: float | None = None
    #: For a step, lately.
    step_seconds: float | None = None
    #: What its newest attempt has, or had.
    slots: int = 0
    agents: list[str] = []
    #: GPUs whose use is reported; the mean of their newest samples, in percent, and that of the machines' processors.
    gpus: int = 0
    gpu_percent: float | None = None
    cpu_percent: float | None = None
    restarts: int = 0
    max_restarts: int | None = None
    #: Lines of its output.
    lines: int = 0
    line_seconds: float | None = None
    report_seconds: float | None = None
    checkpoint_seconds: float | None = None


class StalledTrial(Message):
    """A trial that was silent for longer than is usual for it."""

    trial_id: int
    experiment_id: int
    #: Of the experiment.
    name: str
    sentence: str


class GetStalledTrialsResponse(Message):
    """Those that were silent for longest come first."""

    trials: list[StalledTrial]
    #: Seconds after which another one stalls if nothing comes from it; null: none does.
    next_in: float | None = None


class TrialEventKind(str, Enum):
    """What happened to a trial."""

    CREATED = "CREATED"
    #: An attempt asked for slots, got them, began to run, went on from an earlier step, was asked to leave, ended.
    REQUESTED = "REQUESTED"
    ASSIGNED = "ASSIGNED"
    STARTED = "STARTED"
    RESTORED = "RESTORED"
    PREEMPTED = "PREEMPTED"
    ENDED = "ENDED"
    CHECKPOINT = "CHECKPOINT"
    #: A line of its output matched a policy of its configuration.
    LOG_POLICY = "LOG_POLICY"
    #: The trial itself has ended.
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class TrialEvent(Message):
    """Something that happened to a trial."""

    time: Timestamp
    kind: TrialEventKind
    #: The attempt; 0: the trial itself.
    run_id: int = 0
    #: What happened, and why.
    sentence: str
    #: Of a checkpoint.
    checkpoint_uuid: str = ""


class GetTrialEventsResponse(Message):
    """The newest first."""

    events: list[TrialEvent]
