"""Reports of trials."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Type, TypeVar

from tenax.client.connection import reading
from tenax.client.connection.session import Session

if TYPE_CHECKING:
    from tenax.jsonvalue import JsonObject

Kind = TypeVar("Kind", bound="TrialMetrics")


@dataclass
class TrialMetrics:
    """What a trial reported of one group at one step."""

    trial_id: int
    trial_run_id: int
    steps_completed: int
    end_time: Optional[datetime.datetime]
    metrics: Dict[str, Any]
    group: str
    batch_metrics: Optional[List[Dict[str, Any]]] = None

    @classmethod
    def read(cls: Type[Kind], value: JsonObject) -> Kind:
        """From an answer of the master."""
        group = reading.text(value, "group")
        document = reading.record(value, "metrics")
        batches = reading.records(document, "batch_metrics") if document.get("batch_metrics") is not None else None
        return cls(
            reading.integer(value, "trialId"),
            reading.integer(value, "trialRunId"),
            reading.integer(value, "totalBatches"),
            reading.moment(value, "endTime"),
            dict(reading.record(document, "validation_metrics" if group == "validation" else "avg_metrics")),
            group,
            [dict(batch) for batch in batches] if batches is not None else None,
        )

    @property
    def total_batches(self) -> int:
        """As ``steps_completed``."""
        return self.steps_completed


class TrainingMetrics(TrialMetrics):
    """Of the group ``training``."""


class ValidationMetrics(TrialMetrics):
    """Of the group ``validation``."""


def reports(session: Session, trial_ids: Sequence[int], group: str, kind: Type[Kind]) -> Iterator[Kind]:
    """What these trials reported, as it comes."""
    query = {"trialIds": list(trial_ids), "group": group}
    for value in session.lines("/api/v1/trials/metrics/trial_metrics", query):  # type: ignore[arg-type]
        for report in reading.records(value, "metrics"):
            yield kind.read(report)


def using(session: Session, path: str, group: Optional[str]) -> Iterable[TrialMetrics]:
    """What trials reported that use a checkpoint or a version of a model."""
    source = "TRIAL_SOURCE_INFO_TYPE_INFERENCE"
    answer = session.get(path, {"metricGroup": group, "trialSourceInfoType": source})
    return iter([TrialMetrics.read(report) for report in reading.records(answer, "metrics")])
