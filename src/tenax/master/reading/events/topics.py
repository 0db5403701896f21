"""Topics: what can be followed. A topic is named as the API names it: the path below ``/api/v1`` of what it is about.

experiments                 every experiment
projects/3/experiments      those of a project
experiments/7               one
experiments/7/trials        its trials
trials/12                   one, with how far its metrics and its output have come
tasks                       commands and generic tasks
tasks/ab12                  one, with how far its output has come
job-queues/default          the jobs of a pool
agents                      agents and their slots
workspaces                  workspaces and their projects
models                      models and their versions
master                      the message to everyone
users                       everyone
groups                      groups of users
tokens                      access tokens
join-tokens                 tokens with which agents join
templates                   templates
webhooks                    webhooks and their deliveries
users/5                     what concerns a person: their experiments and tasks
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tenax.errors import InvalidInput

#: Of one stream, and characters of each.
MAX_TOPICS, MAX_TOPIC = 64, 200
_MAX_NUMBER = 2**63


class Noun(str, Enum):
    """What a topic is about, as it is written; ``{}`` stands for which."""

    EXPERIMENTS = "experiments"
    PROJECT_EXPERIMENTS = "projects/{}/experiments"
    EXPERIMENT = "experiments/{}"
    EXPERIMENT_TRIALS = "experiments/{}/trials"
    TRIAL = "trials/{}"
    TASKS = "tasks"
    TASK = "tasks/{}"
    QUEUE = "job-queues/{}"
    AGENTS = "agents"
    WORKSPACES = "workspaces"
    MODELS = "models"
    MASTER = "master"
    USERS = "users"
    GROUPS = "groups"
    TOKENS = "tokens"
    JOIN_TOKENS = "join-tokens"
    TEMPLATES = "templates"
    WEBHOOKS = "webhooks"
    USER = "users/{}"

    def of(self, id: object) -> str:
        """The name of the topic about one of them."""
        return self.value.replace("{}", str(id))


_NUMBERED = frozenset({Noun.PROJECT_EXPERIMENTS, Noun.EXPERIMENT, Noun.EXPERIMENT_TRIALS, Noun.TRIAL, Noun.USER})


def _pattern(noun: Noun) -> re.Pattern[str]:
    part = r"([1-9][0-9]{0,18})" if noun in _NUMBERED else r"([^\x00-\x1f\x7f]+)"
    return re.compile(noun.value.replace("{}", part))


_PATTERNS = {noun: _pattern(noun) for noun in Noun}


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic."""

    name: str
    noun: Noun
    #: Which one it is about; empty where there is but one.
    id: str = ""

    @property
    def number(self) -> int:
        """Of what is numbered."""
        return int(self.id)


def parse(names: Iterable[str]) -> list[Topic]:
    """The topics of one stream, each once. Raises InvalidInput."""
    given = list(dict.fromkeys(names))
    if not given:
        raise InvalidInput("name what to follow: topic=experiments, and so on, at least once")
    if len(given) > MAX_TOPICS:
        raise InvalidInput(f"{len(given)} topics: at most {MAX_TOPICS} are followed by one stream")
    return [_topic(name) for name in given]


def _topic(name: str) -> Topic:
    if len(name) <= MAX_TOPIC:
        for noun, pattern in _PATTERNS.items():
            match = pattern.fullmatch(name)
            if match is not None:
                topic = Topic(name, noun, match[1] if match.groups() else "")
                if noun not in _NUMBERED or topic.number < _MAX_NUMBER:
                    return topic
    raise InvalidInput(f"there is no topic {name[:60]!r}: topics are {', '.join(noun.value for noun in Noun)}")
