"""Independent samples of the space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenax.search.brackets import BracketPlan, without_rungs
from tenax.search.config import Map, Method


@dataclass(frozen=True, slots=True)
class Random(Method):
    """``max_trials`` independent samples, at most ``max_concurrent_trials`` at a time (0: no cap)."""

    name: ClassVar[str] = "random"

    max_trials: int
    max_concurrent_trials: int = 16

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """One bracket for all."""
        return (without_rungs(self.max_trials, self.max_concurrent_trials),)

    def most_at_once(self) -> int | None:
        """The cap."""
        return self.max_concurrent_trials or None
