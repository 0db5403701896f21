"""The brackets of a search: how many trials each runs, how many at once, and where its rungs lie.

Rules:
- A method without rungs is one bracket with none.
- Floats are computed in the order that the golden values were: truncations at exact powers depend on it.

Source of the method: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning" (ASHA), MLSys 2020.
"""

from __future__ import annotations

from dataclasses import dataclass


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


def rung_units(num_rungs: int, max_time: int, divisor: float) -> tuple[int, ...]:
    """Where each rung lies: ``max_time`` at the top, divided once more at each rung below, at least 1."""
    return tuple(max(int(max_time / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs))


def halving(num_rungs: int, max_time: int, divisor: float, max_trials: int, concurrent: int) -> BracketPlan:
    """A bracket of asynchronous halving."""
    initial = concurrent if concurrent > 0 else max(int(divisor ** (num_rungs - 1)), 1)
    return BracketPlan(
        max_trials, concurrent, min(initial, max_trials), rung_units(num_rungs, max_time, divisor), divisor
    )


def without_rungs(max_trials: int, concurrent: int) -> BracketPlan:
    """A bracket in which every trial goes to its own end."""
    return BracketPlan(max_trials, concurrent, min(max_trials, concurrent) if concurrent > 0 else max_trials)
