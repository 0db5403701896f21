"""What has to be looked at: wake-ups, as far as somebody follows what they are about, gathered until they are read.

Wake-ups name what loops and waiters wait for (an attempt, a task's output); here they become what pages show.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from tenax.master.reading.events.topics import Noun, Topic
from tenax.master.store.allocations.containers import FREED
from tenax.master.store.events.rows import TrialPlace

#: Wake-ups that say something about what can be followed.
KINDS = (
    *("experiment", "experiment_edited", "search", "progress", "logs", "task", "allocation", "scheduling", "agent"),
    *("queue", "workspace", "project", "model", "model_version", "cluster_message"),
    *("user", "group", "token", "join_token", "template", "webhook", "delivery"),
)
#: Of these nothing is told but that they have changed: who shows them fetches them again.
OTHERS = {
    "workspace": Noun.WORKSPACES,
    "project": Noun.WORKSPACES,
    "model": Noun.MODELS,
    "model_version": Noun.MODELS,
    "cluster_message": Noun.MASTER,
    "user": Noun.USERS,
    "group": Noun.GROUPS,
    "token": Noun.TOKENS,
    "join_token": Noun.JOIN_TOKENS,
    "template": Noun.TEMPLATES,
    "webhook": Noun.WEBHOOKS,
    "delivery": Noun.WEBHOOKS,
}
#: The jobs of a pool are fetched as a whole, so they are named once in it.
_QUEUES_S = 1.0
#: How far an experiment is, is stored so long after its trials said how far they are (the loop `progress`).
_PROGRESS_S = 2.0
#: Topics of which every experiment may be one.
_LISTS = frozenset({Noun.EXPERIMENTS, Noun.PROJECT_EXPERIMENTS, Noun.USER})


@dataclass(slots=True)
class Marked:
    """What has to be looked at now."""

    experiments: set[int] = field(default_factory=set)
    #: Experiments whose trials are followed as a list.
    trial_lists: set[int] = field(default_factory=set)
    trials: set[int] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    #: Tasks that have put something out.
    outputs: set[str] = field(default_factory=set)
    #: By trial and group of metrics, the newest step.
    steps: dict[int, dict[str, int]] = field(default_factory=dict)
    #: Trials whose steps another master has.
    far_steps: set[int] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    #: Something was queued, placed or let go.
    queues: bool = False
    #: (kind, id) of what is fetched by those who show it.
    others: set[tuple[str, str]] = field(default_factory=set)
    #: By the task's name, the followed trial that it is of.
    trial_of_task: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        marked = (self.experiments, self.trial_lists, self.trials, self.tasks, self.outputs, self.steps, self.far_steps)
        return any(map(bool, (*marked, self.agents, self.queues, self.others)))


class Marks:
    """For one event loop."""

    def __init__(self, followed: Container[str]) -> None:
        #: Names of the topics that are followed.
        self._followed = followed
        self._nouns: Counter[Noun] = Counter()
        self._trial_of_task: dict[str, int] = {}
        self._task_of_trial: dict[int, TrialPlace] = {}
        self._trials_of: dict[int, set[int]] = {}
        self._now = Marked()
        #: By experiment, when it is looked at, on the monotonic clock.
        self._later: dict[int, float] = {}
        #: Whether queues have changed, and when they were named last.
        self._queues = False
        self._queues_at = -math.inf

    @property
    def followed_trials(self) -> list[int]:
        """Trials whose metrics are followed."""
        return list(self._task_of_trial)

    def begin(self, topic: Topic, places: Mapping[int, TrialPlace]) -> None:
        """A topic is followed from now on."""
        self._nouns[topic.noun] += 1
        place = places.get(topic.number) if topic.noun is Noun.TRIAL else None
        if place is not None:
            self._task_of_trial[topic.number] = place
            self._trial_of_task[place.task_id] = topic.number
            self._trials_of.setdefault(place.experiment_id, set()).add(topic.number)

    def end(self, topic: Topic) -> None:
        """A topic is not followed any more."""
        self._nouns[topic.noun] -= 1
        place = self._task_of_trial.pop(topic.number, None) if topic.noun is Noun.TRIAL else None
        if place is not None:
            self._trial_of_task.pop(place.task_id, None)
            rest = self._trials_of.get(place.experiment_id, set())
            rest.discard(topic.number)
            if not rest:
                self._trials_of.pop(place.experiment_id, None)

    def note(self, kind: str, id: str) -> bool:
        """A wake-up; whether it is about something that is followed."""
        if kind in ("experiment", "experiment_edited", "search"):
            return id.isdecimal() and self._experiment(int(id))
        if kind == "progress":
            return id.isdecimal() and self._progress(int(id))
        if kind == "logs":
            return self._output(id)
        if kind == "allocation":
            return self._attempt(id.rpartition(".")[0])
        if kind == "task":
            return self._task(id)
        if kind in ("queue", "scheduling"):
            agent_id = id.removeprefix(FREED) if id.startswith(FREED) else ""
            return self._queue() | self._agent(agent_id)
        if kind == "agent":
            return self._agent(id)
        if self._nouns[OTHERS[kind]]:
            self._now.others.add((kind, id))
        return bool(self._now.others)

    def stored(self, trial_id: int, group: str, step: int) -> bool:
        """Metrics of a trial were stored here; whether it is followed."""
        if trial_id not in self._task_of_trial:
            return False
        self._now.steps.setdefault(trial_id, {})[group] = step
        return True

    def stored_elsewhere(self, trial_id: int) -> bool:
        """Another master has stored metrics of a trial; whether it is followed."""
        if trial_id not in self._task_of_trial:
            return False
        self._now.far_steps.add(trial_id)
        return True

    def due_in_s(self) -> float | None:
        """When what waits is to be looked at; None: nothing does."""
        due = [*self._later.values(), *([self._queues_at + _QUEUES_S] if self._queues else [])]
        return None if not due else max(0.0, min(due) - time.monotonic())

    def take(self) -> Marked:
        """All that was gathered; it begins anew."""
        now = time.monotonic()
        for experiment_id in [key for key, due in self._later.items() if due <= now]:
            del self._later[experiment_id]
            self._experiment(experiment_id)
        taken, self._now = self._now, Marked()
        if self._queues and now >= self._queues_at + _QUEUES_S:
            taken.queues, self._queues, self._queues_at = True, False, now
        taken.trial_of_task = self._trial_of_task
        return taken

    def _experiment(self, experiment_id: int) -> bool:
        about = False
        if self._shows(experiment_id):
            self._now.experiments.add(experiment_id)
            about = True
        if Noun.EXPERIMENT_TRIALS.of(experiment_id) in self._followed:
            self._now.trial_lists.add(experiment_id)
            about = True
        trials = self._trials_of.get(experiment_id)
        if trials:
            self._now.trials |= trials
            about = True
        return about

    def _shows(self, experiment_id: int) -> bool:
        in_list = any(self._nouns[noun] for noun in _LISTS)
        return in_list or Noun.EXPERIMENT.of(experiment_id) in self._followed

    def _progress(self, experiment_id: int) -> bool:
        if not (
            self._shows(experiment_id)
            or experiment_id in self._trials_of
            or Noun.EXPERIMENT_TRIALS.of(experiment_id) in self._followed
        ):
            return False
        # What comes in meanwhile is looked at with it.
        self._later.setdefault(experiment_id, time.monotonic() + _PROGRESS_S)
        return True

    def _output(self, task_id: str) -> bool:
        if task_id in self._trial_of_task or Noun.TASK.of(task_id) in self._followed:
            self._now.outputs.add(task_id)
            return True
        return False

    def _attempt(self, task_id: str) -> bool:
        """Of a trial, whose task is named by its experiment; or of another task."""
        experiment, dot, _ = task_id.partition(".")
        of_trial = bool(dot) and experiment.isdecimal()
        return self._queue() | (self._experiment(int(experiment)) if of_trial else self._task(task_id))

    def _queue(self) -> bool:
        """Something was queued, placed or let go."""
        self._queues = self._queues or bool(self._nouns[Noun.QUEUE])
        return self._queues

    def _agent(self, agent_id: str) -> bool:
        if self._nouns[Noun.AGENTS] and agent_id:
            self._now.agents.add(agent_id)
        return bool(self._now.agents)

    def _task(self, task_id: str) -> bool:
        if self._nouns[Noun.TASKS] or self._nouns[Noun.USER] or Noun.TASK.of(task_id) in self._followed:
            self._now.tasks.add(task_id)
            return True
        return False
