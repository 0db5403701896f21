"""Asynchronous successive halving, several brackets: how early a trial may be stopped is itself varied.

Floats are computed in the order that the golden values were: truncations at exact powers depend on it (for example
``ln 1000 / ln 10`` is below 3).

Source: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning" (ASHA), MLSys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from tenax.search.brackets import BracketPlan, halving
from tenax.search.config import Map, Method


class Mode(str, Enum):
    """How many brackets with fewer rungs stand beside the longest one."""

    STANDARD = "standard"
    AGGRESSIVE = "aggressive"
    CONSERVATIVE = "conservative"


@dataclass(frozen=True, slots=True)
class AdaptiveAsha(Method):
    """Several brackets of ASHA over one random stream; the brackets follow from mode, rungs, trials and time."""

    name: ClassVar[str] = "adaptive_asha"
    has_rungs: ClassVar[bool] = True
    needs_validations: ClassVar[bool] = True
    continuable: ClassVar[bool] = False

    time_metric: str
    max_time: int
    max_trials: int
    mode: Mode = Mode.STANDARD
    divisor: float = 4.0
    max_rungs: int = 5
    max_concurrent_trials: int = 16
    #: Rungs of each bracket; overrides ``mode`` and ``max_rungs`` where it is not empty.
    bracket_rungs: tuple[int, ...] = ()

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """Those with most rungs first."""
        rungs = sorted(self.bracket_rungs or _bracket_rungs(self), reverse=True)
        trials = bracket_trials(self.max_trials, self.divisor, rungs)
        concurrency = bracket_concurrency(self.max_concurrent_trials, self.divisor, trials)
        return tuple(
            halving(count, self.max_time, self.divisor, most, at_once)
            for count, most, at_once in zip(rungs, trials, concurrency, strict=True)
        )

    def unit(self) -> str | None:
        """The time metric."""
        return self.time_metric

    def most_at_once(self) -> int | None:
        """The cap."""
        return self.max_concurrent_trials or None


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
