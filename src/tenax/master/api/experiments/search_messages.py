"""Messages about an experiment's search, which Determined's API does not have, and about unmanaged trials."""

from __future__ import annotations

from tenax.master.api.experiments.messages import Experiment
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


class SearchExperimentsRequest(Message):
    """What is looked for: JSON of a filter, and ``column=asc,other=desc``."""

    project_id: int | None = None
    offset: int = 0
    limit: int = 0
    sort: str | None = None
    filter: str | None = None


class FoundExperiment(Message):
    """An experiment, and the trial with its best validation."""

    experiment: Experiment
    best_trial: Trial | None = None


class SearchExperimentsResponse(Message):
    """A page of what was found."""

    experiments: list[FoundExperiment]
    pagination: Pagination
