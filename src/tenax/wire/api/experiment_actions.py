"""What is done to experiments beside making them: one by one, or many of a project at once."""

from __future__ import annotations

from pydantic import Field

from tenax.wire.api.experiments import State
from tenax.wire.api.message import Message


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
