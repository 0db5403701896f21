"""What a person sees of a running search: how far it is, what stands on its rungs, what a search would do.

Rules:
- Progress lies in [0, 1], never counts a replaced trial, and is 1 when the search has ended with a result; one that has
  failed or was canceled stays where it was. It is computed here alone.
- Trials that end by themselves below the bottom rung have arrived, or a search that they end would never come near 1:
  Determined counts them nowhere (architecture 6.2).
- Trials that failed or were canceled with nothing that the search could rank are neither done nor to be done: a search
  of those alone is at 0.
- Everything here is computed from the state or the configuration alone; nothing is changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tenax.ids import RequestId
from tenax.search.config import SearchConfig
from tenax.search.journal import FAILED_VALUE, ExitReason
from tenax.search.state import Bracket, State

#: Until every trial has come to the bottom rung, the rest of their training counts as this share of the work.
_ARRIVALS_WEIGHT = 1.2


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a search is by itself."""

    #: What is done of it, in [0, 1].
    settled: float
    #: What a trial that runs adds to it when it is done; 0: nothing, its validations and its end alone count.
    share: float


@dataclass(frozen=True, slots=True)
class RungView:
    """One rung of one bracket."""

    bracket: int
    rung: int
    #: Where it lies, in units of the time metric.
    units: int
    #: Trials that have entered it: those that came further, and those whose last one it is.
    count: int
    #: Of those whose last rung it is: the search stopped them there; they ended there, or at the top; they
    #: train on from it.
    stopped: int
    ended: int
    running: int
    #: The best of them and its metric as reported; None while no trial has a finite metric there.
    best: RequestId | None
    best_metric: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a search."""

    max_trials: int
    created: int
    running: int
    finished: int
    failed: int
    canceled: int
    #: Trials that the search stopped, also those that reached the top rung.
    stopped: int
    replaced: int


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """``count`` trials train to ``units`` of the time metric; None: to their own end."""

    count: int
    units: int | None


def standing(state: State) -> Standing | None:
    """How far the search is, by itself; None: it has ended without a result, and stays where it was.

    Without rungs: the mean over all ``max_trials`` but those that failed or were canceled, to which those that run add
    their own progress. With rungs: the mean over the brackets of the share of trials that arrived at the bottom rung,
    and once all have, of the share that is over.
    """
    if state.shutdown is not None:
        return None if state.shutdown.cancel or state.shutdown.failure else Standing(1.0, 0.0)
    if any(bracket.rungs for bracket in state.brackets):
        counts = _counts_by_bracket(state)
        parts = [
            _bracket_progress(bracket, *counts[number])
            for number, bracket in enumerate(state.brackets)
            if counts[number][1] < bracket.plan.max_trials
        ]
        return Standing(_unit(sum(parts) / max(len(parts), 1)), 0.0)
    finished = state.exits[ExitReason.FINISHED]
    return mean(finished, state.max_trials - (state.closed - state.replaced - finished))


def mean(ended: int, trials: int) -> Standing:
    """Where ``ended`` of so many trials are over, and each counts alike."""
    most = max(trials, 1)
    return Standing(_unit(ended / most), 1 / most)


def progress(at: Standing, reported: Iterable[float]) -> float:
    """How far the search is, in [0, 1]; ``reported`` is the progress that its running trials told of themselves."""
    return _unit(at.settled + at.share * sum(_unit(value) for value in reported))


def of_trial(reported: float | None, reached: float | None, length: float | None) -> float:
    """How far a trial is, in [0, 1]: what it told of itself, else how much of its length it has reached."""
    if reported is not None:
        return _unit(reported)
    return _unit(reached / length) if reached is not None and length else 0.0


def rungs(state: State) -> tuple[RungView, ...]:
    """Every rung, brackets in order, bottom rung first."""
    last = _last_rungs(state)
    return tuple(
        _rung_view(state, number, level, last)
        for number, bracket in enumerate(state.brackets)
        for level in range(len(bracket.rungs))
    )


def summary(state: State) -> Summary:
    """The counts of the search as it stands."""
    return Summary(
        max_trials=state.max_trials,
        created=len(state.trials),
        running=len(state.trials) - state.closed,
        finished=state.exits[ExitReason.FINISHED],
        failed=state.exits[ExitReason.ERRORED] + state.exits[ExitReason.INVALID_HP] - state.replaced,
        canceled=state.exits[ExitReason.USER_CANCELED],
        stopped=state.stopped,
        replaced=state.replaced,
    )


def preview(config: SearchConfig) -> tuple[PreviewRow, ...]:
    """How many trials would train how long, if no trial failed; ascending in length."""
    counts: dict[int | None, int] = {}
    for plan in config.brackets():
        going = plan.max_trials
        for units in plan.units[:-1]:
            on = max(int(going / plan.divisor), 1)
            counts[units] = counts.get(units, 0) + going - on
            going = on
        last = plan.units[-1] if plan.units else None
        counts[last] = counts.get(last, 0) + going
    return tuple(PreviewRow(count, units) for units, count in sorted(counts.items(), key=lambda item: item[0] or 0))


def time_metric(config: SearchConfig) -> str | None:
    """The name of the unit that rungs are counted in; None under methods without rungs."""
    return config.method.unit()


def _last_rungs(state: State) -> Counter[tuple[int, int, str]]:
    """How many trials have (bracket, rung) as their last one, by what they do there: stopped, ended, running."""
    last: Counter[tuple[int, int, str]] = Counter()
    for trial in state.trials.values():
        if trial.entered == 0:
            continue
        level = trial.entered - 1
        at_top = level == len(state.brackets[trial.bracket].rungs) - 1
        if trial.stopped_at is not None and not at_top:
            last[trial.bracket, level, "stopped"] += 1
        elif trial.open:
            last[trial.bracket, level, "running"] += 1
        else:
            last[trial.bracket, level, "ended"] += 1
    return last


def _rung_view(state: State, number: int, level: int, last: Counter[tuple[int, int, str]]) -> RungView:
    rung = state.brackets[number].rungs[level]
    best: RequestId | None = None
    metric: float | None = None
    if rung.values and rung.values[0] < FAILED_VALUE:
        best = rung.trials[0]
        metric = rung.values[0] if state.config.smaller_is_better else -rung.values[0]
    stopped, ended, running = (last[number, level, what] for what in ("stopped", "ended", "running"))
    return RungView(number, level, rung.units, len(rung.values), stopped, ended, running, best, metric)


def _counts_by_bracket(state: State) -> list[tuple[int, int]]:
    """Of each bracket: trials that are over, and those of them that failed or were canceled below the bottom rung."""
    over, lost = [0] * len(state.brackets), [0] * len(state.brackets)
    for trial in state.trials.values():
        if trial.exit is not None and trial.replaced_by is None:
            over[trial.bracket] += 1
            # Where it failed it was put last into the next rung.
            early = trial.stopped_at is None and trial.entered == 1
            lost[trial.bracket] += early and trial.exit is not ExitReason.FINISHED
    return list(zip(over, lost))


def _bracket_progress(bracket: Bracket, over: int, lost: int) -> float:
    most = bracket.plan.max_trials - lost
    arrived = len(bracket.rungs[0].values) + bracket.skipped - lost
    share = arrived / (_ARRIVALS_WEIGHT * most)
    return max(share, (over - lost) / most) if arrived >= most else share


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
