"""The spool: everything a task says to the master, written to a file first. Standard library only, Python 3.9.

Each process of a task that speaks owns one append-only file ``$DET_RUN_DIR/spool/<stream>.jsonl``; ``<stream>`` is
``<boot id's first 8>-<pid>-<start time in ticks>`` (a further one of the same process ends in ``-2``), so no two
processes share one. A line is one JSON object::

    {"n": 1, "kind": "metrics", "at": 1790000000.25, "body": {...}}

Under an agent that reads it, the same stands in a file ``<stream>.records`` (`tenax.wire.spool_records`), which whoever
ships it makes into such lines.

``n`` counts from 1 without gaps inside a stream. A last line without newline was torn by a crash and does not count.
The process ships its lines in the background; beside the file stands ``<stream>.ack``, replaced atomically, with
``{"n": 7, "offset": 1234}``: the last acknowledged line and the byte after it. After the end of the container the agent
ships what is left; only then does the container count as exited.

Shipping: ``POST /api/v1/allocations/{allocation_id}/spool?container_id=..&stream=..`` with the allocation token; the
body is whole lines as they stand in the file, in order. Answer (200):
``{"acked": n, "refused": [{"n", "message", "fatal"}]}``: all lines up to ``acked`` are stored, already stored, or
refused for good; a refused one is never sent again.
No lines at all is a question: how far it is. An answer below what was acknowledged before tells of a database that was
restored from a copy: the sender goes back to it.
503 with ``Retry-After``: ours, send again. The run is that of the token, never of the body.

What runs by hand has no allocation. It is shipped with its user's login, in the same way:
``POST /api/v1/trials/{trial_id}/runs/{run_id}/spool?stream=..``; the trial is an unmanaged one, and may have ended.

Kinds and bodies (numbers: NaN and infinities as the strings "NaN", "Infinity", "-Infinity"):

========================  ======================================================================================
``run_start``             {"checkpointStorage": {...} or null}: the run has begun (idempotent). A run by hand adds
                          {"hparams": {...}}: what it trains with
``metrics``               {"group", "stepsCompleted": int or null, "metrics": {...}, "batchMetrics": [...] or null,
                          "reportTime": RFC 3339 or null}
``progress``              {"progress": 0..1}
``runner_state``          {"state": text}
``checkpoint_started``    {"uuid", "storage": {...}}: files are about to be written under this id
``checkpoint_abandoned``  {"uuid"}: they were thrown away again
``checkpoint``            {"uuid", "stepsCompleted", "metadata": {...}, "resources": {path: bytes}, "storage": {...},
                          "state": "COMPLETED"}
``checkpoint_files``      {"uuid", "resources": {path: bytes}}: what is left after a (partial) delete
``ack_preemption``        {}
``early_exit``            {"reason": "EXITED_REASON_INVALID_HP"}
``hang``                  {"sentence", "ends": bool}: ranks stand still, as the sentence says (empty: no longer).
                          ``ends``: they are ended for it, and the sentence is the reason
========================  ======================================================================================
"""

from __future__ import annotations

from typing import List, TypedDict

from tenax.jsonvalue import JsonObject
from tenax.wire.spool_names import (
    ACK_PREEMPTION,
    BATCH_BYTES,
    CHECKPOINT,
    CHECKPOINT_ABANDONED,
    CHECKPOINT_FILES,
    CHECKPOINT_STARTED,
    EARLY_EXIT,
    HANG,
    KINDS,
    MAX_LINE_BYTES,
    METRICS,
    PROGRESS,
    RUN_START,
    RUNNER_STATE,
    ack_path,
    stream_name,
)

__all__ = [
    "ACK_PREEMPTION",
    "BATCH_BYTES",
    "CHECKPOINT",
    "CHECKPOINT_ABANDONED",
    "CHECKPOINT_FILES",
    "CHECKPOINT_STARTED",
    "EARLY_EXIT",
    "HANG",
    "KINDS",
    "MAX_LINE_BYTES",
    "METRICS",
    "PROGRESS",
    "RUNNER_STATE",
    "RUN_START",
    "Ack",
    "Record",
    "Refusal",
    "SpoolReply",
    "ack_path",
    "stream_name",
]


class Record(TypedDict):
    """One line."""

    n: int
    kind: str
    at: float
    body: JsonObject


class Refusal(TypedDict):
    """A line that the master will never store, and why; ``fatal``: the task should end."""

    n: int
    message: str
    fatal: bool


class SpoolReply(TypedDict):
    acked: int
    refused: List[Refusal]


class Ack(TypedDict):
    """Content of ``<stream>.ack``."""

    n: int
    offset: int
