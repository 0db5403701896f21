"""Messages about checkpoints: reported, listed, deleted; which of an experiment's are kept, and why."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator

from tenax.master.checkpoints.messages import RemovalReport, Size
from tenax.wire.message import Document, Int64, Message, Pagination, Timestamp


class CheckpointState(str, Enum):
    """What is left of it."""

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    COMPLETED = "STATE_COMPLETED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED"


class CheckpointSortBy(str, Enum):
    """What a list of checkpoints is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    UUID = "SORT_BY_UUID"
    TRIAL_ID = "SORT_BY_TRIAL_ID"
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    SEARCHER_METRIC = "SORT_BY_SEARCHER_METRIC"


class TrainingMetrics(Message):
    """Metrics at a checkpoint's step."""

    avg_metrics: Document = {}
    batch_metrics: list[Document] | None = None


class CheckpointTraining(Message):
    """Where a checkpoint comes from."""

    trial_id: int | None = None
    experiment_id: int | None = None
    experiment_config: Document | None = None
    hparams: Document | None = None
    training_metrics: TrainingMetrics | None = None
    validation_metrics: TrainingMetrics | None = None
    searcher_metric: float | None = None


class Checkpoint(Message):
    """A checkpoint as clients see it."""

    uuid: str
    task_id: str | None = None
    allocation_id: str | None = None
    report_time: Timestamp | None = None
    #: path -> bytes; directories end in a slash.
    resources: dict[str, Int64] = {}
    metadata: Document = {}
    state: CheckpointState
    training: CheckpointTraining
    storage_id: int | None = None
    #: Why its files are being deleted, and why that did not work the last time; absent: they are not.
    going: str | None = None


def _bare(state: object) -> object:
    return state.removeprefix("STATE_") if isinstance(state, str) else state


class ReportCheckpointRequest(Message):
    """A checkpoint that a task has written."""

    uuid: str = ""
    task_id: str | None = None
    allocation_id: str | None = None
    storage_id: int | None = None
    state: Annotated[str, BeforeValidator(_bare)] = "COMPLETED"
    metadata: Document = {}
    resources: dict[str, Size] = {}


class PatchedResources(Message):
    """What is left of the files."""

    resources: dict[str, Size] = {}


class PatchedCheckpoint(Message):
    """One checkpoint after a delete."""

    uuid: str = ""
    resources: PatchedResources | None = None


class PatchCheckpointsRequest(Message):
    """Checkpoints after a delete."""

    checkpoints: list[PatchedCheckpoint] = []


class CheckpointWords(Message):
    """What is said about a checkpoint."""

    metadata: Document = {}


class PostCheckpointMetadataRequest(Message):
    """All that is to be said about a checkpoint."""

    checkpoint: CheckpointWords | None = None


class PostCheckpointMetadataResponse(Message):
    """The checkpoint as it is now."""

    checkpoint: Checkpoint


class GetCheckpointResponse(Message):
    """One checkpoint."""

    checkpoint: Checkpoint


class GetCheckpointsResponse(Message):
    """A page of checkpoints."""

    checkpoints: list[Checkpoint]
    pagination: Pagination


class DeleteCheckpointsRequest(Message):
    """Checkpoints whose files are to go."""

    checkpoint_uuids: list[str] = []


class CheckpointsRemoveFilesRequest(Message):
    """Files to delete, by patterns such as ``**/optimizer.pt``."""

    checkpoint_uuids: list[str] = []
    checkpoint_globs: list[str] = []


class CheckpointPolicy(Message):
    """How many checkpoints are kept."""

    save_experiment_best: int
    save_trial_best: int
    save_trial_latest: int


class CheckpointFate(Message):
    """What becomes of one checkpoint."""

    uuid: str
    trial_id: int
    steps_completed: int
    searcher_metric: float | None = None
    #: Bytes.
    size: Int64
    keep: bool
    #: Every reason to keep it, or the one why it goes.
    reasons: list[str]


class CheckpointRemoval(Message):
    """Files that are being deleted."""

    uuid: str
    #: Of an upload that its task began and never reported.
    unreported: bool
    reason: str
    tries: int
    #: Why it did not work the last time; empty: nothing failed.
    failure: str
    asked_at: Timestamp
    next_try_at: Timestamp


class ReportRemovalsRequest(Message):
    """What a task has done about removals that it has in hand."""

    removals: list[RemovalReport] = []


class GetExperimentGarbageResponse(Message):
    """What a policy keeps, and what is on its way out already."""

    policy: CheckpointPolicy
    #: The searcher's metric, and whether less of it is better.
    metric: str
    smaller_is_better: bool
    checkpoints: list[CheckpointFate]
    kept_size: Int64
    freed_size: Int64
    removals: list[CheckpointRemoval]
