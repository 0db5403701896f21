"""Experiments."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Union

from tenax.client import experiments, trials
from tenax.client.connection import reading
from tenax.client.connection.session import at
from tenax.client.projects import get_project
from tenax.client.trials import pages
from tenax.errors import NotFound
from tenax.experimental.checkpoint import Checkpoint, best_first, sorted_checkpoints
from tenax.experimental.orders import CheckpointSortBy, OrderBy, TrialSortBy
from tenax.experimental.orders import ExperimentOrderBy as ExperimentOrderBy
from tenax.experimental.orders import ExperimentSortBy as ExperimentSortBy
from tenax.experimental.orders import ExperimentState as ExperimentState
from tenax.experimental.resource import Resource, WrongUse
from tenax.experimental.trial import Trial


class Experiment(Resource[experiments.Experiment]):
    """One experiment."""

    def __repr__(self) -> str:
        return f"Experiment(id={self.id})"

    @property
    def id(self) -> int:
        return self.now.id

    @property
    def name(self) -> str:
        return self.now.name

    @property
    def description(self) -> str:
        return self.now.description

    @property
    def notes(self) -> str:
        return reading.text(self._raw, "notes")

    @property
    def labels(self) -> Optional[Set[str]]:
        """None: it has none."""
        return set(self.now.labels) or None

    @property
    def state(self) -> ExperimentState:
        return ExperimentState(reading.text(self._raw, "state"))

    @property
    def archived(self) -> bool:
        return self.now.archived

    @property
    def progress(self) -> Optional[float]:
        return self.now.progress

    @property
    def config(self) -> Dict[str, Any]:
        return dict(self.now.config)

    @property
    def project_id(self) -> int:
        return reading.integer(self._raw, "projectId")

    @property
    def workspace_id(self) -> int:
        return reading.integer(self._raw, "workspaceId")

    def set_name(self, name: str) -> None:
        """Give it another name."""
        self.now = self.now.edit(name=name)

    def set_description(self, description: str) -> None:
        """Describe it anew."""
        self.now = self.now.edit(description=description)

    def set_notes(self, notes: str) -> None:
        """Replace its notes."""
        self.now = self.now.edit(notes=notes)

    def set_labels(self, labels: Iterable[str]) -> None:
        """Replace its labels."""
        self.now = self.now.edit(labels=sorted(labels))

    def add_label(self, label: str) -> None:
        """Beside those that it has."""
        self.now.add_label(label)
        self.reload()

    def remove_label(self, label: str) -> None:
        """One that it has not is no error."""
        self.now.remove_label(label)
        self.reload()

    def activate(self) -> None:
        """Let it go on."""
        self.now.activate()

    def pause(self) -> None:
        """Every trial saves and leaves its slots, until it is activated."""
        self.now.pause()

    def cancel(self) -> None:
        """Every trial saves, and it ends."""
        self.now.cancel()

    def kill(self) -> None:
        """End it at once."""
        self.now.kill()

    def archive(self) -> None:
        """Leave it out of lists."""
        self.now.do("archive")
        self.reload()

    def unarchive(self) -> None:
        """As it was before."""
        self.now.do("unarchive")
        self.reload()

    def delete(self) -> None:
        """Delete it with its metrics, logs and checkpoints; it must have ended."""
        self.now.delete()

    def move_to_project(self, workspace_name: str, project_name: str) -> None:
        """File it elsewhere. Raises NotFound."""
        self.now.move(get_project(self._session, project_name, workspace_name).id)
        self.reload()

    def wait(self, interval: float = 5.0) -> ExperimentState:
        """The state in which it ends. A master that is away is waited for. Raises WrongUse where it is paused."""

        def look(now: experiments.Experiment) -> None:
            if now.state == "PAUSED":
                raise WrongUse(f"Experiment {self.id} is paused: activate it, then wait")

        self.now = self.now.wait(interval=interval, seen=look)
        return self.state

    def await_first_trial(self, interval: float = 0.1) -> Trial:
        """Its first trial, once there is one. Raises NotFound where it ends before."""
        while True:
            self.reload()
            ended = self.now.has_ended
            for trial in self.iter_trials(TrialSortBy.START_TIME, limit=1):
                return trial
            if ended:
                raise NotFound(f"Experiment {self.id} has ended ({self.state.name}) before it had a trial.")
            time.sleep(interval)

    def iter_trials(
        self,
        sort_by: TrialSortBy = TrialSortBy.ID,
        order_by: OrderBy = OrderBy.ASCENDING,
        limit: Optional[int] = None,
    ) -> Iterator[Trial]:
        """Its trials in an order; ``limit``: the first so many."""
        path = at("/api/v1/experiments/{}/trials", self.id)
        query: Dict[str, Any] = {"sortBy": sort_by.value, "orderBy": order_by.value}
        made = (Trial(trials.Trial.read(value, self._session)) for value in pages(self._session, path, "trials", query))
        return itertools.islice(made, limit)

    def list_trials(self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING) -> List[Trial]:
        """All its trials in an order."""
        return list(self.iter_trials(sort_by, order_by))

    def get_trials(self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: OrderBy = OrderBy.ASCENDING) -> List[Trial]:
        """As `list_trials`."""
        return self.list_trials(sort_by, order_by)

    def list_checkpoints(
        self,
        sort_by: Union[str, CheckpointSortBy, None] = None,
        order_by: Optional[OrderBy] = None,
        max_results: Optional[int] = None,
    ) -> List[Checkpoint]:
        """Its completed checkpoints, the best by the searcher's metric first unless it is said otherwise."""
        path = at("/api/v1/experiments/{}/checkpoints", self.id)
        return sorted_checkpoints(self._session, path, sort_by, order_by, max_results)

    def top_checkpoint(self, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None) -> Checkpoint:
        """The best, by a metric of its validations, or by the searcher's. Raises NotFound."""
        best_first(sort_by, smaller_is_better)
        return self.top_n_checkpoints(1, sort_by, smaller_is_better)[0]

    def top_n_checkpoints(
        self, limit: int, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None
    ) -> List[Checkpoint]:
        """The best of each of the best trials; those without the metric come last. Raises NotFound."""
        every = self.list_checkpoints(CheckpointSortBy.UUID, OrderBy.ASC)
        if not every:
            raise NotFound(f"Experiment {self.id} has no checkpoint.")
        searcher = self.now.config.get("searcher")
        section = searcher if isinstance(searcher, dict) else {}
        if sort_by is None:
            sort_by, smaller_is_better = str(section.get("metric")), section.get("smaller_is_better") is not False
        if smaller_is_better is None:
            smaller_is_better = section.get("smaller_is_better") is not False
        values = {checkpoint.uuid: _metric_of(checkpoint, sort_by) for checkpoint in every}
        sign = 1.0 if smaller_is_better else -1.0
        every.sort(key=lambda checkpoint: sign * value if (value := values[checkpoint.uuid]) is not None else math.inf)
        by_trial: Dict[int, Checkpoint] = {}
        for checkpoint in every:
            by_trial.setdefault(checkpoint.now.trial_id, checkpoint)
        return list(by_trial.values())[:limit]

    def download_code(self, output_dir: Optional[str] = None) -> str:
        """Write the code that came with it into ``exp-<id>_model_def.tar.gz``; where that is."""
        directory = Path(output_dir).expanduser() if output_dir else Path()
        directory.mkdir(parents=True, exist_ok=True)
        target = directory / f"exp-{self.id}_model_def.tar.gz"
        target.write_bytes(self.now.code())
        return str(target)

    def delete_tensorboard_files(self) -> None:
        """Delete what its trials wrote for TensorBoard."""
        self.now.delete_tensorboard_files()

    def get_pachyderm_config(self) -> Dict[str, Any]:
        """``integrations.pachyderm`` of its configuration. Raises WrongUse where there is none."""
        section = reading.record(reading.record(self.now.config, "integrations"), "pachyderm")
        if not section:
            raise WrongUse(f"experiment {self.id} has no integrations.pachyderm")
        return dict(section)


#: Its name before.
ExperimentReference = Experiment


def _metric_of(checkpoint: Checkpoint, metric: str) -> Optional[float]:
    training = checkpoint.training
    averages = (training.validation_metrics.get("avgMetrics") or {}) if training is not None else {}
    value = averages.get(metric)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
