"""Trials."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Union

from tenax.client import trials
from tenax.client.checkpoints import get_checkpoint
from tenax.client.connection import reading
from tenax.client.connection.session import at
from tenax.client.trials import LogFilter, read_logs
from tenax.errors import NotFound
from tenax.experimental.checkpoint import Checkpoint, best_first, sorted_checkpoints
from tenax.experimental.metrics import TrainingMetrics, TrialMetrics, ValidationMetrics, reports
from tenax.experimental.orders import CheckpointSortBy, OrderBy
from tenax.experimental.orders import LogLevel as LogLevel
from tenax.experimental.orders import TrialOrderBy as TrialOrderBy
from tenax.experimental.orders import TrialSortBy as TrialSortBy
from tenax.experimental.orders import TrialState as TrialState
from tenax.experimental.resource import Resource, WrongUse

if TYPE_CHECKING:
    from tenax.experimental.experiment import Experiment


class Trial(Resource[trials.Trial]):
    """One trial."""

    def __repr__(self) -> str:
        return f"Trial(id={self.id})"

    @property
    def id(self) -> int:
        return self.now.id

    @property
    def experiment_id(self) -> int:
        return self.now.experiment_id

    @property
    def hparams(self) -> Dict[str, Any]:
        return dict(self.now.hparams)

    @property
    def state(self) -> TrialState:
        return TrialState(reading.text(self._raw, "state"))

    @property
    def summary_metrics(self) -> Optional[Dict[str, Any]]:
        """By group and metric: count, least, greatest, last."""
        return dict(self.now.summary) or None

    def get_experiment(self) -> Experiment:
        """Whose trial it is."""
        from tenax.client.experiments import get_experiment
        from tenax.experimental.experiment import Experiment

        return Experiment(get_experiment(self._session, self.experiment_id))

    def kill(self) -> None:
        """End it at once; the search goes on."""
        self.now.kill()

    def iter_logs(
        self,
        follow: bool = False,
        *,
        head: Optional[int] = None,
        tail: Optional[int] = None,
        container_ids: Optional[List[str]] = None,
        rank_ids: Optional[List[int]] = None,
        stdtypes: Optional[List[str]] = None,
        min_level: Optional[LogLevel] = None,
        timestamp_before: Union[int, str, None] = None,
        timestamp_after: Union[int, str, None] = None,
        sources: Optional[List[str]] = None,
        search_text: Optional[str] = None,
    ) -> Iterator[str]:
        """Lines of its output, the oldest first; times are seconds since 1970, or as RFC 3339 has them.

        Raises WrongUse for a number of lines below 0.
        """
        for name, count in (("head", head), ("tail", tail)):
            if count is not None and count < 0:
                raise WrongUse(f"{name} must be from 0 on, not {count}")
        where = LogFilter(
            search=search_text or "",
            level=min_level.value.lower() if min_level is not None else "",
            containers=container_ids or (),
            ranks=rank_ids or (),
            sources=sources or (),
            streams=stdtypes or (),
            after=_moment(timestamp_after),
            before=_moment(timestamp_before),
        )
        path = at("/api/v1/trials/{}/logs", self.id)
        for line in read_logs(self._session, path, follow, head, tail, where):
            yield line.log

    def logs(self, *arguments: Any, **named: Any) -> Iterable[str]:
        """As `iter_logs`."""
        return self.iter_logs(*arguments, **named)

    def list_checkpoints(
        self,
        sort_by: Union[str, CheckpointSortBy, None] = None,
        order_by: Optional[OrderBy] = None,
        max_results: Optional[int] = None,
    ) -> List[Checkpoint]:
        """Its completed checkpoints, the best by the searcher's metric first unless it is said otherwise."""
        path = at("/api/v1/trials/{}/checkpoints", self.id)
        return sorted_checkpoints(self._session, path, sort_by, order_by, max_results)

    def get_checkpoints(
        self, sort_by: Union[str, CheckpointSortBy, None] = None, order_by: Optional[OrderBy] = None
    ) -> List[Checkpoint]:
        """As `list_checkpoints`."""
        return self.list_checkpoints(sort_by, order_by)

    def top_checkpoint(self, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None) -> Checkpoint:
        """The best, by a metric of its validations, or by the searcher's. Raises NotFound."""
        return self.select_checkpoint(best=True, sort_by=sort_by, smaller_is_better=smaller_is_better)

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: Optional[str] = None,
        sort_by: Optional[str] = None,
        smaller_is_better: Optional[bool] = None,
    ) -> Checkpoint:
        """The latest, the best, or one by its UUID. Raises WrongUse, NotFound."""
        if latest + best + (uuid is not None) != 1:
            raise WrongUse("give one of latest, best and uuid")
        if uuid is not None:
            return Checkpoint(get_checkpoint(self._session, uuid))
        order = best_first(sort_by, smaller_is_better)
        if order is not None and not best:
            raise WrongUse("sort_by and smaller_is_better go with best")
        attribute: Union[str, CheckpointSortBy, None] = sort_by
        if latest:
            attribute, order = CheckpointSortBy.BATCH_NUMBER, OrderBy.DESC
        for checkpoint in self.list_checkpoints(attribute, order, 1):
            return checkpoint
        raise NotFound(f"Trial {self.id} has no checkpoint of that kind.")

    def iter_metrics(self, group: str) -> Iterable[TrialMetrics]:
        """What it reported of a group, in the order of its steps."""
        return reports(self._session, [self.id], group, TrialMetrics)

    def stream_metrics(self, group: str) -> Iterable[TrialMetrics]:
        """As `iter_metrics`."""
        return self.iter_metrics(group)

    def stream_training_metrics(self) -> Iterable[TrainingMetrics]:
        """As `iter_metrics` of ``training``."""
        return reports(self._session, [self.id], "training", TrainingMetrics)

    def stream_validation_metrics(self) -> Iterable[ValidationMetrics]:
        """As `iter_metrics` of ``validation``."""
        return reports(self._session, [self.id], "validation", ValidationMetrics)


#: Its name before.
TrialReference = Trial


def _moment(given: Union[int, str, None]) -> str:
    if given is None:
        return ""
    if isinstance(given, int) and not isinstance(given, bool):
        return datetime.datetime.fromtimestamp(given, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        datetime.datetime.fromisoformat(str(given).replace("Z", "+00:00"))
    except ValueError:
        raise WrongUse(f"{given!r} is no time: give one like 2026-01-31T12:00:00Z, or seconds since 1970") from None
    return str(given)
