"""Which checkpoints of an experiment stay and which go, and why."""

from __future__ import annotations

from tenax.wire.api.checkpoints import Size
from tenax.wire.api.message import Int64, Message, Timestamp


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


class RemovalReport(Message):
    """What a task has done about one removal."""

    uuid: str
    #: What is left: path -> bytes.
    resources: dict[str, Size] = {}
    #: Why it did not work; empty: it did.
    failure: str = ""


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
