"""Searcher and entrypoint of a script's experiment: from what was asked for, and what the script's text says. Pure.

What is taken without being asked for is said (`remarks`), with the option that changes it. Where a wrong guess
would spoil a search (which metric ranks its trials, and which way), nothing is taken: it is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from tenax.cli.experiment.from_script.command_line import ScriptCall
from tenax.cli.experiment.from_script.reported import time_of, without_times
from tenax.core.hparams_in_words import filled
from tenax.core.local_runs.reading import is_better_when_smaller, main_of, suggests_smaller
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.wire.task_names import LAUNCHER, WITH_HPARAMS

GOALS = ("min", "max")
#: What a search counts time in where reports say nothing else: the steps that they are made at.
_STEPS = "batches"


@dataclass(frozen=True)
class ScriptMetrics:
    """What ranks trials, as far as it is known."""

    #: The script, for people.
    script: str
    #: Of the validations that its text names.
    names: Sequence[str]
    #: As it was asked for; empty: not at all.
    metric: str = ""
    goal: str = ""


@dataclass(frozen=True)
class SearchLimits:
    """How much is searched, as it was asked for."""

    trials: Optional[int] = None
    time: Optional[int] = None
    time_metric: str = ""


@dataclass(frozen=True)
class SearcherChoice:
    """A section of the configuration, and what has to be said of it."""

    searcher: JsonObject
    remarks: Tuple[str, ...]


def entrypoint(script: str, call: ScriptCall, slots: int) -> List[str]:
    """The command of each trial; with several slots one process for each."""
    launcher = ["-m", LAUNCHER] if slots > 1 else []
    if not call.spaces:
        return ["python3", *launcher, script, *filled(call.command, {})]
    return ["python3", "-m", WITH_HPARAMS, *launcher, script, *call.command]


def single_trial(metrics: ScriptMetrics) -> SearcherChoice:
    """One trial. A metric says which of its checkpoints is the best, and is taken as in a run by hand."""
    names = without_times(list(metrics.names))
    metric = metrics.metric or main_of(names)
    smaller = is_better_when_smaller(metric) if not metrics.goal else metrics.goal == GOALS[0]
    return SearcherChoice(
        {"name": "single", "metric": metric, "smaller_is_better": smaller}, _metric_remarks(metrics, metric, smaller)
    )


def searcher_for(call: ScriptCall, metrics: ScriptMetrics, limits: SearchLimits) -> SearcherChoice:
    """The method that fits what was asked for. Raises InvalidInput where something has to be asked."""
    if all(space.is_constant for space in call.spaces.values()):
        raise InvalidInput(
            "There is nothing to search: give a flag several values, as in --lr 1e-4..1e-1:log or --width 32,64,128. "
            "One trial is started by tenax submit."
        )
    method, more = _method(call, limits, metrics)
    metric = _metric(metrics)
    smaller = _smaller(metrics, metric)
    ranked: JsonObject = {"metric": metric, "smaller_is_better": smaller}
    return SearcherChoice(
        {"name": method["name"], **ranked, **method}, (*_metric_remarks(metrics, metric, smaller), *more)
    )


def _method(call: ScriptCall, limits: SearchLimits, metrics: ScriptMetrics) -> Tuple[JsonObject, Tuple[str, ...]]:
    """The searcher's own settings, and what has to be said of them."""
    trials, time = limits.trials, limits.time
    points = _points(call)
    if time is None and limits.time_metric:
        raise InvalidInput("--time-metric says what --time counts: add --time, the value at which a trial is whole.")
    if time is not None and trials is None:
        raise InvalidInput("--time stops the worse of many trials early: say how many begin, as in --trials 20.")
    if time is not None:
        reported = time_of(list(metrics.names))
        counted = limits.time_metric or reported or _STEPS
        method: JsonObject = {"name": "adaptive_asha", "time_metric": counted, "max_time": time, "max_trials": trials}
        summary = f"adaptive_asha: {trials} trials, of which the best go on to {counted} = {time}"
        if limits.time_metric:
            return method, (f"{summary}.",)
        what = f"{metrics.script} reports {counted}" if reported else "counted by the step of each validation"
        return method, (f"{summary} ({what}; --time-metric takes another).",)
    if trials is not None:
        summary = f"random: {trials} trials to their end; with --time the worse ones are stopped early."
        return {"name": "random", "max_trials": trials}, (summary,)
    if points is not None:
        summary = f"grid: all {points} combinations; with --trials some of them, drawn at random."
        return {"name": "grid"}, (summary,)
    raise InvalidInput(
        "A range has no end of values: say how many trials to draw, as in --trials 20; with --time the worse ones are "
        "stopped early."
    )


def _points(call: ScriptCall) -> Optional[int]:
    counts = [space.points for space in call.spaces.values()]
    return None if None in counts else math.prod(count for count in counts if count is not None)


def _metric(metrics: ScriptMetrics) -> str:
    """Raises InvalidInput where the text of the script does not leave exactly one."""
    names = without_times(list(metrics.names))
    if metrics.metric:
        return metrics.metric
    if len(names) == 1:
        return names[0]
    if not names:
        raise InvalidInput(
            "Say which validation metric ranks the trials: --metric NAME, as the script reports it. The text of "
            f"{metrics.script} does not say (it calls report_validation_metrics with no name that stands there)."
        )
    raise InvalidInput(
        f"{metrics.script} reports {', '.join(names[:-1])} and {names[-1]}: say which one ranks the trials, as in "
        f"--metric {main_of(names)}."
    )


def _smaller(metrics: ScriptMetrics, metric: str) -> bool:
    """Raises InvalidInput where nobody says."""
    if metrics.goal:
        return metrics.goal == GOALS[0]
    smaller = suggests_smaller(metric)
    if smaller is None:
        raise InvalidInput(f"Say whether smaller or greater values of {metric} are better: --goal min or --goal max.")
    return smaller


def _metric_remarks(metrics: ScriptMetrics, metric: str, smaller: bool) -> Tuple[str, ...]:
    """What was taken without being asked for."""
    goal = GOALS[0] if smaller else GOALS[1]
    if metrics.metric and metrics.goal:
        return ()
    why = "as it is usual" if suggests_smaller(metric) is None else "as its name suggests"
    if metrics.metric:
        return (f"metric: {metric}, --goal {goal}, {why}.",)
    where = f"{metrics.script} reports it" if metric in metrics.names else f"{metrics.script} names none"
    way = "" if metrics.goal else f", --goal {goal}, {why}"
    return (f"metric: {metric} ({where}; --metric takes another){way}.",)
