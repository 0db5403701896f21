"""The model registry: models, and the checkpoints that are their versions."""

from __future__ import annotations

from enum import Enum

from tenax.master.api.checkpoints.messages import Checkpoint
from tenax.wire.message import Document, Message, Name, Pagination, Timestamp


class ModelSortBy(str, Enum):
    """What a list of models is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    CREATION_TIME = "SORT_BY_CREATION_TIME"
    LAST_UPDATED_TIME = "SORT_BY_LAST_UPDATED_TIME"
    NUM_VERSIONS = "SORT_BY_NUM_VERSIONS"
    WORKSPACE = "SORT_BY_WORKSPACE"


class ModelVersionSortBy(str, Enum):
    """What a list of versions is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    VERSION = "SORT_BY_VERSION"
    CREATION_TIME = "SORT_BY_CREATION_TIME"


class Model(Message):
    """A model as it is now."""

    id: int
    name: str
    description: str = ""
    notes: str = ""
    labels: list[str] = []
    metadata: Document = {}
    archived: bool
    num_versions: int
    workspace_id: int
    user_id: int
    username: str
    creation_time: Timestamp
    last_updated_time: Timestamp


class ModelVersion(Message):
    """A checkpoint under a model's name; numbers begin at 1."""

    model: Model
    checkpoint: Checkpoint
    version: int
    id: int
    name: str = ""
    comment: str = ""
    notes: str = ""
    labels: list[str] = []
    metadata: Document = {}
    user_id: int
    username: str
    creation_time: Timestamp
    last_updated_time: Timestamp


class PostModelRequest(Message):
    """A model to make; in the workspace of that id or name, by default Uncategorized."""

    name: Name = ""
    description: str = ""
    notes: str = ""
    labels: list[Name] = []
    metadata: Document = {}
    workspace_id: int | None = None
    workspace_name: str | None = None


class PatchModel(Message):
    """What to change; what is absent stays, what is there is replaced as a whole."""

    name: Name | None = None
    description: str | None = None
    notes: str | None = None
    labels: list[Name] | None = None
    metadata: Document | None = None
    workspace_id: int | None = None
    workspace_name: str | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class MoveModelRequest(Message):
    """Where a model goes."""

    destination_workspace_id: int = 0


class ModelResponse(Message):
    """One model."""

    model: Model


class GetModelsResponse(Message):
    """A page of models."""

    models: list[Model]
    pagination: Pagination


class GetModelLabelsResponse(Message):
    """Labels of models, the most used first."""

    labels: list[str]


class PostModelVersionRequest(Message):
    """A checkpoint to register; it must be COMPLETED."""

    checkpoint_uuid: str = ""
    name: Name = ""
    comment: str = ""
    notes: str = ""
    labels: list[Name] = []
    metadata: Document = {}


class PatchModelVersion(Message):
    """What to change; what is absent stays."""

    name: Name | None = None
    comment: str | None = None
    notes: str | None = None
    labels: list[Name] | None = None
    metadata: Document | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class ModelVersionResponse(Message):
    """One version."""

    model_version: ModelVersion


class GetModelVersionsResponse(Message):
    """A page of a model's versions."""

    model: Model
    model_versions: list[ModelVersion]
    pagination: Pagination


class TrialSourceKind(str, Enum):
    """What a trial used a checkpoint for."""

    UNSPECIFIED = "TRIAL_SOURCE_INFO_TYPE_UNSPECIFIED"
    INFERENCE = "TRIAL_SOURCE_INFO_TYPE_INFERENCE"
    FINE_TUNING = "TRIAL_SOURCE_INFO_TYPE_FINE_TUNING"


class TrialSourceInfo(Message):
    """That a trial used a checkpoint, of a registered version where those two are given."""

    trial_id: int = 0
    checkpoint_uuid: str = ""
    trial_source_info_type: TrialSourceKind = TrialSourceKind.UNSPECIFIED
    model_id: int | None = None
    model_version: int | None = None


class MetricsReport(Message):
    """One report of metrics; ``metrics`` has ``avg_metrics`` (``validation_metrics`` of validations)."""

    id: int
    trial_id: int
    trial_run_id: int
    group: str
    total_batches: int
    end_time: str
    metrics: Document
    archived: bool = False


class MetricsResponse(Message):
    """All reports that were asked for."""

    metrics: list[MetricsReport]
