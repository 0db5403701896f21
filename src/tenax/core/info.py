"""Where this task runs, and as what: the info files under ``$DET_RUN_DIR/info``. Standard library only, Python 3.9.

``cluster.json``, ``trial.json``, ``rendezvous.json`` and ``resources.json`` are written by ``tenax.exec`` before the
user's code starts. A task without them that has the ``DET_*`` variables (a command, a shell) is described by those.
"""

from __future__ import annotations

import os

from tenax.client.connection import fast_json
from tenax.errors import NotNow
from tenax.wire.task_names import RUN_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, TypeVar

    from tenax.jsonvalue import Json, JsonObject

    T = TypeVar("T")

#: Without all of these a process is not on a cluster.
REQUIRED = (
    "DET_MASTER",
    "DET_CLUSTER_ID",
    "DET_AGENT_ID",
    "DET_SLOT_IDS",
    "DET_TASK_ID",
    "DET_ALLOCATION_ID",
    "DET_SESSION_TOKEN",
    "DET_TASK_TYPE",
)


class TrialInfo:
    """The trial that this task trains."""

    def __init__(self, document: JsonObject) -> None:
        #: Number of the trial; stays the same over restarts and resumes.
        self.trial_id: int = _integer(document["trial_id"])
        self.experiment_id: int = _integer(document["experiment_id"])
        #: Seed for everything random in this trial.
        self.trial_seed: int = _integer(document["trial_seed"])
        #: The hyperparameters that the search chose.
        self.hparams: JsonObject = _object(document["hparams"])
        self._config: JsonObject = _object(document["config"])
        self._steps_completed: int = _integer(document["steps_completed"])
        self._trial_run_id: int = _integer(document["trial_run_id"])
        self._debug: bool = bool(document.get("debug"))
        interface = document.get("inter_node_network_interface")
        self._inter_node_network_interface: Optional[str] = interface if isinstance(interface, str) else None


class ClusterInfo:
    """What the cluster says about this task. For information, and for launchers: training code that depends on it
    does not run off the cluster."""

    def __init__(
        self,
        cluster: JsonObject,
        trial: Optional[JsonObject] = None,
        rendezvous: Optional[JsonObject] = None,
        resources: Optional[JsonObject] = None,
    ) -> None:
        #: ``http[s]://host:port``.
        self.master_url: str = str(cluster["master_url"])
        self.cluster_id: str = str(cluster["cluster_id"])
        self.agent_id: str = str(cluster["agent_id"])
        #: Numbers of the devices of this container on its agent; empty for a task without slots.
        self.slot_ids: list[int] = [_integer(slot) for slot in _list(cluster["slot_ids"])]
        self.task_id: str = str(cluster["task_id"])
        self.allocation_id: str = str(cluster["allocation_id"])
        #: The credential of this allocation: do not print it.
        self.session_token: str = str(cluster["session_token"])
        #: TRIAL, NOTEBOOK, SHELL, COMMAND, TENSORBOARD, CHECKPOINT_GC or GENERIC.
        self.task_type: str = str(cluster["task_type"])
        #: The name that the master's certificate bears, and a PEM file to trust or ``noverify``; None without TLS.
        self.master_cert_name: Optional[str] = _text(cluster.get("master_cert_name"))
        self.master_cert_file: Optional[str] = _text(cluster.get("master_cert_file"))
        self._latest_checkpoint = _text(cluster.get("latest_checkpoint"))
        self._trial = TrialInfo(trial) if trial is not None else None
        self._rendezvous = rendezvous
        self._resources = resources

    @property
    def trial(self) -> TrialInfo:
        """The trial. Raises NotNow in a task that is none."""
        if self._trial is None:
            raise NotNow(f"this task is a {self.task_type}, not a trial: it has no trial info")
        return self._trial

    @property
    def is_trial(self) -> bool:
        return self._trial is not None

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The checkpoint to go on from (after a pause, a restart, or as a warm start); None: begin anew."""
        return self._latest_checkpoint

    @property
    def user_data(self) -> JsonObject:
        """The ``data`` section of the experiment's configuration."""
        data = self.trial._config.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def container_addrs(self) -> list[str]:
        """Addresses of all containers of this task, in the order of their rank; the first is the chief's."""
        return [str(address) for address in _list(self._met("container_addrs"))]

    @property
    def container_rank(self) -> int:
        return _integer(self._met("container_rank"))

    @property
    def container_slot_counts(self) -> list[int]:
        """Number of slots of each container, in the order of their rank."""
        return [_integer(count) for count in _list(self._met("container_slot_counts"))]

    @property
    def gpu_uuids(self) -> list[str]:
        """UUIDs of the GPUs of this container, where the agent gave devices by UUID."""
        return [str(uuid) for uuid in _list((self._resources or {}).get("gpu_uuids", []))]

    def _met(self, name: str) -> Json:
        if self._rendezvous is None:
            raise NotNow(f"this {self.task_type} task has no rendezvous info: only trials meet their other containers")
        return self._rendezvous[name]


def get_cluster_info() -> Optional[ClusterInfo]:
    """What the cluster says about this task; None off the cluster. Read once per process."""
    global _read, _info
    if not _read:
        _info = read_cluster_info(run_dir())
        _read = True
    return _info


_read = False
_info: Optional[ClusterInfo] = None


def run_dir() -> str:
    """The directory that the agent made for this container."""
    return os.environ.get("DET_RUN_DIR") or RUN_DIRECTORY


def read_cluster_info(directory: str) -> Optional[ClusterInfo]:
    """From the info files under ``directory``, else from the environment; None: not on a cluster."""
    cluster = _read_file(directory, "cluster")
    if cluster is None:
        cluster = cluster_from_environment(os.environ.get)
    if cluster is None:
        return None
    return ClusterInfo(
        cluster, _read_file(directory, "trial"), _read_file(directory, "rendezvous"), _read_file(directory, "resources")
    )


def cluster_from_environment(get: Callable[[str], Optional[str]]) -> Optional[JsonObject]:
    """The content of ``cluster.json``; None where a required variable is missing."""
    if any(get(name) is None for name in REQUIRED):
        return None
    return {
        "master_url": get("DET_MASTER"),
        "cluster_id": get("DET_CLUSTER_ID"),
        "agent_id": get("DET_AGENT_ID"),
        "slot_ids": fast_json.loads(get("DET_SLOT_IDS") or "[]"),
        "task_id": get("DET_TASK_ID"),
        "allocation_id": get("DET_ALLOCATION_ID"),
        "session_token": get("DET_SESSION_TOKEN"),
        "task_type": get("DET_TASK_TYPE"),
        "master_cert_name": get("DET_MASTER_CERT_NAME"),
        "master_cert_file": get("DET_MASTER_CERT_FILE"),
        "latest_checkpoint": get("DET_LATEST_CHECKPOINT"),
    }


def _read_file(directory: str, name: str) -> Optional[JsonObject]:
    try:
        with open(os.path.join(directory, "info", name + ".json"), encoding="utf-8") as file:
            return _object(fast_json.loads(file.read()))
    except FileNotFoundError:
        return None


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object in an info file, found {value!r}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list in an info file, found {value!r}")
    return value


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"expected a number in an info file, found {value!r}")
    return int(value)


def _text(value: Json) -> Optional[str]:
    return value if isinstance(value, str) and value else None
