"""Runs: trials as a table over many experiments shows them, and what is done to many of them at once."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import AfterValidator

from tenax.master.api.experiments.messages import State
from tenax.wire.message import Document, Int64, Message, Pagination, Timestamp

#: -1 is any project, as no number is.
_ProjectOrAny = Annotated[int | None, AfterValidator(lambda number: None if number == -1 else number)]


class SearchRunsRequest(Message):
    """Which runs; ``filter`` is JSON, ``query`` a filter as people type it, ``sort`` is ``column=asc,other=desc``."""

    project_id: _ProjectOrAny = None
    offset: int = 0
    limit: int = 0
    sort: str | None = None
    filter: str | None = None
    query: str | None = None
    #: Of trials only the metrics of these columns (``validation.loss.last``), and no validations; None: all. They
    #: may be thousands.
    metrics: list[str] | None = None


class FlatRunExperiment(Message):
    """The experiment of a run."""

    id: int
    name: str
    description: str
    searcher_type: str
    searcher_metric: str
    resource_pool: str
    progress: float
    is_multitrial: bool
    unmanaged: bool
    forked_from: int | None = None
    external_experiment_id: str | None = None
    #: ``integrations.pachyderm`` of the configuration.
    pachyderm_integration: Document | None = None


class FlatRun(Message):
    """A run and its experiment."""

    id: int
    #: ``KEY-n``.
    local_id: str | None = None
    state: State
    start_time: Timestamp
    end_time: Timestamp | None = None
    #: Seconds.
    duration: int | None = None
    #: Seconds in which it ran: without waiting for slots and images, and without pauses.
    running_seconds: float = 0.0
    hyperparameters: Document = {}
    summary_metrics: Document | None = None
    searcher_metric_value: float | None = None
    metadata: Document | None = None
    labels: list[str] = []
    checkpoint_size: Int64
    checkpoint_count: int
    archived: bool
    parent_archived: bool
    project_id: int
    project_name: str
    workspace_id: int
    workspace_name: str
    user_id: int
    username: str = ""
    external_run_id: str | None = None
    log_policy_matched: str | None = None
    experiment: FlatRunExperiment


class SearchRunsResponse(Message):
    """A page of runs."""

    runs: list[FlatRun]
    pagination: Pagination


class RunsRequest(Message):
    """Some runs, by id or by a filter; of one project where that is said."""

    run_ids: list[int] = []
    project_id: _ProjectOrAny = None
    filter: str | None = None


class MoveRunsRequest(Message):
    """Runs that are to go to another project."""

    run_ids: list[int] = []
    source_project_id: Annotated[int, AfterValidator(lambda number: max(number, 0))] = 0
    destination_project_id: int = 0
    filter: str | None = None
    skip_multitrial: bool = False


class RunActionResult(Message):
    """What became of one run; no error: it is done."""

    id: int
    error: str = ""


class RunsResponse(Message):
    """What became of each run."""

    results: list[RunActionResult]


class RunMetadata(Message):
    """What someone wrote about a run."""

    metadata: Document = {}


class MetadataValuesResponse(Message):
    """Texts under one key of metadata, sorted."""

    values: list[str]


class ColumnType(str, Enum):
    """What a column holds."""

    UNSPECIFIED = "COLUMN_TYPE_UNSPECIFIED"
    TEXT = "COLUMN_TYPE_TEXT"
    NUMBER = "COLUMN_TYPE_NUMBER"
    DATE = "COLUMN_TYPE_DATE"
    ARRAY = "COLUMN_TYPE_ARRAY"


class LocationType(str, Enum):
    """Where a column stands."""

    UNSPECIFIED = "LOCATION_TYPE_UNSPECIFIED"
    EXPERIMENT = "LOCATION_TYPE_EXPERIMENT"
    HYPERPARAMETERS = "LOCATION_TYPE_HYPERPARAMETERS"
    VALIDATIONS = "LOCATION_TYPE_VALIDATIONS"
    TRAINING = "LOCATION_TYPE_TRAINING"
    CUSTOM_METRIC = "LOCATION_TYPE_CUSTOM_METRIC"
    RUN = "LOCATION_TYPE_RUN"
    RUN_HYPERPARAMETERS = "LOCATION_TYPE_RUN_HYPERPARAMETERS"
    RUN_METADATA = "LOCATION_TYPE_RUN_METADATA"


class TableType(str, Enum):
    """Which list the columns are of."""

    UNSPECIFIED = "TABLE_TYPE_UNSPECIFIED"
    EXPERIMENT = "TABLE_TYPE_EXPERIMENT"
    RUN = "TABLE_TYPE_RUN"


class ProjectColumn(Message):
    """A column that a list of a project may show, filter and order by."""

    column: str
    location: LocationType
    type: ColumnType
    display_name: str = ""


class ProjectColumnsResponse(Message):
    """All columns of a project's list."""

    columns: list[ProjectColumn]


class MetricsRange(Message):
    """The least and the greatest last value of a metric over a project's runs."""

    metrics_name: str
    min: float
    max: float


class MetricsRangesResponse(Message):
    """Ranges of a project's metrics."""

    ranges: list[MetricsRange]
