"""How long output is kept."""

from __future__ import annotations

from tenax.wire.message import Int64, Message


class TrialRetentionRequest(Message):
    """Days after the end of a trial; -1: for ever."""

    num_days: int


class CleanupLogsResponse(Message):
    """How many lines were removed."""

    removed_count: Int64


class RemainingDaysResponse(Message):
    """Days for which the output is still kept; -1: for ever. Of a trial that runs, those after its end."""

    remaining_days: int
