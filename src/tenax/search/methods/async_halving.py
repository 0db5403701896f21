"""Asynchronous successive halving, one bracket.

Source: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning" (ASHA), MLSys 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenax.search.brackets import BracketPlan, halving
from tenax.search.config import Map, Method


@dataclass(frozen=True, slots=True)
class AsyncHalving(Method):
    """One bracket of ASHA, stopping variant, with ``num_rungs`` rungs."""

    name: ClassVar[str] = "async_halving"
    has_rungs: ClassVar[bool] = True
    needs_validations: ClassVar[bool] = True
    continuable: ClassVar[bool] = False

    #: Name of the validation metric that tells how far a trial is.
    time_metric: str
    #: Where the top rung lies, in units of ``time_metric``.
    max_time: int
    max_trials: int
    num_rungs: int = 5
    divisor: float = 4.0
    max_concurrent_trials: int = 16

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """The one bracket."""
        return (halving(self.num_rungs, self.max_time, self.divisor, self.max_trials, self.max_concurrent_trials),)

    def unit(self) -> str | None:
        """The time metric."""
        return self.time_metric

    def most_at_once(self) -> int | None:
        """The cap."""
        return self.max_concurrent_trials or None
