"""Builders: search configurations from the form that case files use, and journals of random histories."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tenax.search.config import Categorical, Const, Double, Hyperparameter, Int, Log, Map, Method, SearchConfig
from tenax.search.journal import (
    Create,
    Decision,
    Exited,
    ExitReason,
    SearchEntry,
    SearchFact,
    Shutdown,
    Started,
    Stop,
    Validated,
)
from tenax.search.methods.adaptive_asha import AdaptiveAsha, Mode
from tenax.search.methods.async_halving import AsyncHalving
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single
from tenax.search.searcher import start, step
from tenax.search.state import State

X = Map({"x": Int(0, 10)})


def hyperparameter(value: Mapping[str, Any]) -> Hyperparameter:
    """One hyperparameter as configuration files spell it."""
    count = value.get("count")
    match value.get("type"):
        case "const":
            return Const(value["val"])
        case "int":
            return Int(value["minval"], value["maxval"], count)
        case "double":
            return Double(value["minval"], value["maxval"], count)
        case "log":
            return Log(value["minval"], value["maxval"], value["base"], count)
        case "categorical":
            return Categorical(tuple(value["vals"]))
    return Map({name: hyperparameter(child) for name, child in value.items()})


def space(value: Mapping[str, Any]) -> Map:
    """A whole space; its top level is always a map."""
    return Map({name: hyperparameter(child) for name, child in value.items()})


def search(value: Mapping[str, Any], hyperparameters: Map = X) -> SearchConfig:
    """A search as configuration files spell it under ``searcher``."""
    metric, smaller = value.get("metric", "loss"), value.get("smaller_is_better", True)
    return SearchConfig(hyperparameters, method(value), metric, smaller)


def method(value: Mapping[str, Any]) -> Method:
    """The method of a ``searcher`` block, with its defaults."""
    concurrent = value.get("max_concurrent_trials", 16)
    match value["name"]:
        case "single":
            return Single()
        case "random":
            return Random(value["max_trials"], concurrent)
        case "grid":
            return Grid(concurrent)
    time_metric, most, divisor = value.get("time_metric", "batches"), value["max_trials"], value.get("divisor", 4.0)
    if value["name"] == "async_halving":
        return AsyncHalving(time_metric, value["max_time"], most, value.get("num_rungs", 5), divisor, concurrent)
    return AdaptiveAsha(
        time_metric,
        value["max_time"],
        most,
        Mode(value.get("mode", "standard")),
        divisor,
        value.get("max_rungs", 5),
        concurrent,
        tuple(value.get("bracket_rungs", ())),
    )


def asha(max_trials: int = 16, concurrent: int = 4, **changes: Any) -> SearchConfig:
    """One bracket of three rungs at 1, 4 and 16."""
    smaller = changes.pop("smaller_is_better", True)
    values = {"max_time": 16, "num_rungs": 3, "divisor": 4.0, **changes}
    halving = AsyncHalving("batches", max_trials=max_trials, max_concurrent_trials=concurrent, **values)
    return SearchConfig(X, halving, "loss", smaller)


class Run:
    """A search being lived through, with its journal beside it."""

    def __init__(self, config: SearchConfig, seed: int = 0) -> None:
        self.config = config
        self.state: State
        self.state, self.first = start(config, seed)
        self.journal: list[SearchEntry] = [Started(seed), *self.first]

    def tell(self, fact: SearchFact) -> list[Decision]:
        """Record a fact and what is decided on it."""
        decisions = step(self.state, fact)
        self.journal += [fact, *decisions]
        return decisions

    def exit(self, trial: int, reason: ExitReason = ExitReason.FINISHED) -> list[Decision]:
        """The end of a trial, by its number in order of creation."""
        return self.tell(Exited(self.ids[trial], reason))

    def report(self, trial: int, time: float, metric: float, number: int | None = None) -> list[Decision]:
        """A validation of a trial, by its number; at the step of its time unless told otherwise."""
        return self.tell(Validated(self.ids[trial], int(time) if number is None else number, metric, time))

    @property
    def ids(self) -> list[Any]:
        """Request ids in order of creation."""
        return list(self.state.trials)

    @property
    def creates(self) -> list[Create]:
        """All trials made."""
        return [entry for entry in self.journal if isinstance(entry, Create)]


def stops(decisions: list[Decision]) -> list[Stop]:
    """The stops among decisions."""
    return [decision for decision in decisions if isinstance(decision, Stop)]


def creates(decisions: list[Decision]) -> list[Create]:
    """The creations among decisions."""
    return [decision for decision in decisions if isinstance(decision, Create)]


def shutdown(decisions: list[Decision]) -> Shutdown | None:
    """The end of the search, where it is among decisions."""
    return next((decision for decision in decisions if isinstance(decision, Shutdown)), None)


def live(run: Run, rng: random.Random, facts: int, invalid: float = 0.1) -> None:
    """Tell a search a random history of at most ``facts`` facts: reports, repeats, ends of every kind."""
    steps: dict[str, int] = {}
    for _ in range(facts):
        running = [trial for trial in run.state.trials.values() if trial.exit is None]
        if not running:
            return
        trial = rng.choice(running)
        draw = rng.random()
        if trial.stopped_at is not None and draw < 0.5:
            run.tell(Exited(trial.request_id, ExitReason.FINISHED))
        elif draw < 0.75:
            number = steps.get(trial.request_id, 0) + rng.choice([0, 1, 1, 3])
            steps[trial.request_id] = number
            metric = rng.choice([rng.random(), float("nan"), 0.5, float("-inf"), rng.random()])
            run.tell(Validated(trial.request_id, number, metric, float(number)))
        elif draw < 0.75 + invalid:
            run.tell(Exited(trial.request_id, ExitReason.INVALID_HP))
        else:
            run.tell(Exited(trial.request_id, rng.choice(list(ExitReason)[:3])))
