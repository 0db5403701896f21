"""What is said of something that changed: read in one statement for each kind, however much of it there is.

Fields are spelled as in the answers of the API. What is as it was when it was read last is not said again; what is not
there any more is said to be deleted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.reading.events.marks import OTHERS, Marked
from tenax.master.reading.events.topics import Noun, Topic
from tenax.master.store.database.connection import Database
from tenax.master.store.events import rows
from tenax.master.store.events.rows import MAX_LIVE_TRIALS, ExperimentNews, TrialNews

#: Kind, id, the topics that it is about, fields. The kind ``reset``: too much has changed in them.
News = tuple[str, "int | str", Collection[str], JsonObject]
#: Of each kind, what was read last.
MAX_SEEN = 20_000


@dataclass(slots=True)
class Seen:
    """What was read last."""

    experiments: dict[int, ExperimentNews] = field(default_factory=dict)
    trials: dict[int, TrialNews] = field(default_factory=dict)
    #: By experiment, its trials that go on.
    live: dict[int, dict[int, TrialNews]] = field(default_factory=dict)
    #: By trial and group of metrics, the newest step.
    steps: dict[int, dict[str, int]] = field(default_factory=dict)

    def forget(self, topic: Topic) -> None:
        """Nobody follows it any more."""
        if topic.noun is Noun.TRIAL:
            self.trials.pop(topic.number, None)
            self.steps.pop(topic.number, None)
        elif topic.noun is Noun.EXPERIMENT_TRIALS:
            self.live.pop(topic.number, None)


async def live_trials(conn: Connection, experiment_ids: Collection[int]) -> dict[int, dict[int, TrialNews]]:
    """By experiment, its trials that go on."""
    current = await rows.trials(conn, (), experiment_ids)
    return _by_experiment(experiment_ids, current.values())


async def read(database: Database, marked: Marked, seen: Seen, followed: Collection[str]) -> AsyncIterator[News]:
    """What there is to say of what was marked. Raises TryAgain."""
    if marked.queues:
        prefix = Noun.QUEUE.of("")
        for name in [name for name in followed if name.startswith(prefix)]:
            yield "job_queue", name.removeprefix(prefix), (name,), {}
    for kind, id in marked.others:
        yield kind, int(id) if id.isdecimal() else id, (OTHERS[kind].value,), {}
    for trial_id, steps in marked.steps.items():
        yield _metrics(trial_id, steps, seen)
    if not _asks(marked):
        return
    async with database.connection() as conn:
        news = [each async for each in _read(conn, marked, seen)]
    for each in news:
        yield each


def _asks(marked: Marked) -> bool:
    rest = (marked.experiments, marked.trial_lists, marked.trials, marked.tasks, marked.outputs, marked.agents)
    return any((*rest, marked.far_steps))


async def _read(conn: Connection, marked: Marked, seen: Seen) -> AsyncIterator[News]:
    if marked.experiments:
        current = await rows.experiments(conn, marked.experiments)
        for id in sorted(marked.experiments):
            for each in _experiment(id, current.get(id), seen):
                yield each
    if marked.trials or marked.trial_lists:
        before = {number for id in marked.trial_lists for number in seen.live.get(id, ())}
        read_trials = await rows.trials(conn, marked.trials | before, marked.trial_lists)
        for each in [*_trials(marked, read_trials, seen), *_lists(marked, read_trials, seen)]:
            yield each
    if marked.tasks:
        tasks = await rows.tasks(conn, marked.tasks)
        for task_id in sorted(marked.tasks):
            yield _task(task_id, tasks.get(task_id))
    if marked.outputs:
        for task_id, lines in (await rows.output_ends(conn, marked.outputs)).items():
            yield _output(task_id, lines, marked.trial_of_task.get(task_id))
    if marked.far_steps:
        for trial_id, steps in (await rows.newest_steps(conn, marked.far_steps)).items():
            yield _metrics(trial_id, steps, seen)
    if marked.agents:
        agents = await rows.agents(conn, marked.agents)
        for agent_id in sorted(marked.agents):
            yield _agent(agent_id, agents.get(agent_id))


def _experiment(id: int, news: ExperimentNews | None, seen: Seen) -> Iterable[News]:
    before = seen.experiments.pop(id, None)
    topics = [Noun.EXPERIMENTS.value, Noun.EXPERIMENT.of(id)]
    for each in (before, news):
        if each is not None:
            topics += [Noun.PROJECT_EXPERIMENTS.of(each.project_id), Noun.USER.of(each.owner_id)]
    if news is None:
        yield "experiment", id, topics, {"deleted": True}
        return
    seen.experiments[id] = news
    while len(seen.experiments) > MAX_SEEN:
        del seen.experiments[next(iter(seen.experiments))]
    if news != before:
        yield (
            "experiment",
            id,
            topics,
            {
                "projectId": news.project_id,
                "userId": news.owner_id,
                "name": news.name,
                "description": news.description,
                "labels": list(news.labels),
                "notesDigest": news.notes_digest,
                "state": f"STATE_{news.state}",
                "archived": news.archived,
                "progress": news.progress,
                "numTrials": news.trials,
                "bestTrialId": news.best_trial_id,
                "bestTrialSearcherMetric": news.best_metric,
                "checkpointCount": news.checkpoints,
                "endTime": _moment(news.ended_at),
                "reason": news.shown_reason,
            },
        )


def _trials(marked: Marked, current: dict[int, TrialNews], seen: Seen) -> Iterable[News]:
    """Those that are followed one by one."""
    for id in sorted(marked.trials):
        news, before = current.get(id), seen.trials.pop(id, None)
        if news is None:
            yield "trial", id, [Noun.TRIAL.of(id)], {"deleted": True}
            continue
        seen.trials[id] = news
        if news != before:
            yield _trial(news, [Noun.TRIAL.of(id)])


def _lists(marked: Marked, current: dict[int, TrialNews], seen: Seen) -> Iterable[News]:
    """Those that are followed as the list of their experiment."""
    now = _by_experiment(marked.trial_lists, current.values())
    for experiment_id in sorted(marked.trial_lists):
        topics = [Noun.EXPERIMENT_TRIALS.of(experiment_id)]
        before, live = seen.live.get(experiment_id), now[experiment_id]
        seen.live[experiment_id] = live
        if before is None or len(live) >= MAX_LIVE_TRIALS:
            yield "reset", experiment_id, topics, {}
            continue
        for id in sorted(live.keys() | before.keys()):
            news = current.get(id)
            if news is None:
                yield "trial", id, topics, {"deleted": True}
            elif news != before.get(id):
                yield _trial(news, topics)


def _by_experiment(experiment_ids: Collection[int], current: Iterable[TrialNews]) -> dict[int, dict[int, TrialNews]]:
    live: dict[int, dict[int, TrialNews]] = {id: {} for id in experiment_ids}
    for news in current:
        if news.live and news.experiment_id in live:
            live[news.experiment_id][news.id] = news
    return live


def _trial(news: TrialNews, topics: Collection[str]) -> News:
    fields: JsonObject = {
        "experimentId": news.experiment_id,
        "state": f"STATE_{news.state}",
        "runId": news.run_id,
        "restarts": news.restarts,
        "progress": news.progress,
        "searcherMetricValue": news.best_metric,
        "totalBatchesProcessed": news.total_batches,
        "endTime": _moment(news.ended_at),
    }
    return "trial", news.id, topics, fields


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _metrics(trial_id: int, steps: dict[str, int], seen: Seen) -> News:
    # All groups that are known: of what waits for a slow follower only the newest is sent.
    known = seen.steps.setdefault(trial_id, {})
    known |= steps
    return "metrics", trial_id, [Noun.TRIAL.of(trial_id)], {"steps": dict(known)}


def _output(task_id: str, lines: int, trial_id: int | None) -> News:
    topics = [Noun.TASK.of(task_id)]
    fields: JsonObject = {"lines": lines}
    if trial_id is not None:
        topics.append(Noun.TRIAL.of(trial_id))
        fields["trialId"] = trial_id
    return "output", task_id, topics, fields


def _task(task_id: str, news: rows.TaskNews | None) -> News:
    topics = [Noun.TASKS.value, Noun.TASK.of(task_id)]
    if news is None:
        return "task", task_id, topics, {"deleted": True}
    fields: JsonObject = {"state": f"STATE_{news.state}", "taskType": news.kind}
    fields |= {"userId": news.owner_id, "workspaceId": news.workspace_id}
    return "task", task_id, [*topics, Noun.USER.of(news.owner_id)], fields


def _agent(agent_id: str, news: rows.AgentNews | None) -> News:
    topics = [Noun.AGENTS.value]
    if news is None:
        return "agent", agent_id, topics, {"deleted": True}
    fields: JsonObject = {"resourcePool": news.pool, "enabled": news.state == "ENABLED"}
    fields |= {"draining": news.state == "DRAINING", "connected": news.connected}
    return "agent", agent_id, topics, {**fields, "slots": news.slots, "slotsInUse": news.slots_in_use}
