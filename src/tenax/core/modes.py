"""The words of choice of the Core API, under the names that Determined's users know.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import enum


class PreemptMode(enum.Enum):
    """Who asks whether to stop."""

    #: All ranks call ``should_preempt`` in step; the chief asks the master and tells the others: all stop together.
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    #: Only the chief may call it; telling the others is the script's affair.
    ChiefOnly = "CHIEF_ONLY"
    #: Each rank asks the master for itself, and they may see the signal at different calls.
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class DownloadMode(enum.Enum):
    """How ranks on one machine get a checkpoint."""

    #: The local chief downloads, the others wait for it: all ranks call in step.
    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    #: Each rank downloads for itself.
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class TensorboardMode(enum.Enum):
    """What becomes of TensorBoard files."""

    #: Reported metrics are also written as scalars.
    AUTO = "AUTO"
    #: Only what the script uploads.
    MANUAL = "MANUAL"


class EarlyExitReason(enum.Enum):
    """Why a script ends before its time."""

    INVALID_HP = "EXITED_REASON_INVALID_HP"


class InvalidHP(Exception):
    """Raise it inside ``with core.init()``: these hyperparameters cannot be trained, the search draws others."""

    def __init__(self, msg: str = "The hyperparameters cannot be trained.") -> None:
        super().__init__(msg)
