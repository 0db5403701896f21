"""Trials as values, with queries about them and actions on them; their metrics as reports, columns and charts.

A value is a snapshot of the master's answer; `Trial.reload` fetches a new one.
"""

from __future__ import annotations

import datetime
import difflib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from tenax.client.connection import reading
from tenax.client.connection.address import Unreachable
from tenax.client.connection.listing import Listing, flat
from tenax.client.connection.polling import RETRY_S
from tenax.client.connection.reading import LiveAnswer, part
from tenax.client.connection.session import BrokenStream, Query, QueryValue, Session, at
from tenax.errors import InvalidInput, NotFound, TryAgain
from tenax.jsonvalue import Json, JsonObject

if TYPE_CHECKING:
    from tenax.client.checkpoints import Checkpoint

#: Where a metric is looked for first.
_FIRST_GROUPS = ("validation", "training")
#: A trial in one of these stays in it.
ENDED = ("COMPLETED", "CANCELED", "ERROR")
#: Lines of several machines arrive out of order by less than this, and by less than so many lines.
_OVERLAP = datetime.timedelta(seconds=30)
_REMEMBERED = 50_000


@dataclass(frozen=True)
class Report:
    """Metrics of one group at one step."""

    trial_id: int
    run_id: int
    #: ``training``, ``validation`` or a name of the user's.
    group: str
    steps: int
    #: By name; numbers as a rule.
    metrics: JsonObject
    time: Optional[datetime.datetime] = None

    @staticmethod
    def read(value: JsonObject) -> Report:
        """From a line of a stream of metrics."""
        inner = reading.record(value, "metrics")
        named = reading.record(inner, "avg_metrics") or reading.record(inner, "validation_metrics")
        return Report(
            trial_id=reading.integer(value, "trialId"),
            run_id=reading.integer(value, "trialRunId"),
            group=reading.text(value, "group"),
            steps=reading.integer(value, "totalBatches"),
            metrics=named or reading.record(inner, "avgMetrics"),
            time=reading.moment(value, "endTime"),
        )


@dataclass(frozen=True)
class Point:
    """One point of a chart."""

    steps: int
    time: datetime.datetime
    #: None where it is no number.
    value: Optional[float]


class Reports(Listing[Report]):
    """A list of reports, whose `columns` and data frame have one column for each metric."""

    def columns(self) -> Dict[str, List[object]]:
        """Lists of one length, by name: ``steps``, ``group``, ``run_id``, ``time``, and one for each metric.

        A metric inside another is named with a dot; None stands where a report has no such metric. A metric with the
        name of a column of ours is ``metrics.`` and its name.
        """
        own: Dict[str, List[object]] = {name: [] for name in ("steps", "group", "run_id", "time")}
        metrics: Dict[str, List[object]] = {}
        for count, report in enumerate(self):
            for name, column in own.items():
                column.append(getattr(report, name))
            for name, value in flat(report.metrics):
                number = reading.real(value) if isinstance(value, str) else None
                column = metrics.setdefault(f"metrics.{name}" if name in own else name, [])
                column += [None] * (count - len(column)) + [value if number is None else number]
        length = len(own["steps"])
        return {**own, **{name: column + [None] * (length - len(column)) for name, column in metrics.items()}}


@dataclass(frozen=True)
class LogLine:
    """A line of a task's output, or of what master and agent say about it."""

    id: str
    #: As it is shown: time, container, rank and the line.
    message: str
    #: The line alone; empty from masters that do not say it.
    log: str
    time: Optional[datetime.datetime]
    level: str
    rank: Optional[int]
    #: ``task``, ``master`` or ``agent``: who says it.
    source: str = ""
    #: ``stdout`` or ``stderr``, of the task's own output.
    stream: str = ""

    @staticmethod
    def read(value: JsonObject) -> LogLine:
        """From a line of a stream of logs."""
        level = reading.text(value, "level")
        return LogLine(
            id=reading.text(value, "id"),
            message=reading.text(value, "message").rstrip("\n"),
            log=reading.text(value, "log").rstrip("\n"),
            time=reading.moment(value, "timestamp"),
            level=level[len("LOG_LEVEL_") :] if level.startswith("LOG_LEVEL_") else level,
            rank=reading.integer(value, "rankId") if value.get("rankId") is not None else None,
            source=reading.text(value, "source"),
            stream=reading.text(value, "stdtype"),
        )


#: From the least to the most severe.
LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True)
class LogFilter:
    """Which lines of a log to show; an empty field restricts nothing."""

    search: str = ""
    #: ``search`` is a regular expression (RE2's).
    regex: bool = False
    #: One of `LEVELS`: lines that are at least so severe.
    level: str = ""
    agents: Sequence[str] = ()
    containers: Sequence[str] = ()
    allocations: Sequence[str] = ()
    ranks: Sequence[int] = ()
    #: ``task``, ``master``, ``agent``.
    sources: Sequence[str] = ()
    #: ``stdout``, ``stderr``.
    streams: Sequence[str] = ()
    #: RFC 3339, as in ``2026-01-31T12:00:00Z``.
    after: str = ""
    before: str = ""

    def query(self) -> Dict[str, QueryValue]:
        """As a request says it. Raises InvalidInput for a level that does not exist."""
        levels = None
        if self.level:
            if self.level.upper() not in LEVELS:
                raise InvalidInput(f"there is no level {self.level!r}; the levels are {', '.join(LEVELS)}")
            levels = [f"LOG_LEVEL_{name}" for name in LEVELS[LEVELS.index(self.level.upper()) :]]
        return {
            "searchText": self.search or None,
            "enableRegex": self.regex or None,
            "levels": levels,
            "agentIds": list(self.agents) or None,
            "containerIds": list(self.containers) or None,
            "allocationIds": list(self.allocations) or None,
            "rankIds": list(self.ranks) or None,
            "sources": list(self.sources) or None,
            "stdtypes": list(self.streams) or None,
            "timestampAfter": self.after or None,
            "timestampBefore": self.before or None,
        }


@dataclass(frozen=True)
class Validation:
    """A validation report as a trial shows it."""

    steps: int
    metrics: Dict[str, float]


def _validation(trial: JsonObject, key: str) -> Optional[Validation]:
    value = reading.record(trial, key)
    if not value:
        return None
    named = reading.record(reading.record(value, "metrics"), "avgMetrics")
    return Validation(reading.integer(value, "totalBatches"), reading.numbers(named))


@dataclass(frozen=True)
class Trial(LiveAnswer):
    """One sample of hyperparameters."""

    id: int = part(reading.integer, "id")
    experiment_id: int = part(reading.integer, "experimentId")
    state: str = part(reading.state, "state")
    hparams: JsonObject = part(reading.record, "hparams")
    steps: int = part(reading.integer, "totalBatchesProcessed")
    restarts: int = part(reading.integer, "restarts")
    best_validation: Optional[Validation] = part(_validation, "bestValidation")
    latest_validation: Optional[Validation] = part(_validation, "latestValidation")
    #: Of the metrics of each group, by name, what their values come to; of training it is ``avg_metrics``.
    summary: JsonObject = part(reading.record, "summaryMetrics")
    #: The searcher's metric at the best validation.
    searcher_metric: Optional[float] = part(reading.measure, "searcherMetricValue")
    best_checkpoint_uuid: str = part(reading.text, "bestCheckpoint", "uuid")
    #: The newest: each time that its experiment is continued it has one more.
    task_id: str = part(reading.text, "taskId")
    #: All of them, the oldest first.
    task_ids: List[str] = part(reading.texts, "taskIds")
    started: Optional[datetime.datetime] = part(reading.moment, "startTime")
    ended: Optional[datetime.datetime] = part(reading.moment, "endTime")
    #: Seconds in which it ran, without waiting; None from masters that do not say it.
    ran_s: Optional[float] = part(reading.measure, "runningSeconds")
    #: Why it waits, or how it ended, where that is not plain.
    reason: str = part(reading.text, "reason")

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def validation_metrics(self) -> List[str]:
        """What its validations report, whether the searcher's metric is among it or not."""
        return sorted(reading.record(self.summary, "validation_metrics"))

    def reload(self) -> Trial:
        """The trial as it is now."""
        return get_trial(self.session, self.id)

    def kill(self) -> None:
        """End it at once; the search goes on."""
        self.session.post(at("/api/v1/trials/{}/kill", self.id))

    def health(self) -> JsonObject:
        """Whether it is well: ``sentence``, ``kind``, ``findings`` with what shows them, and facts that change."""
        return self.session.get(at("/api/v1/trials/{}/health", self.id))

    def checkpoints(self) -> Listing[Checkpoint]:
        """Its checkpoints, the newest first."""
        from tenax.client.checkpoints import Checkpoint

        path = at("/api/v1/trials/{}/checkpoints", self.id)
        return Listing(Checkpoint.read(value, self.session) for value in pages(self.session, path, "checkpoints"))

    def metrics(self, group: str = "") -> Reports:
        """Its reports in the order of their steps, of one group or of all; ``.columns()`` has them as flat columns."""
        return Reports(self.iter_metrics(group))

    def iter_metrics(self, group: str = "") -> Iterator[Report]:
        """The same, once and without keeping them: fetched while they are read."""
        query: Query = {"trialIds": [self.id], "group": group}
        for value in self.session.lines("/api/v1/trials/metrics/trial_metrics", query):
            for report in reading.records(value, "metrics"):
                yield Report.read(report)

    def logs(
        self,
        *,
        follow: bool = False,
        head: Optional[int] = None,
        tail: Optional[int] = None,
        search: str = "",
        where: Optional[LogFilter] = None,
    ) -> Iterator[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until the trial has ended."""
        line_filter = where or LogFilter(search=search)
        return read_logs(self.session, at("/api/v1/trials/{}/logs", self.id), follow, head, tail, line_filter)

    def log_fields(self) -> JsonObject:
        """What its output can be filtered by: every agent, container, rank, source and stream that occurs."""
        for value in self.session.lines(at("/api/v1/trials/{}/logs/fields", self.id)):
            return value
        return {}

    def keep_logs(self, days: int) -> None:
        """Keep its output so many days after its end; -1: for ever."""
        self.session.call(
            "PUT", at("/api/v1/trials/{}/retain_logs", self.id), body={"trialId": self.id, "numDays": days}
        )

    def workloads(self, kind: str = "") -> List[JsonObject]:
        """What happened in it, by step: objects with ``training``, ``validation`` or ``checkpoint``.

        ``kind``: CHECKPOINT, VALIDATION or CHECKPOINT_OR_VALIDATION alone.
        """
        query: Query = {"filter": f"FILTER_OPTION_{kind}" if kind else None}
        return list(pages(self.session, at("/api/v1/trials/{}/workloads", self.id), "workloads", query, size=500))

    def series(self, metric: str, group: Optional[str] = None, points: int = 1000) -> List[Point]:
        """One metric for a chart, thinned to so many points (0: all); its least and greatest value are kept.

        Without a ``group`` that in which it was reported: validation before training before others. Raises NotFound.
        """
        path = at("/api/v1/trials/{}/series", self.id)
        group = group if group is not None else group_with(names_of_trial(self.session, self.id), metric)
        chart = self.session.get(path, {"metric": metric, "group": group, "maxPoints": points})
        columns = [chart.get(name) for name in ("steps", "times", "values")]
        steps, times, values = (column if isinstance(column, list) else [] for column in columns)
        return [
            Point(int(str(step)), _moment(time), reading.real(value)) for step, time, value in zip(steps, times, values)
        ]

    def metadata(self) -> JsonObject:
        """What was written about it."""
        return reading.record(self.session.get(at("/api/v1/runs/{}/metadata", self.id)), "metadata")

    def set_metadata(self, metadata: JsonObject) -> None:
        """Write about it, instead of what was there."""
        self.session.post(at("/api/v1/runs/{}/metadata", self.id), {"metadata": metadata})


def get_trial(session: Session, number: int) -> Trial:
    """Trial ``number``. Raises NotFound."""
    return Trial.read(reading.record(session.get(at("/api/v1/trials/{}", number)), "trial"), session)


def _moment(microseconds: Json) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(str(microseconds)) / 1e6, datetime.timezone.utc)


def read_logs(
    session: Session,
    path: str,
    follow: bool,
    head: Optional[int],
    tail: Optional[int],
    where: Union[str, LogFilter] = "",
) -> Iterator[LogLine]:
    """Lines of a log; one that is followed survives a master that is away for a while. ``where`` may be a text.

    ``follow`` with ``tail``: the last lines, and then what comes.
    """
    query = (LogFilter(search=where) if isinstance(where, str) else where).query()
    newest: List[LogLine] = []
    if tail is not None:
        newest = [LogLine.read(value) for value in session.lines(path, _query(query, limit=tail, newest=True))]
        yield from reversed(newest)
    if follow:
        if newest and newest[0].time is not None:
            query["timestampAfter"] = newest[0].time.isoformat()
        yield from _followed(session, path, query, [line.id for line in reversed(newest)])
    elif tail is not None:
        return
    else:
        for value in session.lines(path, _query(query, limit=head)):
            yield LogLine.read(value)


def _query(base: Dict[str, QueryValue], *, limit: Optional[int] = None, newest: bool = False) -> Query:
    return {**base, "limit": limit, "orderBy": "ORDER_BY_DESC" if newest else None}


def _followed(session: Session, path: str, base: Dict[str, QueryValue], seen: Sequence[str] = ()) -> Iterator[LogLine]:
    """After a break it goes on a little before the last line, and leaves out what was shown: ids never change.

    It never goes back behind the time that was asked for.
    """
    shown: Dict[str, None] = dict.fromkeys(seen)
    requested = base["timestampAfter"]
    after = requested if isinstance(requested, str) else ""
    first = reading.moment({"after": after}, "after")
    until = time.monotonic() + RETRY_S
    while True:
        try:
            for value in session.lines(path, {**_query(base), "follow": True, "timestampAfter": after or None}):
                line = LogLine.read(value)
                if line.id and line.id in shown:
                    continue
                shown[line.id] = None
                if len(shown) > _REMEMBERED:
                    del shown[next(iter(shown))]
                if line.time is not None and (first is None or line.time - _OVERLAP > first):
                    after = (line.time - _OVERLAP).isoformat()
                until = time.monotonic() + RETRY_S
                yield line
            return
        except (BrokenStream, Unreachable, TryAgain):
            if time.monotonic() > until:
                raise
            time.sleep(1.0)


def pages(
    session: Session, path: str, key: str, query: Optional[Query] = None, size: int = 200
) -> Iterator[JsonObject]:
    """All objects of a list that comes in pages."""
    offset = 0
    while True:
        answer = session.get(path, {**(query or {}), "limit": size, "offset": offset})
        items = reading.records(answer, key)
        yield from items
        page = reading.record(answer, "pagination")
        offset = reading.integer(page, "endIndex")
        if not items or offset >= reading.integer(page, "total"):
            return


def group_with(names: Mapping[str, Sequence[str]], metric: str) -> str:
    """The group that has ``metric``: validation before training before others. Raises NotFound, with names like it."""
    for group in _in_order(names):
        if metric in names[group]:
            return group
    known = sorted({name for group in names.values() for name in group})
    near = difflib.get_close_matches(metric, known, n=3) or known[:10]
    raise NotFound(f"No metric {metric!r} was reported" + (f"; there is {', '.join(near)}." if near else " yet."))


def groups_with(names: Mapping[str, Sequence[str]], metrics: Sequence[str]) -> Dict[str, str]:
    """The group of each metric, as `group_with` has it; but one for all, where one has them all. Raises NotFound."""
    for group in _in_order(names):
        if all(metric in names[group] for metric in metrics):
            return dict.fromkeys(metrics, group)
    return {metric: group_with(names, metric) for metric in metrics}


def _in_order(names: Mapping[str, Sequence[str]]) -> List[str]:
    return [group for group in dict.fromkeys((*_FIRST_GROUPS, *sorted(names))) if group in names]


def names_of_trial(session: Session, trial_id: int) -> Dict[str, List[str]]:
    """Group -> the metrics in which a trial reported numbers."""
    answer = session.get(at("/api/v1/trials/{}/metric-summaries", trial_id))
    return {
        group: [name for name, summary in _objects(metrics) if "count" in summary]
        for group, metrics in _objects(answer)
    }


def names_of_experiment(session: Session, experiment_id: int) -> Dict[str, List[str]]:
    """Group -> what was reported in it, over all trials."""
    answer = session.get(at("/api/v1/experiments/{}/metric-names", experiment_id))
    return {group: reading.texts(answer, group) for group in answer}


def series_of(
    session: Session, trial_ids: Sequence[int], metric: str, group: str, points: int = 1000
) -> Dict[int, List[Point]]:
    """One metric of several trials, thinned to so many points each (0: all). Raises NotFound, InvalidInput."""
    query: Query = {"trialIds": list(trial_ids), "metricNames": [metric], "group": group, "maxDatapoints": points}
    answer = session.get("/api/v1/trials/time-series", query) if trial_ids else {}
    by_trial: Dict[int, List[Point]] = {}
    for compared in reading.records(answer, "trials"):
        sampled = [point for line in reading.records(compared, "metrics") for point in reading.records(line, "data")]
        number = reading.integer(reading.record(compared, "trial"), "id")
        by_trial[number] = [_point(point, metric) for point in sampled if metric in reading.record(point, "values")]
    return by_trial


def _point(value: JsonObject, metric: str) -> Point:
    when = reading.moment(value, "time") or datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
    return Point(reading.integer(value, "batches"), when, reading.real(reading.record(value, "values").get(metric)))


def _objects(value: JsonObject) -> List[Tuple[str, JsonObject]]:
    return [(name, inner) for name, inner in value.items() if isinstance(inner, dict)]
