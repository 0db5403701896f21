"""Names and limits of the spool, which every task loads at its start: no import here may cost anything.

What they mean stands in ``tenax.wire.spool``, which gives them on. Standard library only, Python 3.9.
"""

from __future__ import annotations

#: True for type checkers only: at run time `typing` costs a task 7 ms of its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

#: Longest line that the master takes, in bytes: less than any body that it holds (`master.api.http.held_bodies`).
MAX_LINE_BYTES = 31 * 1024 * 1024
#: Most bytes that a client puts in one POST, unless one line alone is longer.
BATCH_BYTES = 1024 * 1024

#: The file with the metadata, inside every checkpoint: beside those of its task, and not one of them.
METADATA_FILE = "metadata.json"
#: The file with size and digest of each of the others, by which they are verified when they are read: not one either.
MANIFEST_FILE = ".tenax-manifest.json"

METRICS = "metrics"
PROGRESS = "progress"
RUNNER_STATE = "runner_state"
RUN_START = "run_start"
CHECKPOINT_STARTED = "checkpoint_started"
CHECKPOINT_ABANDONED = "checkpoint_abandoned"
CHECKPOINT = "checkpoint"
CHECKPOINT_FILES = "checkpoint_files"
ACK_PREEMPTION = "ack_preemption"
EARLY_EXIT = "early_exit"
HANG = "hang"
KINDS = (
    RUN_START,
    METRICS,
    PROGRESS,
    RUNNER_STATE,
    CHECKPOINT_STARTED,
    CHECKPOINT_ABANDONED,
    CHECKPOINT,
    CHECKPOINT_FILES,
    ACK_PREEMPTION,
    EARLY_EXIT,
    HANG,
)


#: Of the file of a stream: of lines, or of records (`tenax.wire.spool_records`).
LINES_SUFFIX, SEGMENT_SUFFIX = ".jsonl", ".records"


def ack_path(stream_path: str) -> str:
    """``x.jsonl`` or ``x.records`` -> ``x.ack``."""
    for suffix in (LINES_SUFFIX, SEGMENT_SUFFIX):
        if stream_path.endswith(suffix):
            return stream_path[: -len(suffix)] + ".ack"
    return stream_path + ".ack"


def stream_name(boot_id: str, pid: int, start_ticks: Optional[int]) -> str:
    """The name of a process's stream; unique across reboots and recycled pids."""
    return f"{boot_id[:8]}-{pid}-{start_ticks or 0}"
