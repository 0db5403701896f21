"""``context.train``: what a trial reports about its training. Standard library only, Python 3.9.

Reports of metrics, progress and status cost microseconds and never wait for the master (``tenax.core.spool`` says what
becomes of them). Questions to the master (best validation, metadata) wait for its answer.

Only the chief (rank 0) reports. Thread-safe.
"""

from __future__ import annotations

import os

from tenax.client.connection import fast_json
from tenax.core.hangs import beats
from tenax.core.modes import EarlyExitReason, TensorboardMode
from tenax.core.spool import Spool, say
from tenax.core.values import MetricsPacker, metrics_body, plain, require_finished
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.wire.spool_names import EARLY_EXIT, METRICS, PROGRESS, RUNNER_STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import ContextManager, Dict, Optional, Union

    from tenax.client.task import TaskClient
    from tenax.core.info import TrialInfo
    from tenax.core.local_runs.trace import ResumeTrace
    from tenax.core.local_runs.trial_at_cluster import TrialAtCluster
    from tenax.core.tensorboard import Tensorboard
    from tenax.core.values import Metrics
    from tenax.jsonvalue import Json, JsonObject

#: Groups of the machines' own metrics: they have no steps and no place in a script's report.
_RESERVED = ("gpu", "cpu", "memory", "disk", "network")
#: A progress report that changes less than this says nothing to a person.
_PROGRESS_STEP = 0.001


class TrainContext:
    """Reports of one trial. ``client`` and ``trial`` are None off the cluster."""

    def __init__(
        self,
        spool: Spool,
        rank: int,
        client: Optional[TaskClient],
        trial: Optional[TrialInfo],
        tensorboard: Optional[Tensorboard] = None,
        mode: TensorboardMode = TensorboardMode.AUTO,
    ) -> None:
        self._spool = spool
        self._rank = rank
        self._client = client
        self._trial = trial
        self._tensorboard = tensorboard
        #: Who gets the text of each report, such as what makes scalars of it; None: nobody.
        self.follower: Optional[Union[Tensorboard, ResumeTrace]] = (
            tensorboard if mode is TensorboardMode.AUTO and rank == 0 else None
        )
        self._mode = mode
        #: The trial of a run in detached mode; None: it is no such run.
        self.at_cluster: Optional[TrialAtCluster] = None
        #: Why nothing may be reported here; empty: it may.
        self.refusal = ""
        self._reported = False
        self._packer = MetricsPacker()
        #: Group -> the steps of its last report.
        self._steps: Dict[str, int] = {}
        self._went_back = False
        self._progress = -1.0
        searcher = trial._config.get("searcher") if trial is not None else None
        self._validations = _Validations(searcher.get("metric") if isinstance(searcher, dict) else None)

    def report_training_metrics(
        self, steps_completed: int, metrics: Metrics, batch_metrics: Optional[Sequence[Metrics]] = None
    ) -> None:
        """Metrics of training after ``steps_completed`` steps; ``batch_metrics``: one dict per batch since the last.

        Values are numbers, strings, lists or dicts (numpy and torch values too; NaN and infinities are kept).
        The same group and step may be reported again with other names. Raises TypeError or ValueError naming the
        metric, SpoolWriteFailed when the disk is full, ReportRefused for an earlier report.
        """
        self._report("training", steps_completed, metrics, batch_metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: Metrics) -> None:
        """Metrics of a validation: what the search decides on. Raises as ``report_training_metrics``."""
        require_finished(metrics)
        self._report("validation", steps_completed, metrics)

    def report_metrics(self, group: str, steps_completed: int, metrics: Metrics) -> None:
        """Metrics of any group: a name that is not empty and has no ``.`` in it."""
        if not group or "." in group:
            raise InvalidInput(f"{group!r} is not a group of metrics: the name must not be empty or contain a '.'")
        if group in _RESERVED:
            raise InvalidInput(f"the group {group!r} is kept for the metrics of the machine: choose another name")
        if group == "validation":
            require_finished(metrics)
        self._report(group, steps_completed, metrics)

    def _report(
        self, group: str, steps_completed: int, metrics: Metrics, batch_metrics: Optional[Sequence[Metrics]] = None
    ) -> None:
        if self._rank != 0 or self.refusal:
            self._refuse_rank("report metrics")
        body: Union[str, bytes, None] = None
        if batch_metrics is None and self._spool.packs:
            body = self._packer.pack(group, steps_completed, metrics)
        if body is None:
            body = metrics_body(group, steps_completed, metrics, batch_metrics)
        if steps_completed < self._steps.get(group, 0):
            self._warn_of_steps(group, steps_completed)
        self._steps[group] = steps_completed
        beats.OWN.at(steps_completed)
        # Somebody waits for the first sign of life; a search waits for validations.
        urgent = group == "validation" or not self._reported
        self._spool.report(METRICS, body, urgent=urgent)
        self._reported = True
        if group == "validation":
            self._validations.add(steps_completed, metrics)
        if self.follower is not None:
            self.follower.report(body)

    def _warn_of_steps(self, group: str, steps: int) -> None:
        """Once: the script may well train twice."""
        if self._went_back:
            return
        self._went_back = True
        say(
            f"warning: {group} metrics of step {steps} come after those of step {self._steps[group]}: their curve goes "
            "back. Count on from the steps of the checkpoint that a run goes on from; of a second training in one "
            "script, report to a group of its own with report_metrics()"
        )

    def beat(self, steps_completed: int) -> None:
        """This rank, any rank, has completed so many steps: for a loop that reports more seldom than it might hang.

        Costs less than a microsecond, and sends nothing: whoever watches for hangs sees it. Reports,
        ``should_preempt`` and the collectives of ``context.distributed`` are beats by themselves.
        """
        beats.OWN.at(steps_completed)

    def evaluating(self) -> ContextManager[None]:
        """``with`` it: this rank evaluates, and is not expected to beat as often as in training."""
        return beats.OWN.during(beats.EVALUATE)

    def report_progress(self, progress: float) -> None:
        """How far this trial is, from 0 to 1. Raises InvalidInput outside of that."""
        self._refuse_rank("report progress")
        beats.OWN.beat()
        value = float(progress)
        if not 0.0 <= value <= 1.0:
            raise InvalidInput(f"progress must be from 0 to 1, not {progress!r}")
        if value in (0.0, 1.0) or abs(value - self._progress) >= _PROGRESS_STEP:
            self._progress = value
            self._spool.report(PROGRESS, fast_json.dumps({"progress": value}))

    def set_status(self, status: str) -> None:
        """A short text about what the trial is doing, for people."""
        self._refuse_rank("set the status")
        beats.OWN.beat()
        self._spool.report(RUNNER_STATE, fast_json.dumps({"state": str(status)}))

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """This trial cannot go on with its hyperparameters; end the script after it."""
        body = fast_json.dumps({"reason": EarlyExitReason(reason).value})
        self._spool.report(EARLY_EXIT, body, urgent=True, durable=True)

    def get_experiment_best_validation(self) -> Optional[float]:
        """The best value of the searcher's metric in this experiment so far; None: none yet, or off the cluster.

        Raises MasterAway when the master does not answer within a minute.
        """
        try:
            answer = self._ask("GET", "/api/v1/experiments/{experiment}/searcher/best_searcher_validation_metric")
        except NotFound:
            return None
        metric = answer.get("metric") if isinstance(answer, dict) else None
        return float(metric) if isinstance(metric, (int, float, str)) else None

    def get_metadata(self) -> Optional[JsonObject]:
        """The free-form metadata of this run; None off the cluster."""
        return _metadata(self._ask("GET", "/api/v1/runs/{trial}/metadata"))

    def set_metadata(self, metadata: Metrics) -> Optional[JsonObject]:
        """Replace the metadata of this run, and get it as it was stored; None off the cluster."""
        self._refuse_rank("set metadata")
        document = plain(metadata, "metadata")
        stored = _metadata(self._ask("POST", "/api/v1/runs/{trial}/metadata", {"metadata": document}))
        if stored is None:
            say(f"metadata: {fast_json.dumps(document)}")
        return stored

    def get_tensorboard_path(self) -> Path:
        """A directory for TensorBoard files of the script's own; in AUTO mode those of the chief are kept with the
        checkpoints."""
        if self._tensorboard is None:
            from pathlib import Path

            return Path(os.path.dirname(self._spool.path))
        return self._tensorboard.path()

    def upload_tensorboard_files(
        self,
        selector: Optional[Callable[[Path], bool]] = None,
        mangler: Optional[Callable[[Path, int], Path]] = None,
    ) -> None:
        """Keep what lies in ``get_tensorboard_path()`` and has changed since, with the checkpoints, in MANUAL mode.

        ``selector``: which files (None: all). ``mangler``: the name of a copy, from its relative path and this rank.
        Raises NotNow in AUTO mode, StorageFailed.
        """
        if self._mode is TensorboardMode.AUTO:
            raise NotNow("in the AUTO mode files are kept by themselves: choose TensorboardMode.MANUAL in core.init()")
        if self._tensorboard is not None:
            self._tensorboard.upload(selector, mangler, self._rank)

    def close(self) -> None:
        """There are no more reports."""
        self._validations.look()

    def _ask(self, method: str, path: str, body: Optional[JsonObject] = None) -> Json:
        """The master's answer; None: there is none to be asked. ``path``: with ``{trial}`` or ``{experiment}``."""
        if self.at_cluster is not None:
            return self.at_cluster.call(method, path, body)
        if self._client is None or self._trial is None:
            return None
        path = path.format(trial=self._trial.trial_id, experiment=self._trial.experiment_id)
        return self._client.call(method, path, body=body)

    def _refuse_rank(self, what: str) -> None:
        if self._rank != 0:
            raise NotNow(f"only the chief may {what}, and this is rank {self._rank}: ask distributed.rank == 0 first")
        if self.refusal:
            raise NotNow(self.refusal)


class _Validations:
    """Says once where validations lack the searcher's metric: then its name is mistyped, as a rule.

    What is reported of one step may come in parts: a step is looked at when another one begins.
    """

    def __init__(self, metric: object) -> None:
        #: Empty: nothing is missed, any more.
        self._metric = metric if isinstance(metric, str) else ""
        self._step: Optional[int] = None
        self._names: set[str] = set()

    def add(self, step: int, metrics: Metrics) -> None:
        """Metrics of a step."""
        if self._metric and step != self._step:
            self.look()
            self._step = step
        if self._metric:
            self._names.update(map(str, metrics))

    def look(self) -> None:
        """At all that was added."""
        if self._metric and self._names and self._metric not in self._names:
            names = ", ".join(sorted(self._names))
            say(f"warning: searcher.metric is {self._metric!r}, which no validation has: they report {names}")
            self._metric = ""
        elif self._metric in self._names:
            self._metric = ""


def _metadata(answer: object) -> Optional[JsonObject]:
    """None: nobody has answered."""
    if answer is None:
        return None
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    return metadata if isinstance(metadata, dict) else {}
