"""A run in detached mode: what its script says of it, and what it goes on from. Standard library only, Python 3.9.

Two runs of the same ``external_trial_id`` in the same experiment are one trial. Where to go on is the cluster's word;
where no cluster answers, it is the newest checkpoint that the runs of this machine have stored under that name.
"""

from __future__ import annotations

import os

from tenax.core.local_runs.by_hand import RUN_DIRECTORY
from tenax.core.local_runs.files import local_runs
from tenax.core.local_runs.reading import RunStory, times_of, trial_of
from tenax.core.values import plain
from tenax.errors import InvalidInput, NotNow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from tenax.client.connection.session import Session
    from tenax.core.local_runs.files import LocalRun
    from tenax.jsonvalue import Json, JsonObject

_TEXTS = ("name", "description", "workspace", "project", "external_experiment_id", "external_trial_id")
_KEYS = ("external_experiment_id", "external_trial_id")
#: Of broken text, which cannot be sent.
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))
#: As the master takes them.
_MAX_KEY = 500
_OF_THE_EXPERIMENT = ("name", "description", "labels", "data", "workspace", "project", "searcher")


class Detached:
    """``card``: what ``run.json`` says more than of other runs; ``config``: what the script says of its experiment;
    ``open_session``: how to come to the cluster."""

    def __init__(
        self, card: JsonObject, config: JsonObject, open_session: Optional[Callable[[], Session]] = None
    ) -> None:
        self.card = card
        self.config = config
        self.open_session = open_session


def card_of(config: JsonObject) -> JsonObject:
    """What a run's card says of the fields of ``core_v2.Config``. Raises InvalidInput, NotNow, TypeError."""
    for name in _TEXTS:
        if config.get(name) is not None and not isinstance(config[name], str):
            raise TypeError(f"core_v2.Config({name}=...) was given a {type(config[name]).__name__}: give a text")
    for name in _KEYS:
        _check_key(name, config.get(name))
    named: JsonObject = {
        "name": config.get("name"),
        "description": config.get("description"),
        "labels": _labels(config.get("labels")),
        "data": _plain("data", config.get("data")),
        "project": _project(config),
        "experimentKey": config.get("external_experiment_id"),
        "trialKey": config.get("external_trial_id"),
        **_ranking(config.get("searcher")),
    }
    card: JsonObject = {name: value for name, value in named.items() if value not in (None, "", [], {})}
    # Under `tenax track` the command has said which trial it is, and where that goes on.
    own = "trialKey" in card and not os.environ.get(RUN_DIRECTORY)
    return {**card, **_going_on(card)} if own else card


def config_of(config: JsonObject) -> JsonObject:
    """The same fields as they stand in the configuration of an experiment. Raises TypeError."""
    section = {name: config[name] for name in _OF_THE_EXPERIMENT if config.get(name) is not None}
    return {name: _plain(name, value) for name, value in section.items()}


def _going_on(card: JsonObject) -> JsonObject:
    """After what this machine has of the same trial."""
    earlier = require_none_runs(card)
    if not earlier:
        return {}
    # Names tell the second alone.
    earlier.sort(key=lambda run: times_of(run)[0], reverse=True)
    return {"resumedFrom": earlier[0].name, "checkpoint": _latest(earlier)}


def require_none_runs(card: JsonObject) -> list[LocalRun]:
    """The runs of this machine of the same trial, all of which have ended. Raises NotNow where one has not.

    All are asked: where a clock was put back, the one that runs is not the newest.
    """
    runs = [run for run in local_runs() if trial_of(run.card) == trial_of(card)]
    for run in runs:
        if run.is_alive():
            raise NotNow(
                f"external_trial_id {card['trialKey']!r} is a trial that runs: local run {run.name} has not ended. "
                "Give this one another id, or end that one"
            )
    return runs


def _latest(runs: list[LocalRun]) -> Optional[str]:
    """The checkpoint to go on from; ``runs``: of the trial, the newest first."""
    gone: set[str] = set()
    for run in runs:
        story = RunStory(run)
        if story.kept:
            return story.kept[-1].uuid
        gone.update(story.checkpoints)
    # Of a run that is here no longer.
    before = runs[0].card.get("checkpoint")
    return before if isinstance(before, str) and before not in gone else None


def _check_key(name: str, key: Json) -> None:
    """Raises InvalidInput for a name that no cluster would ever take."""
    from tenax.display.terminal import is_name

    if not isinstance(key, str) or not key:
        return
    if not key.strip() or len(key) > _MAX_KEY or not is_name(key) or _SURROGATES.intersection(key):
        raise InvalidInput(
            f"core_v2.Config({name}=...) must have 1 to {_MAX_KEY} characters that can be shown in a line"
        )
    if key in (".", ".."):  # which an address does not keep
        raise InvalidInput(f"core_v2.Config({name}={key!r}): give another name, no dots alone")


def _ranking(searcher: Json) -> JsonObject:
    if searcher is None:
        return {}
    metric = searcher.get("metric") if isinstance(searcher, dict) else None
    if not isinstance(searcher, dict) or not isinstance(metric, str):
        raise InvalidInput(
            "core_v2.Config(searcher=...) says which metric ranks the trial, such as "
            '{"name": "single", "metric": "validation_loss", "smaller_is_better": True}'
        )
    smaller = searcher.get("smaller_is_better", True)
    if not isinstance(smaller, bool):
        raise InvalidInput(f"core_v2.Config(searcher=...): smaller_is_better is {smaller!r}: give True or False")
    return {"metric": metric, "smallerIsBetter": smaller}


def _project(config: JsonObject) -> Optional[str]:
    workspace, project = config.get("workspace"), config.get("project")
    if not workspace and not project:
        return None
    if not workspace or not project:
        raise InvalidInput("core_v2.Config(workspace=..., project=...): give both, or neither")
    return f"{workspace}/{project}"


def _labels(labels: Json) -> Json:
    if labels is not None and not (
        isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels)
    ):
        raise TypeError("core_v2.Config(labels=...) takes a list of texts")
    return list(labels) if isinstance(labels, (list, tuple)) else None


def _plain(name: str, value: Json) -> Json:
    try:
        return plain(value, name) if value is not None else None
    except TypeError as error:
        raise TypeError(f"core_v2.Config({name}=...): {error}") from None
