"""Messages about experiments: submitted, listed, edited, acted on alone or in bulk; their labels and code."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tenax.config.schema.durations import MAX_TIME_LIMIT_S
from tenax.config.schema.resources import MAX_WEIGHT
from tenax.master.api.http.requests import MAX_NAME
from tenax.master.store.experiments.columns import EXPERIMENTS
from tenax.scheduler.outlook import Sureness
from tenax.scheduler.reasons import WaitClass
from tenax.wire.message import Document, Int64, Message, Name, Pagination, Timestamp


class State(str, Enum):
    """Of experiments and trials. An ACTIVE one is shown by what its attempts do: QUEUED, PULLING, STARTING, RUNNING."""

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    DELETING = "STATE_DELETING"
    DELETE_FAILED = "STATE_DELETE_FAILED"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"


class JobState(str, Enum):
    """Whether a job has any slots."""

    UNSPECIFIED = "STATE_UNSPECIFIED"
    QUEUED = "STATE_QUEUED"
    SCHEDULED = "STATE_SCHEDULED"
    SCHEDULED_BACKFILLED = "STATE_SCHEDULED_BACKFILLED"


class Experiment(Message):
    """An experiment as it is now."""

    id: int
    job_id: str
    name: str
    display_name: str = ""
    description: str = ""
    notes: str = ""
    #: Another one for other notes: the live stream says it in their place.
    notes_digest: str = ""
    labels: list[str] = []
    state: State
    #: In words: why it waits, or how it ended.
    reason: str = ""
    archived: bool = False
    unmanaged: bool = False
    start_time: Timestamp
    end_time: Timestamp | None = None
    #: Seconds.
    duration: int = 0
    #: Seconds of it in which at least one of its trials ran.
    running_seconds: float = 0.0
    config: Document = {}
    original_config: str = ""
    searcher_type: str = ""
    searcher_metric: str = ""
    #: Its search may go on after its end; others stop trials early, and what they stopped stays so.
    continuable: bool = False
    hyperparameters: Document = {}
    resource_pool: str = ""
    #: 0 to 1.
    progress: float = 0.0
    num_trials: int = 0
    trial_ids: list[int] = []
    best_trial_id: int | None = None
    best_trial_searcher_metric: float | None = None
    checkpoint_count: int = 0
    checkpoint_size: Int64 = 0
    model_definition_size: int = 0
    forked_from: int | None = None
    parent_archived: bool = False
    user_id: int
    username: str
    project_id: int
    project_name: str = ""
    project_owner_id: int = 0
    workspace_id: int = 0
    workspace_name: str = ""
    external_experiment_id: str | None = None
    external_trial_id: str | None = None
    #: ``integrations.pachyderm`` of the configuration.
    pachyderm_integration: Document | None = None


class ContinueExperimentRequest(Message):
    """An experiment that has ended, to go on."""

    id: int
    #: YAML text, laid over its configuration.
    override_config: str = ""


class StartForecast(Message):
    """What the next pass over its pool would do with the first trials of an experiment."""

    trials: int
    #: So many of them would start at once.
    starting: int
    #: Running requests of others that would be asked to save and leave for it.
    leaving: int = 0
    #: Why the first of those that do not start would wait; empty: all start.
    reason: str = ""
    #: What has to happen before that one starts.
    wait_class: WaitClass | None = None
    #: When that one is likely to start, and how sure that is; none where nobody can say.
    likely_start: Timestamp | None = None
    sureness: Sureness | None = None


class CreateExperimentResponse(Message):
    """What was made, or would have been."""

    experiment: Experiment
    config: Document
    warnings: list[str] = []
    #: In words: old spellings that were translated, settings without effect, a priority that quotas lowered.
    notices: list[str] = []
    #: Of what is only validated, unless the queue is too long to say.
    forecast: StartForecast | None = None


class ContinueExperimentResponse(Message):
    """The experiment as it is now."""

    experiment: Experiment
    warnings: list[str] = []
    #: In words, as beside one that is made.
    notices: list[str] = []


class JobSummary(Message):
    """Where its job stands in the queue."""

    state: JobState
    jobs_ahead: int = 0


class GetExperimentResponse(Message):
    """One experiment."""

    experiment: Experiment
    config: Document
    job_summary: JobSummary | None = None


class GetExperimentsResponse(Message):
    """A page of experiments."""

    experiments: list[Experiment]
    pagination: Pagination


class PatchResources(Message):
    """Its share of the cluster; ``maxSlots`` and ``timeLimit`` null: no limit."""

    max_slots: int | None = Field(None, ge=0, le=2**31 - 1)
    #: Seconds for each of its runs; a shorter one than before counts for those that go on, too.
    time_limit: float | None = Field(None, ge=1, le=MAX_TIME_LIMIT_S, allow_inf_nan=False, strict=True)
    weight: float | None = Field(None, gt=0, le=MAX_WEIGHT, allow_inf_nan=False)
    priority: int | None = Field(None, ge=1, le=99)
    #: Take the limit of its slots away.
    unlimited: bool = False
    #: Take the limit of its runs' time away.
    without_time_limit: bool = False

    @model_validator(mode="before")
    @classmethod
    def _null_is_no_limit(cls, given: object) -> object:
        # Everywhere else null says nothing; here it is the only way to say so.
        if not isinstance(given, dict):
            return given
        null = {name for name, value in given.items() if value is None}
        took = {"unlimited": null & {"maxSlots", "max_slots"}, "withoutTimeLimit": null & {"timeLimit", "time_limit"}}
        return {**given, **{name: True for name, which in took.items() if which}}


class PatchCheckpointStorage(Message):
    """Which checkpoints are kept."""

    save_experiment_best: int | None = Field(None, ge=0, le=2**31 - 1)
    save_trial_best: int | None = Field(None, ge=0, le=2**31 - 1)
    save_trial_latest: int | None = Field(None, ge=0, le=2**31 - 1)


class PatchSearcherMetric(Message):
    """What ranks the trials of an unmanaged experiment."""

    metric: Annotated[Name, Field(min_length=1, max_length=MAX_NAME)]
    smaller_is_better: bool = True


class PatchExperiment(Message):
    """What may be edited later; what is absent stays."""

    name: Name | None = None
    description: str | None = None
    notes: str | None = None
    labels: list[Name] | None = None
    resources: PatchResources | None = None
    checkpoint_storage: PatchCheckpointStorage | None = None
    searcher: PatchSearcherMetric | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class PatchExperimentResponse(Message):
    """The experiment as it is now."""

    experiment: Experiment


class GetModelDefResponse(Message):
    """The code of an experiment, as a gzip-compressed tar archive in base64."""

    b64_tgz: str


class BestMetricResponse(Message):
    """The best value of the searcher's metric so far."""

    metric: float


class SearchUnit(Message):
    """What a length counts."""

    name: str = ""
    value: int = 0
    max_length: bool = False


class TrialSummary(Message):
    """So many trials train that long."""

    count: int
    unit: SearchUnit


class SearchSummary(Message):
    """What a search will do, as far as it is known before it runs."""

    config: Document
    trials: list[TrialSummary]


class PreviewRequest(Message):
    """A configuration to look ahead with."""

    config: Document = {}
    seed: int = 0


class PreviewResponse(Message):
    """What the search would do."""

    summary: SearchSummary


class GetConfigSchemaResponse(Message):
    """What the configuration of an experiment may hold, as JSON Schema of draft 2020-12, for editors."""

    json_schema: Document


def experiment_orders() -> list[str]:
    """What a list of experiments may be ordered by: its columns say so."""
    return ["SORT_BY_UNSPECIFIED", *(f"SORT_BY_{name.upper()}" for name in EXPERIMENTS.orders)]


def experiment_order(sort_by: str) -> str:
    """`Column.sort_by` of an order; unspecified: by id."""
    return "id" if sort_by == "SORT_BY_UNSPECIFIED" else sort_by.removeprefix("SORT_BY_").lower()


def _is_order(value: str) -> str:
    if value not in experiment_orders():
        raise ValueError(f"{value[:40]!r} is none of {', '.join(experiment_orders())}")
    return value


#: What a list of experiments is ordered by.
ExperimentSortBy = Annotated[
    str, AfterValidator(_is_order), WithJsonSchema({"type": "string", "enum": experiment_orders()})
]


class LabelsResponse(Message):
    """Labels of one experiment, or of all, the most used first."""

    labels: list[str]


class MoveExperimentRequest(Message):
    """Where it is to be filed."""

    experiment_id: int = 0
    destination_project_id: int


class RetainLogsRequest(Message):
    """How many days output is kept after the end; -1: for ever."""

    experiment_id: int = 0
    num_days: int = Field(ge=-1, le=32767)


class BulkFilters(Message):
    """Experiments by what they are instead of by number. What is absent does not matter."""

    name: str | None = None
    description: str | None = None
    #: All of them.
    labels: list[str] = []
    archived: bool | None = None
    states: list[State] = []
    user_ids: list[int] = []
    project_id: int | None = None
    excluded_experiment_ids: list[int] = []
    #: A filter as people type it.
    query: str | None = None


class BulkRequest(Message):
    """Experiments by number, or by ``filters``; with ``projectId`` only those of that project."""

    experiment_ids: list[int] = Field([], max_length=100_000)
    filters: BulkFilters | None = None
    project_id: int | None = None


class BulkMoveRequest(BulkRequest):
    """Where they are to be filed."""

    destination_project_id: int


class BulkRetainLogsRequest(BulkRequest):
    """How many days their output is kept after the end; -1: for ever."""

    num_days: int = Field(ge=-1, le=32767)


class BulkResult(Message):
    """What became of one of them."""

    id: int
    #: Why not; empty where it was done.
    error: str = ""


class BulkResponse(Message):
    """What became of each, in the order of their numbers."""

    results: list[BulkResult]


class FileNode(Message):
    """A file, or a directory with what is in it."""

    path: str
    name: str
    modified_time: Timestamp | None = None
    #: Bytes.
    content_length: int = 0
    is_dir: bool = False
    content_type: str = ""
    files: list[FileNode] = []


class GetModelDefTreeResponse(Message):
    """The code of an experiment."""

    files: list[FileNode]


class GetModelDefFileRequest(Message):
    """Which file."""

    experiment_id: int = 0
    #: Relative to the code's directory.
    path: str = ""


class GetModelDefFileResponse(Message):
    """A file in base64."""

    file: str


class PutExperimentResponse(Message):
    """The experiment of that name, made now or before."""

    experiment: Experiment
    config: Document
