"""Checkpoints."""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from tenax.client import checkpoints
from tenax.client.connection import reading
from tenax.client.connection.session import Session, at
from tenax.client.trials import pages
from tenax.errors import NotNow
from tenax.experimental.metrics import TrialMetrics, using
from tenax.experimental.orders import CheckpointOrderBy as CheckpointOrderBy
from tenax.experimental.orders import CheckpointSortBy as CheckpointSortBy
from tenax.experimental.orders import CheckpointState as CheckpointState
from tenax.experimental.orders import DownloadMode as DownloadMode
from tenax.experimental.orders import OrderBy
from tenax.experimental.resource import Resource, WrongUse
from tenax.jsonvalue import JsonObject


@dataclass
class CheckpointTrainingMetadata:
    """The training that a checkpoint comes from."""

    experiment_config: Dict[str, Any]
    experiment_id: int
    trial_id: int
    hparams: Dict[str, Any]
    validation_metrics: Dict[str, Any]


class Checkpoint(Resource[checkpoints.Checkpoint]):
    """One checkpoint."""

    def __repr__(self) -> str:
        trial = f", trial_id={self.training.trial_id}" if self.training is not None else ""
        return f"Checkpoint(uuid={self.uuid}, task_id={self.task_id}{trial})"

    @property
    def uuid(self) -> str:
        return self.now.uuid

    @property
    def task_id(self) -> Optional[str]:
        return reading.text(self._raw, "taskId") or None

    @property
    def allocation_id(self) -> Optional[str]:
        return reading.text(self._raw, "allocationId") or None

    @property
    def report_time(self) -> Optional[str]:
        """As it was sent, in UTC."""
        return reading.text(self._raw, "reportTime") or None

    @property
    def reported(self) -> Optional[datetime.datetime]:
        return self.now.reported

    @property
    def resources(self) -> Dict[str, int]:
        """Bytes by path."""
        return self.now.resources

    @property
    def metadata(self) -> Dict[str, Any]:
        return dict(self.now.metadata)

    @property
    def state(self) -> CheckpointState:
        return CheckpointState(reading.text(self._raw, "state"))

    @property
    def training(self) -> Optional[CheckpointTrainingMetadata]:
        """None for one of a task that is no trial."""
        if not self.now.trial_id:
            return None
        part = reading.record(self._raw, "training")
        return CheckpointTrainingMetadata(
            dict(reading.record(part, "experimentConfig")),
            self.now.experiment_id,
            self.now.trial_id,
            dict(reading.record(part, "hparams")),
            dict(reading.record(part, "validationMetrics")),
        )

    def download(self, path: Optional[str] = None, mode: Union[DownloadMode, str] = DownloadMode.AUTO) -> str:
        """Fetch its files into a directory, ``checkpoints/<uuid>`` unless another is named; where that is.

        Nothing is fetched where a checkpoint lies there already. Raises NotNow for one without files, StorageFailed.
        """
        mode = DownloadMode(mode)
        if self.state not in (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED):
            raise NotNow(
                f"Only COMPLETED or PARTIALLY_DELETED checkpoints can be downloaded; {self.uuid} is {self.state.name}"
            )
        target = Path(path) if path is not None else Path("checkpoints", self.uuid)
        described = target / "metadata.json"
        if not described.exists():
            # Into whatever is there.
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tenax-") as half:
                fetched = self.now.download(Path(half) / "files", mode=mode.value)
                shutil.copytree(fetched, target, symlinks=True, dirs_exist_ok=True)
            if not described.exists():
                self.write_metadata_file(str(described))
        return str(target)

    def write_metadata_file(self, path: str) -> None:
        """Write its metadata into a file, as JSON."""
        Path(path).write_text(json.dumps(self.metadata, indent=2))

    def add_metadata(self, metadata: Dict[str, Any]) -> None:
        """Write more about it; what is there under the same key is replaced."""
        self.now = self.now.add_metadata(metadata)

    def remove_metadata(self, keys: List[str]) -> None:
        """Leave these keys out of what is written about it."""
        self.now = self.now.remove_metadata(keys)

    def delete(self) -> None:
        """Delete its files, a little later."""
        self.now.delete()

    def remove_files(self, globs: Sequence[str]) -> None:
        """Delete the files that match, a little later; none: update its record."""
        self.now.remove_files(globs)

    def get_pachyderm_commit(self) -> str:
        """``integrations.pachyderm.dataset.commit`` of its experiment. Raises WrongUse where there is none."""
        config = self.training.experiment_config if self.training is not None else {}
        pachyderm = reading.record(reading.record(config, "integrations"), "pachyderm")
        commit = reading.text(reading.record(pachyderm, "dataset"), "commit")
        if not commit:
            raise WrongUse(f"the experiment of checkpoint {self.uuid} has no integrations.pachyderm.dataset.commit")
        return commit

    def get_metrics(self, group: Optional[str] = None) -> Iterable[TrialMetrics]:
        """What trials reported that said they use it."""
        return using(self._session, at("/api/v1/checkpoints/{}/metrics", self.uuid), group)


def sorted_checkpoints(
    session: Session,
    path: str,
    sort_by: Union[str, CheckpointSortBy, None],
    order_by: Optional[OrderBy],
    max_results: Optional[int],
) -> List[Checkpoint]:
    """Completed ones of a list, by the searcher's metric unless it is said otherwise. Raises WrongUse."""
    if (sort_by is None) != (order_by is None):
        raise WrongUse("sort_by and order_by go together: give both, or neither")
    sort_by = sort_by or CheckpointSortBy.SEARCHER_METRIC
    if not isinstance(sort_by, (str, CheckpointSortBy)):
        raise WrongUse(f"sort_by takes a CheckpointSortBy or the name of a metric, not {sort_by!r}")
    query = {
        "states": ["STATE_COMPLETED"],
        "orderBy": order_by.value if order_by is not None else None,
        "sortByAttr": sort_by.value if isinstance(sort_by, CheckpointSortBy) else None,
        "sortByMetric": sort_by if isinstance(sort_by, str) else None,
    }
    listed: List[Checkpoint] = []
    for value in pages(session, path, "checkpoints", query, size=max_results or 200):
        listed.append(read_checkpoint(value, session))
        if len(listed) == max_results:
            break
    return listed


def read_checkpoint(value: JsonObject, session: Session) -> Checkpoint:
    """From an answer of the master."""
    return Checkpoint(checkpoints.Checkpoint.read(value, session))


def best_first(metric: Optional[str], smaller_is_better: Optional[bool]) -> Optional[OrderBy]:
    """Which way to sort for the best of a metric; None: by the searcher's. Raises WrongUse."""
    if (metric is None) != (smaller_is_better is None):
        raise WrongUse("sort_by and smaller_is_better go together: give both, or neither")
    if metric is None:
        return None
    return OrderBy.ASC if smaller_is_better else OrderBy.DESC
