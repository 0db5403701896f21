"""What a run in detached mode knows of its trial at a cluster, and asks it. Standard library only, Python 3.9.

It is no reason to stop a training that a master cannot be asked: that is said on standard error.
"""

from __future__ import annotations

import threading
import zlib

from tenax.core.info import ClusterInfo
from tenax.core.local_runs.files import LocalRun
from tenax.core.spool import say
from tenax.errors import InvalidInput, NotFound, TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from tenax.client.connection.session import Session
    from tenax.jsonvalue import Json, JsonObject


class TrialAtCluster:
    """``run``: the chief's; ``key``: its trial's; ``sent``: as its ``sent.json``; ``about``: hyperparameters and what
    the script says of the experiment; ``open_session``: to ask the cluster, None where nobody does. Thread-safe."""

    def __init__(
        self,
        run: LocalRun,
        key: str,
        sent: JsonObject,
        about: tuple[JsonObject, JsonObject],
        open_session: Optional[Callable[[], Session]],
    ) -> None:
        self.run = run
        #: Where to go on.
        self.checkpoint: Optional[str] = None
        self._key = key
        self._sent = sent
        self._hparams, self._config = about
        self._open = open_session
        self._session: Optional[Session] = None
        self._lock = threading.Lock()

    def info(self) -> ClusterInfo:
        """In the shape that it has on a cluster; numbers are 0 until a cluster has it."""
        if not self._sent.get("runId"):
            self._sent = self.run.sent
        sent = self._sent
        cluster: JsonObject = {
            "master_url": sent.get("master") or "",
            "cluster_id": sent.get("clusterId") or "",
            "agent_id": "unmanaged",
            "slot_ids": [],
            "task_id": "",
            "allocation_id": "",
            "session_token": "",
            "task_type": "TRIAL",
            "latest_checkpoint": self.checkpoint,
        }
        trial: JsonObject = {
            "trial_id": sent.get("trialId") or 0,
            "experiment_id": sent.get("experimentId") or 0,
            "trial_run_id": sent.get("runId") or 0,
            "steps_completed": sent.get("stepsCompleted") or 0,
            #: Of one trial the same in each of its runs.
            "trial_seed": zlib.crc32(self._key.encode()) >> 1,
            "hparams": self._hparams,
            "config": self._config,
        }
        met: JsonObject = {"container_addrs": ["127.0.0.1"], "container_rank": 0, "container_slot_counts": [0]}
        return ClusterInfo(cluster, trial, met)

    def call(self, method: str, path: str, body: Optional[JsonObject] = None) -> Json:
        """The master's answer; None: none is there. ``path``: with ``{trial}`` or ``{experiment}``.

        Raises NotFound, InvalidInput.
        """
        trial = self.info().trial
        if self._open is None or not trial.trial_id:
            return None
        try:
            with self._lock:
                self._session = self._session or self._open()
                return self._session.call(
                    method, path.format(trial=trial.trial_id, experiment=trial.experiment_id), body=body
                )
        except (InvalidInput, NotFound):
            raise
        except TenaxError as error:
            say(f"the cluster was not asked: {error}")
            return None

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None
