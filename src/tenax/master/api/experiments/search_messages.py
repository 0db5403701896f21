"""Messages about an experiment's search, which Determined's API does not have, and about unmanaged trials."""

from __future__ import annotations

from pydantic import Field

from tenax.master.api.experiments.messages import Experiment, State
from tenax.master.api.trials.messages import Trial
from tenax.wire.message import Document, Int64, Message, Pagination, Timestamp


class JournalEntry(Message):
    """One fact or decision of a search."""

    seq: int
    at: Timestamp
    entry: Document


class Rung(Message):
    """What stands on a rung of a bracket; the bottom one is number 0."""

    bracket: int
    rung: int
    #: Where it lies, in units of the time metric.
    units: Int64
    #: Trials that have entered it.
    count: int
    #: Of those whose last rung it is: stopped there by the search, ended (there, or at the top), training on from it.
    stopped: int
    ended: int
    running: int
    #: Trials that this bracket is to have.
    max_trials: int
    best_request_id: str | None = None
    best_metric: float | None = None


class GetSearchResponse(Message):
    """The search of an experiment, as it stands."""

    method: str
    #: What rungs are counted in; empty under methods without rungs.
    time_metric: str = ""
    #: 0 to 1.
    progress: float
    shut_down: bool
    max_trials: int
    created: int
    running: int
    finished: int
    failed: int
    canceled: int
    #: By the search, also those that reached the top rung.
    stopped: int
    #: Trials with invalid hyperparameters whose place another one took.
    replaced: int
    rungs: list[Rung]
    journal: list[JournalEntry]
    #: Of the journal.
    pagination: Pagination


class SearchedTrial(Message):
    """What a trial tried, and what came of it."""

    id: int
    state: State
    #: By their paths with dots, as lists of runs filter by them.
    hparams: Document
    #: The best validation; null: none yet, or none that is a finite number.
    metric: float | None = None


class GetSearchTrialsResponse(Message):
    """The trials of a search, the best first; those without a metric come last."""

    metric: str
    smaller_is_better: bool
    #: How many trials there are; as many as ``limit`` are here.
    total: int
    trials: list[SearchedTrial]


class HyperparameterImportance(Message):
    """How much a hyperparameter decides."""

    name: str
    #: Its share of all: 0 to 1.
    importance: float
    #: Rank correlation with the metric, -1 to 1; null where its values are no numbers.
    correlation: float | None = None


class GetImportanceResponse(Message):
    """What decided, the most important first; the shares sum to 1. Empty: it cannot be said."""

    metric: str
    #: From how many trials it was computed, and from how many at least it is.
    trials: int
    min_trials: int
    hyperparameters: list[HyperparameterImportance]


class SearchExperimentsRequest(Message):
    """What is looked for: JSON of a filter, a filter as people type it (`docs/web.md`), of which both must hold, and
    ``column=asc,other=desc``. With ``omit_config`` experiments come without their configurations, which are most of
    what they are; hyperparameters stay."""

    project_id: int | None = None
    offset: int = 0
    limit: int = 0
    sort: str | None = None
    filter: str | None = None
    query: str | None = None
    omit_config: bool = False
    #: Of trials only the metrics of these columns (``validation.loss.last``), and no validations; None: all. They
    #: may be thousands.
    metrics: list[str] | None = None


class QueryProblem(Message):
    """What is wrong with a filter, and where: from ``start`` to before ``end``, in characters."""

    message: str
    start: int
    end: int


class Completion(Message):
    """What may stand from ``start`` to before ``end`` instead; ``kind``: column, state, person, label, keyword."""

    text: str
    start: int
    end: int
    kind: str


class CheckQueryResponse(Message):
    """Whether a filter can be read: without a problem it can."""

    problem: QueryProblem | None = None
    #: As it was read: a group has ``parts`` and ``any``, what does not hold ``not``, a condition ``values``
    #: (``quoted``: one of them stands in quotes) and, unless it is text by itself, ``column`` and ``operator``.
    #: None: it cannot be read.
    tree: Document | None = None
    completions: list[Completion] = Field(default_factory=list)


class FoundExperiment(Message):
    """An experiment, and the trial with its best validation."""

    experiment: Experiment
    best_trial: Trial | None = None


class SearchExperimentsResponse(Message):
    """A page of what was found."""

    experiments: list[FoundExperiment]
    pagination: Pagination
