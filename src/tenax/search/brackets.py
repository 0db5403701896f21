"""The brackets of a search: how many trials each runs, how many at once, and where its rungs lie.

Rules:
- A method without rungs (single, random, grid) is one bracket with none.
- Floats are computed in the order that the golden values were: truncations at exact powers depend on it (for example
  ``ln 1000 / ln 10`` is below 3).

Source of the method: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning" (ASHA), MLSys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tenax.search import grid
from tenax.search.config import AdaptiveAsha, AsyncHalving, Grid, Mode, Random, SearchConfig, Single


@dataclass(frozen=True, slots=True)
class BracketPlan:
    """One bracket, as the configuration decides it."""

    max_trials: int
    #: 0: no cap.
    max_concurrent_trials: int
    #: Trials made at the start; each that ends makes place for one more.
    initial_trials: int
    #: Where each rung lies, ascending, in units of the time metric; empty under methods without rungs.
    units: tuple[int, ...] = ()
    divisor: float = 1.0


def plan_brackets(config: SearchConfig) -> tuple[BracketPlan, ...]:
    """The brackets of a search, those with most rungs first."""
    match config.method:
        case Single():
            return (_plain(1, 1),)
        case Random(max_trials, max_concurrent_trials):
            return (_plain(max_trials, max_concurrent_trials),)
        case Grid(max_concurrent_trials):
            return (_plain(grid.size(config.hyperparameters), max_concurrent_trials),)
        case AsyncHalving() as method:
            return (
                _halving(
                    method.num_rungs, method.max_time, method.divisor, method.max_trials, method.max_concurrent_trials
                ),
            )
        case AdaptiveAsha() as method:
            return _adaptive(method)


def rung_units(num_rungs: int, max_time: int, divisor: float) -> tuple[int, ...]:
    """Where each rung lies: ``max_time`` at the top, divided once more at each rung below, at least 1."""
    return tuple(max(int(max_time / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs))


def bracket_trials(max_trials: int, divisor: float, rungs: Sequence[int]) -> tuple[int, ...]:
    """``max_trials`` shared out so that brackets cost about the same; what rounding leaves goes to the first."""
    weights = [divisor ** (count - 1) / count for count in rungs]
    total = sum(weights)
    shares = [max(int(weight / total * max_trials), 1) for weight in weights]
    shares[0] += max(max_trials - sum(shares), 0)
    return tuple(shares)


def bracket_concurrency(max_concurrent_trials: int, divisor: float, trials: Sequence[int]) -> tuple[int, ...]:
    """The concurrent trials of each bracket; with no cap asked for, as many as the last bracket has trials."""
    if max_concurrent_trials == 0:
        return (max(trials[-1], int(divisor)),) * len(trials)
    each, remainder = divmod(max(max_concurrent_trials, len(trials)), len(trials))
    return tuple(each + (1 if i < remainder else 0) for i in range(len(trials)))


def _adaptive(method: AdaptiveAsha) -> tuple[BracketPlan, ...]:
    rungs = sorted(method.bracket_rungs or _bracket_rungs(method), reverse=True)
    trials = bracket_trials(method.max_trials, method.divisor, rungs)
    concurrency = bracket_concurrency(method.max_concurrent_trials, method.divisor, trials)
    return tuple(
        _halving(count, method.max_time, method.divisor, most, at_once)
        for count, most, at_once in zip(rungs, trials, concurrency, strict=True)
    )


def _bracket_rungs(method: AdaptiveAsha) -> Sequence[int]:
    most = min(
        method.max_rungs,
        int(math.log(method.max_time) / math.log(method.divisor)) + 1,
        int(math.log(method.max_trials) / math.log(method.divisor)) + 1,
    )
    match method.mode:
        case Mode.CONSERVATIVE:
            return range(1, most + 1)
        case Mode.STANDARD:
            return range((most - 1) // 2 + 1, most + 1)
        case Mode.AGGRESSIVE:
            return (most,)


def _halving(num_rungs: int, max_time: int, divisor: float, max_trials: int, concurrent: int) -> BracketPlan:
    initial = concurrent if concurrent > 0 else max(int(divisor ** (num_rungs - 1)), 1)
    return BracketPlan(
        max_trials, concurrent, min(initial, max_trials), rung_units(num_rungs, max_time, divisor), divisor
    )


def _plain(max_trials: int, concurrent: int) -> BracketPlan:
    return BracketPlan(max_trials, concurrent, min(max_trials, concurrent) if concurrent > 0 else max_trials)
