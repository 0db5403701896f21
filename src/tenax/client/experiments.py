"""Experiments as values, with queries about them and actions on them, on one or on all that a filter chooses.

A value is a snapshot of the master's answer; `Experiment.reload` fetches a new one.
"""

from __future__ import annotations

import base64
import datetime
import math
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from tenax.client.checkpoints import Checkpoint, GcPolicy, GcPreview, garbage_of, set_policy
from tenax.client.connection import reading
from tenax.client.connection.listing import Listing
from tenax.client.connection.polling import Steps, slept, until
from tenax.client.connection.reading import Answer, LiveAnswer, made, part
from tenax.client.connection.session import Query, Session, at
from tenax.client.context import check_script
from tenax.client.trials import ENDED as ENDED
from tenax.client.trials import LogLine, Trial, pages, read_logs
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject

#: What can be done to an experiment at once.
VERBS = ("activate", "pause", "cancel", "kill", "archive", "unarchive")
#: What a list may be ordered by.
ORDERS = (
    "id", "name", "description", "state", "start_time", "end_time", "user", "progress", "num_trials",
    "searcher_metric_val", "checkpoint_count", "checkpoint_size", "forked_from", "resource_pool", "project_id",
)  # fmt: skip


@dataclass(frozen=True)
class Experiment(LiveAnswer):
    """A configuration and its search."""

    id: int = part(reading.integer, "id")
    name: str = part(reading.text, "name")
    description: str = part(reading.text, "description")
    state: str = part(reading.state, "state")
    owner: str = part(reading.text, "username")
    #: 0 to 1; None before anything is known.
    progress: Optional[float] = part(reading.measure, "progress")
    searcher: str = made(lambda value: reading.text(value, "searcherType") or reading.text(_searcher(value), "name"))
    metric: str = made(lambda value: reading.text(value, "searcherMetric") or reading.text(_searcher(value), "metric"))
    smaller_is_better: bool = made(lambda value: _searcher(value).get("smaller_is_better") is not False)
    #: Its search may go on after its end; one that stops trials early is forked instead.
    continuable: bool = part(reading.flag, "continuable")
    trial_count: int = part(reading.integer, "numTrials")
    best_metric: Optional[float] = part(reading.measure, "bestTrialSearcherMetric")
    best_trial_id: int = part(reading.integer, "bestTrialId")
    pool: str = part(reading.text, "resourcePool")
    labels: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "labels")))
    archived: bool = part(reading.flag, "archived")
    started: Optional[datetime.datetime] = part(reading.moment, "startTime")
    ended: Optional[datetime.datetime] = part(reading.moment, "endTime")
    #: Seconds in which at least one of its trials ran, without waiting; None from masters that do not say it.
    ran_s: Optional[float] = part(reading.measure, "runningSeconds")
    #: Why it waits, or how it ended, where that is not plain.
    reason: str = part(reading.text, "reason")
    #: The whole configuration, with every default.
    config: JsonObject = part(reading.record, "config", shown=False)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def left_s(self) -> Optional[float]:
        """Seconds of running that are left if it goes on as it went; None where nothing can be said."""
        if self.has_ended or not self.progress or not self.ran_s:
            return None
        return self.ran_s * (1 - self.progress) / self.progress

    @property
    def needs_progress(self) -> bool:
        """Whether its search counts what trials say of themselves, and they could be asked to."""
        searcher = _searcher(self.raw)
        return not self.has_ended and "max_time" not in searcher and searcher.get("max_length") is None

    @property
    def length_metric(self) -> str:
        """The validation metric that ``searcher.max_length`` counts; empty where it counts steps or is not set."""
        length = _searcher(self.raw).get("max_length")
        return next((name for name in length if name != "batches"), "") if isinstance(length, dict) else ""

    def reload(self) -> Experiment:
        """The experiment as it is now."""
        return get_experiment(self.session, self.id)

    def wait(self, *, interval: float = 1.0, seen: Optional[Callable[[Experiment], None]] = None) -> Experiment:
        """The experiment once it has ended; ``seen`` is shown every state on the way.

        A master that is away is waited for. Raises Unreachable when it stays away for ten minutes.
        """
        return slept(self._wait(interval=interval, seen=seen))

    def _wait(self, *, interval: float, seen: Optional[Callable[[Experiment], None]]) -> Steps[Experiment]:
        def has_ended(current: Experiment) -> bool:
            if seen is not None:
                seen(current)
            return current.has_ended

        return until(self, self.reload, has_ended, interval)

    def activate(self) -> None:
        """Let it go on."""
        self.do("activate")

    def pause(self) -> None:
        """Every trial saves and leaves its slots, until it is activated."""
        self.do("pause")

    def cancel(self) -> None:
        """Every trial saves, and the experiment ends."""
        self.do("cancel")

    def kill(self) -> None:
        """End it at once."""
        self.do("kill")

    def do(self, verb: str) -> None:
        """One of VERBS."""
        self.session.post(at("/api/v1/experiments/{}/{}", self.id, verb))

    def delete(self) -> None:
        """Delete it with its metrics, logs and checkpoints; it must have ended."""
        self.session.call("DELETE", at("/api/v1/experiments/{}", self.id))

    def trials(self) -> Listing[Trial]:
        """Its trials in the order of their making."""
        path = at("/api/v1/experiments/{}/trials", self.id)
        query: Query = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_ASC"}
        return Listing(Trial.read(value, self.session) for value in pages(self.session, path, "trials", query))

    def checkpoints(self, limit: Optional[int] = None) -> Listing[Checkpoint]:
        """Its checkpoints, the best by the searcher's metric first, then those without one, with the most steps first.

        Of equal ones the one that was saved first is better, as everywhere.
        """
        path = at("/api/v1/experiments/{}/checkpoints", self.id)
        checkpoints = [Checkpoint.read(value, self.session) for value in pages(self.session, path, "checkpoints")]
        sign = 1.0 if self.smaller_is_better else -1.0
        checkpoints.sort(
            key=lambda checkpoint: (
                checkpoint.searcher_metric is None,
                sign * (checkpoint.searcher_metric or 0.0),
                -checkpoint.steps if checkpoint.searcher_metric is None else 0,
                checkpoint.reported.timestamp() if checkpoint.reported is not None else math.inf,
                checkpoint.uuid,
            )
        )
        return Listing(checkpoints[:limit])

    def checkpoints_by(self, metric: str, *, smaller_is_better: bool) -> Listing[Checkpoint]:
        """Those of its checkpoints with a validation that has ``metric``, the best first."""
        path = at("/api/v1/experiments/{}/checkpoints", self.id)
        order = "ORDER_BY_ASC" if smaller_is_better else "ORDER_BY_DESC"
        query: Query = {"sortByMetric": metric, "orderBy": order}
        return Listing(
            Checkpoint.read(value, self.session) for value in pages(self.session, path, "checkpoints", query)
        )

    def garbage(
        self,
        *,
        experiment_best: Optional[int] = None,
        trial_best: Optional[int] = None,
        trial_latest: Optional[int] = None,
    ) -> GcPreview:
        """What its policy, with these numbers in place, keeps of its checkpoints, and why; nothing is changed."""
        return garbage_of(
            self.session, self.id, experiment_best=experiment_best, trial_best=trial_best, trial_latest=trial_latest
        )

    def set_checkpoint_policy(self, policy: GcPolicy) -> None:
        """Keep so many of its checkpoints from now on; what is not kept is deleted at once."""
        set_policy(self.session, self.id, policy)

    def edit(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        max_slots: Optional[int] = None,
        unlimited: bool = False,
        time_limit: Optional[float] = None,
        without_time_limit: bool = False,
        weight: Optional[float] = None,
        priority: Optional[int] = None,
    ) -> Experiment:
        """Change what is given; None leaves a field as it is. ``unlimited``: without ``max_slots``; ``time_limit``:
        seconds for each of its runs."""
        texts: JsonObject = {"name": name, "description": description, "notes": notes}
        texts["labels"] = None if labels is None else list(labels)
        share = reading.without_nulls({"weight": weight, "priority": priority})
        if max_slots is not None or unlimited:
            # Null, and not its absence, takes the limit away.
            share["maxSlots"] = None if unlimited else max_slots
        if time_limit is not None or without_time_limit:
            share["timeLimit"] = None if without_time_limit else time_limit
        body = reading.without_nulls(texts)
        if share:
            body["resources"] = share
        answer = self.session.call("PATCH", at("/api/v1/experiments/{}", self.id), body=body)
        return Experiment.read(_whole(answer), self.session)

    def add_label(self, label: str) -> Tuple[str, ...]:
        """Its labels with this one; one that it has is not added again."""
        return self._label("PUT", label)

    def remove_label(self, label: str) -> Tuple[str, ...]:
        """Its labels without this one."""
        return self._label("DELETE", label)

    def _label(self, method: str, label: str) -> Tuple[str, ...]:
        answer = self.session.call(method, at("/api/v1/experiments/{}/labels/{}", self.id, label))
        return tuple(reading.texts(answer, "labels"))

    def move(self, project_id: int) -> None:
        """File it in another project."""
        path = at("/api/v1/experiments/{}/move", self.id)
        self.session.post(path, {"experimentId": self.id, "destinationProjectId": project_id})

    def set_log_retention(self, days: int) -> None:
        """Keep the output of its trials that many days after their end; -1: for ever."""
        path = at("/api/v1/experiments/{}/retain_logs", self.id)
        self.session.call("PUT", path, body={"experimentId": self.id, "numDays": days})

    def code(self) -> bytes:
        """The code that came with it: a gzip-compressed tar archive; empty for none."""
        answer = self.session.get(at("/api/v1/experiments/{}/model_def", self.id))
        return base64.b64decode(reading.text(answer, "b64Tgz"))

    def continued(self, override: str = "") -> Tuple[Experiment, List[str]]:
        """Let it go on after its end, with YAML text laid over its configuration; and what the master remarks.

        Raises NotNow where it has not ended, or where its search cannot go on.
        """
        body: JsonObject = {"id": self.id, "overrideConfig": override}
        answer = self.session.create("/api/v1/experiments/continue", body)
        return Experiment.read(_whole(answer), self.session), _remarks(answer)

    def delete_tensorboard_files(self) -> None:
        """Delete what its trials wrote for TensorBoard."""
        self.session.call("DELETE", at("/api/v1/experiments/{}/tensorboard-files", self.id))

    def best_checkpoint(self) -> Checkpoint:
        """The checkpoint with the best value of the searcher's metric. Raises NotFound when there is none."""
        for checkpoint in self.checkpoints():
            if checkpoint.searcher_metric is not None and checkpoint.has_files:
                return checkpoint
        raise NotFound(f"Experiment {self.id} has no checkpoint with a value of {self.metric} yet.")

    def logs(self, *, follow: bool = False, tail: Optional[int] = None) -> Iterator[LogLine]:
        """The output of its first trial. Raises NotFound before there is one."""
        trials = self.trials()
        if not trials:
            raise NotFound(f"Experiment {self.id} has no trial yet.")
        return trials[0].logs(follow=follow, tail=tail)


def get_experiment(session: Session, number: int) -> Experiment:
    """Experiment ``number``. Raises NotFound."""
    answer = session.get(at("/api/v1/experiments/{}", number))
    return Experiment.read(_whole(answer), session)


def list_experiments(
    session: Session,
    *,
    users: Sequence[str] = (),
    states: Sequence[str] = (),
    archived: Optional[bool] = False,
    limit: Optional[int] = None,
    name: str = "",
    description: str = "",
    labels: Sequence[str] = (),
    project_id: Optional[int] = None,
    sort: str = "id",
    descending: bool = True,
) -> List[Experiment]:
    """Experiments, the newest first; ``archived`` None: both kinds. ``sort``: one of ORDERS."""
    filters = ExperimentQuery(name, description, tuple(labels), tuple(users), tuple(states), archived, project_id)
    query: Query = {
        **filters.query(),
        "sortBy": f"SORT_BY_{sort.upper()}",
        "orderBy": "ORDER_BY_DESC" if descending else "ORDER_BY_ASC",
    }
    experiments: List[Experiment] = []
    for value in pages(session, "/api/v1/experiments", "experiments", query, size=min(limit or 200, 200)):
        if limit is not None and len(experiments) >= limit:
            break
        experiments.append(Experiment.read(value, session))
    return experiments


def create_experiment(
    session: Session,
    config: str,
    files: List[JsonObject],
    *,
    activate: bool = True,
    project_id: Optional[int] = None,
    template: Optional[str] = None,
    parent_id: Optional[int] = None,
    checks_script: bool = True,
) -> Tuple[Experiment, List[str]]:
    """Submit YAML text and code (see `tenax.client.context`); the experiment and what the master remarks.

    ``parent_id``: the experiment that it is a fork of, whose code it takes where none is given. ``checks_script``:
    whether the script that it runs must be sent; it may be in an image.
    Raises InvalidInput with every problem that was found; for a script that is not sent, before anything is.
    """
    if checks_script and template is None and (parent_id is None or files):
        check_script(config, files)
    body = _submission(config, files, project_id, template)
    answer = session.create("/api/v1/experiments", {**body, "activate": activate, "parentId": parent_id})
    return Experiment.read(_whole(answer), session), _remarks(answer)


@dataclass(frozen=True)
class ExpectedStart(Answer):
    """What would become of the first trials of an experiment, were it created now."""

    trials: int = part(reading.integer, "trials")
    #: So many of them would start at once.
    starting: int = part(reading.integer, "starting")
    #: Running trials or tasks of others that would be asked to save and leave for it.
    leaving: int = part(reading.integer, "leaving")
    #: Why the first of those that do not start would wait; empty: all start.
    reason: str = part(reading.text, "reason")
    #: What has to happen before that one starts: ``wait``, ``change`` or ``ask``, as of a `Job`.
    wait_class: str = made(lambda value: reading.text(value, "waitClass").lower())
    #: When that one is likely to start; None: nobody can say.
    likely_start: Optional[datetime.datetime] = part(reading.moment, "likelyStart")
    #: ``likely`` or ``guess``, as of a `JobExplanation`.
    sureness: str = made(lambda value: reading.text(value, "sureness").lower())

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        whose = "its trial" if self.trials == 1 else f"{self.starting} of its first {self.trials} trials"
        if self.starting == self.trials:
            begins = f"{'its trial' if self.trials == 1 else f'its first {self.trials} trials'} would start at once"
        elif self.starting:
            begins = f"{whose} would start at once, and the next {self.reason}"
        else:
            begins = f"nothing of it would start at once: its first trial {self.reason}"
        if self.likely_start is not None:
            when = self.likely_start.strftime("%Y-%m-%d %H:%M UTC")
            starts = "it is likely to start" if self.sureness == "likely" else "as a guess it starts"
            begins += f"; {starts} about {when}"
        leaving = "" if not self.leaving else f"; {self.leaving} of what runs would be asked to save and leave for it"
        return f"If it was created now, {begins}{leaving}."


@dataclass(frozen=True)
class Check:
    """What the master says of a submission of which nothing is made."""

    remarks: List[str]
    #: None where the queue is too long to say, or the master is older than this.
    forecast: Optional[ExpectedStart]


def check_experiment(
    session: Session,
    config: str,
    files: List[JsonObject],
    *,
    project_id: Optional[int] = None,
    template: Optional[str] = None,
) -> Check:
    """Ask what submitting it would come to. Raises InvalidInput as `create_experiment` does."""
    if template is None:
        check_script(config, files)
    body = _submission(config, files, project_id, template)
    answer = session.create("/api/v1/experiments", {**body, "validateOnly": True})
    forecast = reading.record(answer, "forecast")
    return Check(_remarks(answer), ExpectedStart.read(forecast) if forecast else None)


def _submission(config: str, files: List[JsonObject], project_id: Optional[int], template: Optional[str]) -> JsonObject:
    return {"config": config, "modelDefinition": list(files), "projectId": project_id, "template": template}


def _searcher(experiment: JsonObject) -> JsonObject:
    return reading.record(reading.record(experiment, "config"), "searcher")


def _remarks(answer: JsonObject) -> List[str]:
    notices = reading.texts(answer, "notices")
    warnings = reading.texts(answer, "warnings")
    if any(notice.startswith("it will wait") for notice in notices):
        # The notice gives the reason, too; the warning is for Determined's clients.
        warnings = [warning for warning in warnings if warning not in _REMARKS]
    return [_REMARKS.get(warning, warning) for warning in warnings] + notices


_REMARKS = {
    "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED": (
        "It asks for more slots than the pool has now: it waits until there are more."
    )
}


def _whole(answer: JsonObject) -> JsonObject:
    """The configuration stands beside the experiment in some answers."""
    value = dict(reading.record(answer, "experiment"))
    beside = reading.record(answer, "config")
    if beside and not reading.record(value, "config"):
        value["config"] = beside
    return value


__all__ = [
    "ENDED",
    "ORDERS",
    "VERBS",
    "Experiment",
    "create_experiment",
    "get_experiment",
    "list_experiments",
    "read_logs",
]


@dataclass(frozen=True)
class ExperimentQuery:
    """Which experiments are meant; an empty field or None restricts nothing."""

    #: A part of the name, whatever its case.
    name: str = ""
    description: str = ""
    #: All of them.
    labels: Tuple[str, ...] = ()
    users: Tuple[str, ...] = ()
    states: Tuple[str, ...] = ()
    archived: Optional[bool] = None
    project_id: Optional[int] = None

    def query(self) -> Query:
        """As parameters of a request."""
        return {
            "name": self.name or None,
            "description": self.description or None,
            "labels": list(self.labels),
            "users": list(self.users),
            "states": [f"STATE_{state}" for state in self.states],
            "archived": self.archived,
            "projectId": self.project_id,
        }


def count_experiments(session: Session, filters: ExperimentQuery) -> int:
    """How many there are."""
    answer = session.get("/api/v1/experiments", {**filters.query(), "limit": -2})
    return reading.integer(reading.record(answer, "pagination"), "total")


@dataclass(frozen=True)
class ExperimentOutcome:
    """How an action on many experiments ended for one of them."""

    id: int
    #: Why it failed; empty where it succeeded.
    error: str


def act_on_many(session: Session, verb: str, filters: ExperimentQuery, **more: int) -> List[ExperimentOutcome]:
    """Do something to all experiments that match, each by itself.

    ``verb``: one of VERBS, ``delete``, ``move`` (with ``destinationProjectId``) or ``retain_logs`` (with ``numDays``).
    """
    from tenax.client.users import get_user

    conditions: JsonObject = {
        "name": filters.name or None,
        "description": filters.description or None,
        "labels": list(filters.labels),
        "states": [f"STATE_{state}" for state in filters.states],
        "archived": filters.archived,
        "userIds": [get_user(session, user).id for user in filters.users],
    }
    body: JsonObject = {"experimentIds": [], "filters": conditions, "projectId": filters.project_id, **more}
    method = {"delete": "DELETE", "retain_logs": "PUT"}.get(verb, "POST")
    answer = session.call(method, at("/api/v1/projects/{}/experiments/{}", filters.project_id or 0, verb), body=body)
    return [
        ExperimentOutcome(reading.integer(result, "id"), reading.text(result, "error"))
        for result in reading.records(answer, "results")
    ]
