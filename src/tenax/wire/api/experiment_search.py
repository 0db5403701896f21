"""Searching experiments."""

from __future__ import annotations

from tenax.wire.api.experiments import Experiment
from tenax.wire.api.message import Message, Pagination
from tenax.wire.api.trials import Trial


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
